"""The pages of stacks, of same inputs and of the matrix: all that the data say, computed answers, measurements of this question."""

import re
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import quantspec as qs
from quantspec_conformance.errors import DamagedError
from quantspec_conformance.examples import Entry
from quantspec_conformance.peers.identifying import documented, recorded
from quantspec_conformance.peers.table import folder, peers
from quantspec_conformance.records import deviations
from quantspec_conformance.site import input_page, inputs, matrix_page, stack_pages
from quantspec_conformance.site.faults import faults
from quantspec_conformance.site.identified import findings
from quantspec_conformance.site.inputs import Measured, answers, measured, questions
from quantspec_conformance.site.measure import request_text
from quantspec_conformance.site.results import KINDS, matrix, share, summary, tally
from quantspec_conformance.site.stacks import Stack, linked_source, stack_page, stacks
from quantspec_conformance.spec import rules
from quantspec_conformance.suite.outcome import OUTCOMES

PAGES = stack_pages.pages()
TEXT = "\n".join(PAGES.values())
QUESTIONS = [*questions().values()]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "stacks.toml"
    path.write_text(text, "utf-8")
    return path


# ---------------------------------------------------------------- stacks


def test_every_answer_of_identify_is_on_the_page_of_its_stack() -> None:
    for one in recorded()["answers"]:
        stack = next(stack for stack in stacks() if one["peer"] in stack.peers)
        lines = [line for line in PAGES[f"stacks/{stack.slug}"].splitlines() if f"`{one['scheme']}`" in line]
        lines = [line for line in lines if ("asked as `" + one["as"] + "`" in line) == bool(one["as"])]
        assert any(f"| {one['outcome']} |" in line and f"| {one['blocks']} |" in line for line in lines), one
        for part in one["parts"]:
            for place in part["except"]:
                counts = f"| {part['part']} | {place['domain']} | {place['agrees']} of {place['of']} |"
                assert any(counts in line and f"`{place['by']['got']}`" in line for line in lines), (one, place)
            assert part["outcome"] != "none of the known" or any("none of the known; nearest" in line for line in lines)
    assert findings("nobody") is None


def test_the_name_that_is_documented_stands_first() -> None:
    for row in documented():
        page = PAGES[f"stacks/{next(stack for stack in stacks() if row.peer in stack.peers).slug}"]
        for name in filter(None, (row.recipe, row.codec)):
            assert re.search(rf"\| `{re.escape(row.scheme)}`[^|]*\| identified.*\| `{re.escape(name)}`", page), row


def test_every_row_of_the_data_is_on_a_page_of_its_stack() -> None:
    listed = stacks()
    assert {name for stack in listed for name in stack.peers} == {peer.name for peer in peers()}
    assert {name for stack in listed for name in stack.presets} == {*qs.PRESETS} - {"canonical"}
    assert {*PAGES} == {"stacks/index", *(f"stacks/{stack.slug}" for stack in listed)}
    shown = Counter(re.findall(r"^```\{deviation\} (\S+)$", TEXT, re.M))
    assert shown == Counter(row.id for row in deviations())
    shown = Counter(re.findall(r"^```\{fault\} (\S+)$", TEXT, re.M))
    assert shown == Counter([*faults()])


def test_every_preset_is_on_the_page_of_a_stack_that_people_know() -> None:
    assert not {stack.title for stack in stacks()} & {*qs.PRESETS}


def test_what_no_row_takes_gets_a_page_of_its_own(tmp_path: Path) -> None:
    found = stacks(written(tmp_path, '[[stack]]\ntitle = "Mine"\npeers = ["torch"]\nrecipes = ["even"]\n'))
    mine = next(stack for stack in found if stack.title == "Mine")
    assert mine == Stack("Mine", peers=("torch",), recipes=("even",)) and mine.slug == "mine"
    assert Stack("mlx-mxfp4", presets=("mlx-mxfp4",)) in found and Stack("Burn", deviations=("Burn",)) in found
    assert Stack("MLX", peers=("mlx",), presets=("mlx",), deviations=("MLX",)) in found  # one page for one name
    page = stack_pages.pages([mine])["stacks/mine"]
    assert "`scale = pow2[even](a)`" in page and "peer `torch`" in page and "What it answered" in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[stack]]\ntitle = "A"\npeer = ["torch"]\n', "the members are"),
        ('[[stack]]\ntitle = "A"\npeers = ["nobody"]\n', "peers has no 'nobody'"),
        ('[[stack]]\ntitle = "Burn"\n[[stack]]\ntitle = "Burn!"\n', "the page burn"),
    ],
)
def test_a_row_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DamagedError, match=re.escape(said)):
        stacks(written(tmp_path, text))


@pytest.mark.parametrize("name", [name for name in qs.PRESETS if name != "canonical"])
def test_the_steps_of_a_preset_are_on_the_page_of_its_stack_with_a_rule_each(name: str) -> None:
    recipe = qs.PRESETS[name].recipe
    for stack in stacks():
        if name not in stack.presets:
            continue
        page = PAGES[f"stacks/{stack.slug}"]
        for line in recipe.text.splitlines()[1:]:
            step = re.escape(line[8:].strip().replace("|", "\\|"))
            found = re.search(rf"`{step}` \| ([A-Z]{{3}}-[0-9]+(?:, [A-Z]{{3}}-[0-9]+)*) \|", page)
            assert found and all(rule in rules() for rule in found[1].split(", ")), line


def test_the_members_that_differ_are_shown_with_those_of_canonical() -> None:
    page = PAGES["stacks/ggml"]
    assert "| rounding | `toward-zero` | `even` | POL-12 |" in page
    assert "| stream | `scale-first` | `regions` | POL-17 |" in page
    assert "| rounding | `even`" not in page


def test_a_result_says_version_date_suite_and_counts() -> None:
    for peer in peers():
        found = summary(peer.name)
        stack = next(stack for stack in stacks() if peer.name in stack.peers)
        assert found is not None
        page = " ".join(PAGES[f"stacks/{stack.slug}"].split())
        assert (
            f"{peer.name} {found['version']}, run on {found['date']} with the {found['suite']['cases']} cases" in page
        )
        for group, outcomes in found["formats"].items():
            counts = tally(outcomes)
            assert f"| `{group}` | {counts['pass']} | {counts['differ']} |" in page
        assert all(" ".join(cause["reason"].split()) in page.replace("\\|", "|") for cause in found["causes"])


def test_a_fault_is_what_its_row_says() -> None:
    rows = tomllib.loads((folder() / "faults.toml").read_text("utf-8"))["fault"]
    for row, fault in zip(rows, faults().values(), strict=True):
        assert (fault.peer, fault.number, fault.case) == (row["peer"], row["fault"], row["case"])
        assert fault.example.given["x" if "x" in fault.example.given else "codes"].text
        assert (fault.got == {}) == (row["got"] == "failed")
        assert fault.got != fault.example.gives


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (
            "tracel-ai/burn 2c06be3, crates/a/src/b.rs",
            "https://github.com/tracel-ai/burn/blob/2c06be3/crates/a/src/b.rs",
        ),
        ("tracel-ai/burn 2c06be3", "https://github.com/tracel-ai/burn/tree/2c06be3"),
        ("onnx/onnx#6220", "https://github.com/onnx/onnx/issues/6220"),
        ("pytorch/ao 0.18.0, a/b.py", ""),
        ("PTX ISA, cvt", ""),
    ],
)
def test_a_source_on_github_is_linked(text: str, address: str) -> None:
    assert linked_source(text) == address


# ---------------------------------------------------------------- same inputs


def test_twenty_inputs_and_more_each_with_two_answers_at_least() -> None:
    assert len(QUESTIONS) >= 20
    alone = [question.id for question in QUESTIONS if len(answers(question)) < 2]
    assert alone == []
    assert all(rule in rules() for question in QUESTIONS for rule in question.rules)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_the_first_answer_is_that_of_canonical_and_the_page_has_all(question: inputs.Question) -> None:
    page = input_page.pages()["same-input"]
    part = page.split(f"({question.id})=")[1].split("\n## ")[1]
    found = answers(question)
    assert found[0].rows[0] == "canonical"
    texts = ["; ".join(entry.text for entry in answer.entries.values()) for answer in found]
    assert len(set(texts)) == len(texts)
    for answer in found:
        for entry in answer.entries.values():
            assert entry.text.partition(" ")[2] in part
        assert answer.rows or answer.run or answer.said
    named = [name for answer in found for name in answer.rows]
    assert len(set(named)) == len(named) and {*question.who} <= {*named}


def test_no_answer_of_the_reference_is_typed() -> None:
    text = (Path(inputs.__file__).parent / "inputs.toml").read_text("utf-8")
    assert all("gives" not in question.ask for question in QUESTIONS)
    assert "canonical" not in {said.stack for question in QUESTIONS for said in question.said}
    assert text.count("gives =") == sum(len(question.said) for question in QUESTIONS)


def test_measurements_are_of_these_questions_and_of_these_versions() -> None:
    versions = {peer.name: peer.version for peer in peers()}
    stale = [
        (row.input, row.peer) for row in measured()
        if row.input not in questions() or request_text(questions()[row.input], row.peer) != row.request
        or row.version.partition("+")[0] != versions[row.peer]
    ]  # fmt: skip
    assert stale == [], "run python -m quantspec_conformance.site.measure"
    assert len({row.peer for row in measured()}) >= 10


def test_another_measurement_is_another_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A liar: one peer that gives what nobody gives has a row of its own."""
    question = questions()["tie-of-e2m1"]
    rows = tuple(
        replace(row, gives="codes u8 0F") if (row.input, row.peer) == (question.id, "onnx") else row
        for row in measured()
    )

    def changed() -> tuple[Measured, ...]:
        return rows

    before = len(answers(question))
    monkeypatch.setattr(inputs, "measured", changed)
    after = answers(question)
    assert len(after) == before + 1 and [row.peer for row in after[-1].run if after[-1].rows == []] in (["onnx"], [])
    assert any([row.peer for row in answer.run] == ["onnx"] for answer in after)


def test_what_is_said_has_a_page_a_source_and_entries_of_the_question() -> None:
    for question in QUESTIONS:
        for said in question.said:
            assert stack_page(said.stack) is not None and said.evidence in ("run", "read", "reported")
            entries = question.of(said.gives)
            assert [*entries] == [*question.show] and all(isinstance(entry, Entry) for entry in entries.values())


# ---------------------------------------------------------------- the matrix


def test_the_matrix_has_every_group_and_peer_with_its_counts() -> None:
    page = matrix_page.pages()["stacks/matrix"]
    found = matrix()
    for row in found["peers"]:
        cells = "".join(f"<td>{tally(row['outcomes'])[kind]}</td>" for kind in KINDS)
        assert f"{row['peer']}</a> {row['version']}</th>{cells}" in page
    assert page.count("<th scope='row'>") == len(found["groups"]) + len(found["peers"])
    for cells in found["groups"].values():
        for outcomes in cells.values():
            counts = tally(outcomes)
            assert f">{counts['pass']} of {counts['pass'] + counts['differ']}<br>{share(counts)}" in page
    empty = sum(len(found["peers"]) - len(cells) for cells in found["groups"].values())
    assert page.count("title='not supported'>none<") == empty


def test_every_outcome_counts_once_and_only_all_is_a_hundred() -> None:
    assert sum(tally(dict.fromkeys(OUTCOMES, 1)).values()) == len(OUTCOMES)
    assert [share({"pass": a, "differ": b}) for a, b in ((0, 0), (0, 9), (1, 999), (999, 1), (3, 0))] == [
        "", "0 %", "1 %", "99 %", "100 %",
    ]  # fmt: skip

"""Worked examples: each gives what it says, on the reference and as exported case; and the checks see what is wrong."""

import dataclasses
import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import quantspec
from quantspec_conformance import doccases
from quantspec_conformance.errors import DamagedError, UsageError
from quantspec_conformance.examples import Entry, Example, ExampleError, Tensor, examples, fences, parse_body
from quantspec_conformance.playback import play, problems
from quantspec_conformance.records import Deviation, deviations
from quantspec_conformance.spec import Rule, rules
from quantspec_conformance.verbs import VERBS

EXAMPLES = examples()

TIE = """
title  A tie
shows  VAL-7
do     encode
value  e2m1
x      f32 3FE00000 BFA00000   # 1.75, -1.25
gives
codes  u8 04 0A
"""


def parsed(text: str) -> Example:
    return parse_body("doc.values.test", text.strip().splitlines())


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_gives_what_it_says(example: Example) -> None:
    assert problems(example) == []


def test_every_example_has_a_title_and_shows_a_rule() -> None:
    bare = [example.id for example in EXAMPLES.values() if not example.title or not example.shows]
    assert bare == []


@pytest.mark.parametrize("row", deviations(), ids=lambda row: row.id)
def test_what_a_deviation_says_of_our_bits_is_so(row: Deviation) -> None:
    assert row.example is not None or row.theirs == "", "a result of theirs without an input"
    if row.example is not None:
        assert problems(row.example) == []
        ours = {f"{name} {entry.text}" for name, entry in row.example.gives.items()}
        assert " ".join(row.theirs.split()) not in ours, "their result is ours"


def test_every_operation_of_the_language_is_used() -> None:
    assert {verb for example in EXAMPLES.values() for verb in example.do} == set(VERBS)


# ---------------------------------------------------------------- the checks see a liar


def test_a_good_example_passes() -> None:
    assert problems(parsed(TIE)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("04 0A", "03 0A", "codes is written as u8 03 0A; the reference gives u8 04 0A"),
        ("04 0A", "04", "the reference gives u8 04 0A"),
        ("u8 04 0A", "u8[2,1] 04 0A", "codes is written as u8"),
        ("shows  VAL-7", "shows  VAL-8", "shows VAL-8, which does not fire"),
        ("codes  u8 04 0A", "refused VAL-7 encoding", "refused is not given"),
        ("x      f32 3FE00000 BFA00000", "x      f64 3FE0000000000000", "refused: QNT-1 dtype"),
    ],
)
def test_a_lie_is_found(old: str, new: str, said: str) -> None:
    found = problems(parsed(TIE.replace(old, new)))
    assert any(said in problem for problem in found), found


def test_a_refusal_by_another_rule_or_at_another_place_is_found() -> None:
    text = "do scheme\nscheme e2m1.native.b0-f32\ngives\nrefused {} scheme\nposition {}\nsays {}"
    assert problems(parsed(text.format("SCH-6", 12, "extent; 0"))) == []
    assert problems(parsed(text.format("SCH-7", 12, "extent"))) != []
    assert problems(parsed(text.format("SCH-6", 11, "extent"))) != []
    assert problems(parsed(text.format("SCH-6", 12, "requantize"))) != []


class Wrong:
    """An implementation of which one verb lies."""

    def __init__(self, verb: str, lie: Any) -> None:
        self.verb, self.lie = verb, lie

    def __getattr__(self, name: str) -> Any:
        return self.lie if name == self.verb else getattr(quantspec, name)


def test_examples_catch_an_implementation_that_breaks_ties_away_from_zero() -> None:
    def away(x: Any, value: Any, **options: Any) -> Any:
        up = quantspec.encode(np.nextafter(x, np.float32(np.inf) * np.sign(x), dtype=np.float32), value, **options)
        return np.where(np.isfinite(x), up, quantspec.encode(x, value, **options))

    caught = {example.id for example in EXAMPLES.values() if problems(example, Wrong("encode", away))}
    shown = {example.id for example in EXAMPLES.values() if "VAL-7" in example.shows and example.do == ("encode",)}
    assert len(caught & shown) >= 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TIE.replace("3FE00000", "3fe00000"), "upper-case hexadecimal"),
        (TIE.replace("3FE00000", "3FE0"), "8 upper-case hexadecimal digits"),
        (TIE.replace("f32 3FE", "f32[3] 3FE"), "2 patterns for shape"),
        (TIE.replace("VAL-7", "VAL-07"), "is not the id of a rule"),
        (TIE.replace("gives", ""), "codes stands twice|needs a line `do`"),
        (TIE.replace("do     encode", ""), "needs a line `do`"),
        (TIE.replace("value  e2m1", "value  e2m1\nvalue  e4m3"), "value stands twice"),
        ("  f32 00000000", "the first line goes on with nothing|needs a line"),
    ],
)
def test_a_malformed_example_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExampleError, match=said):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TIE.replace("do     encode", "do     encod"), "'encod' is no operation"),
        (TIE.replace("value  e2m1", ""), "needs a line `value`"),
        (TIE.replace("x      f32 3FE00000 BFA00000", "x      1.75"), "x is no tensor"),
        (TIE.replace("codes  u8 04 0A", "amax f32 00000000"), "nothing makes 'amax'"),
    ],
)
def test_an_example_that_cannot_be_played_says_why(text: str, said: str) -> None:
    with pytest.raises(ExampleError, match=said):
        play(parsed(text))


def test_fences_that_are_not_closed_or_stand_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match="not closed"):
        list(fences("```{example} doc.values.open\ndo encode\n", "2-values.md"))
    fence = f"```{{example}} doc.values.twice\n{TIE.strip()}\n```\n"
    (tmp_path / "2-values.md").write_text(fence + fence, "utf-8")
    with pytest.raises(ExampleError, match="stands twice"):
        examples(tmp_path)
    (tmp_path / "2-values.md").write_text(fence.replace("doc.values.twice", "Values.Twice"), "utf-8")
    examples.cache_clear()
    with pytest.raises(ExampleError, match="is not an id"):
        examples(tmp_path)


# ---------------------------------------------------------------- the exported cases


def schema() -> Any:
    return json.loads(
        (resources.files("quantspec_conformance") / "schemas" / "doc-cases.schema.json").read_text("utf-8")
    )


def test_the_exported_cases_follow_their_schema_and_are_current() -> None:
    content = doccases.load()
    jsonschema.Draft202012Validator(schema()).validate(content)
    assert doccases.differences(content) == []
    assert doccases.case_file().read_text("utf-8") == doccases.text_of(content), "written by another hand"


def test_the_schema_refuses_unknown_keys_and_digits_of_another_case() -> None:
    validator = jsonschema.Draft202012Validator(schema())
    for place, key, value in (((), "extra", 1), (("cases", 0), "extra", 1), (("cases", 0), "title", "")):
        content = json.loads(doccases.case_file().read_text("utf-8"))
        target = content
        for step in place:
            target = target[step]
        target[key] = value
        assert not validator.is_valid(content)


def read(content: Any) -> Entry:
    """An entry from its JSON, as a reader in another language would take it."""
    if isinstance(content, str):
        return Entry(content)
    return Entry(Tensor(content["dtype"], tuple(content["shape"]), tuple(int(b, 16) for b in content["bits"].split())))


def test_an_exported_case_plays_without_the_page() -> None:
    """A reader of the file alone gets the same bits: every case, from its JSON."""
    for case in doccases.load()["cases"]:
        given, gives = ({name: read(content) for name, content in case[part].items()} for part in ("given", "gives"))
        again = Example(case["id"], case["title"], tuple(case["shows"]), tuple(case["do"]), given, gives)
        assert problems(again) == []


def changed(rule_id: str) -> dict[str, Rule]:
    table = dict(rules())
    table[rule_id] = dataclasses.replace(table[rule_id], text=table[rule_id].text + " Or not.")
    return table


def test_a_changed_rule_asks_for_a_review_of_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    content = doccases.load()
    monkeypatch.setattr(doccases, "rules", lambda: changed("VAL-7"))
    found = doccases.differences(content)
    shown = [case["id"] for case in content["cases"] if "VAL-7" in case["shows"]]
    assert len(found) == len(shown) > 0
    assert all("the text of VAL-7 changed: review it" in line for line in found)
    kept = doccases.make(content)
    assert all(case["shows"] == before["shows"] for case, before in zip(kept["cases"], content["cases"], strict=True))
    assert doccases.differences(doccases.make(content, reviewed=["VAL-7"])) == []


def test_white_space_in_a_rule_asks_for_nothing() -> None:
    rule = rules()["VAL-7"]
    assert dataclasses.replace(rule, text=rule.text.replace(" ", "\n", 3)).digest == rule.digest
    assert dataclasses.replace(rule, text=rule.text.replace("even", "odd", 1)).digest != rule.digest
    assert dataclasses.replace(rule, level="MAY").digest != rule.digest


def test_an_id_never_vanishes_and_never_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    content = doccases.load()
    gone = content["cases"][0]["id"]
    rest = {key: example for key, example in EXAMPLES.items() if key != gone}
    monkeypatch.setattr(doccases, "examples", lambda: rest)
    with pytest.raises(UsageError, match="ids are for ever"):
        doccases.make(content)
    with pytest.raises(UsageError, match="and a reason"):
        doccases.make(content, retire={gone: ""})
    retired = doccases.make(content, retire={gone: "said twice"})
    assert retired["retired"] == {gone: "said twice"}
    monkeypatch.setattr(doccases, "examples", lambda: EXAMPLES)
    with pytest.raises(UsageError, match="was retired"):
        doccases.make(retired)
    with pytest.raises(UsageError, match="no such rule"):
        doccases.make(content, reviewed=["VAL-99"])


def test_a_damaged_file_of_cases_is_named(tmp_path: Path) -> None:
    file = tmp_path / "doc.json"
    for text in ("", "[]", "{}", '{"schema": "doc-cases-2"}', "\xff"):
        file.write_text(text, "utf-8")
        with pytest.raises(DamagedError, match=r"doc\.json"):
            doccases.load(file)

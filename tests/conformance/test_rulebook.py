"""`quantspec rules` and `quantspec vectors`: what they list, find, show, and say of what they do not find."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quantspec_conformance import doccases
from quantspec_conformance.citations import PACKAGES, citations, package_folder
from quantspec_conformance.cli import main
from quantspec_conformance.errors import UsageError
from quantspec_conformance.rulebook import find, place_of, record, source_of, spec_place
from quantspec_conformance.spec import rules


def invoke(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="quantspec")


def test_without_words_every_rule_is_listed_in_reading_order() -> None:
    result = invoke("rules")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list(rules())
    assert next(iter(rules())) == "SCH-1" and list(rules())[-1] == "CNF-6"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["PAK"], [f"PAK-{n}" for n in range(1, 9)]),
        (["packing"], [f"PAK-{n}" for n in range(1, 9)]),
        (["qnt-4"], ["QNT-4"]),
        (["affine"], ["POL-4"]),
        (["ties go to the even code"], ["VAL-7"]),
    ],
)
def test_rules_are_found_by_id_area_chapter_and_words(words: list[str], expected: list[str]) -> None:
    assert [rule.id for rule in find(words)] == expected


def test_titles_come_before_texts_and_levels_select() -> None:
    found = [rule.id for rule in find(["saturat"])]
    assert found[0] in ("VAL-8", "SCL-8") and "SCL-24" in found
    assert {rule.level for rule in find([], level="policy")} == {"POLICY"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["QNT-44"], "no rule QNT-44; QNT has QNT-1 to QNT-12"),
        (["PRD-99"], "no rule PRD-99; PRD has PRD-1 to PRD-17"),
        (["satturate"], "near: saturate"),
        (["scalez"], "near: "),
    ],
)
def test_what_is_not_found_is_said_with_what_is_near(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find(words)
    result = invoke("rules", *words)
    assert result.exit_code == 2 and said in result.stderr and "Traceback" not in result.output


def test_one_rule_is_shown_with_all_that_hangs_on_it() -> None:
    result = invoke("rules", "QNT-4")
    assert result.exit_code == 0
    for part in (
        "MUST, since 0.1.0", "Where s is +0 or -0", "q = copysign(0, x)", "page       spec/5-quantize.md#QNT-4",
        "reference/quantspec/quantize.py:", "doc.quantize.", "decisions/0014-zero-scale.md",
    ):  # fmt: skip
        assert part in result.output, part
    place = next(line for line in result.output.splitlines() if line.startswith("reference")).split()[1]
    file, _, line = place.partition(":")
    folder = package_folder("quantspec")
    assert folder is not None
    text = (folder / file.removeprefix(f"{PACKAGES['quantspec']}/quantspec/")).read_text("utf-8").splitlines()
    assert "QNT-4" in text[int(line) - 1]


def test_who_differs_is_shown_with_evidence_and_source() -> None:
    output = invoke("rules", "VAL-7").output
    assert "differs    " in output and "[read: " in output


def test_json_holds_the_whole_record() -> None:
    found = json.loads(invoke("rules", "VAL-7", "--json").output)["rules"]
    assert found == [record(rules()["VAL-7"])]
    assert found[0]["cases"] and found[0]["deviations"] and found[0]["decisions"] and found[0]["kernels"]
    assert len(json.loads(invoke("rules", "--json").output)["rules"]) == len(rules())


def test_every_cited_line_holds_the_id() -> None:
    for rows in citations().values():
        for row in rows:
            folder = package_folder(row.package)
            assert folder is not None
            lines = (folder / row.file).read_text("utf-8").splitlines()
            near = "\n".join(lines[row.line - 1 : row.line + 40])  # a docstring is cited at its first line
            assert row.rule in near, row


def test_places_lead_somewhere_in_a_checkout_and_in_a_wheel() -> None:
    row = source_of("VAL-7", "quantspec")[0]
    assert place_of(row, Path("/x/reference/quantspec")) == f"reference/quantspec/{row.file}:{row.line}"
    assert place_of(row, Path("/x/site-packages/quantspec")) == f"quantspec/{row.file}:{row.line}"
    assert spec_place(Path("/x/spec")) == "spec"
    assert spec_place(Path("/x/site-packages/quantspec_conformance/spec")) == "quantspec_conformance/spec"


def test_a_function_is_listed_once_a_rule() -> None:
    rows = source_of("VAL-12", "quantspec")
    assert len({(row.file, row.function) for row in rows}) == len(rows) > 0


def test_vectors_says_what_is_not_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "vectors" / "doc.json"
    file.parent.mkdir()
    shutil.copy(doccases.case_file(), file)
    monkeypatch.setattr(doccases, "case_file", lambda: file)
    monkeypatch.setattr(doccases.load, "__defaults__", (file,))
    assert invoke("vectors", "doc").exit_code == 0
    content = json.loads(file.read_text("utf-8"))
    content["cases"][0]["title"] = "Another title"
    file.write_text(doccases.text_of(content), "utf-8")
    result = invoke("vectors", "doc")
    assert result.exit_code == 1 and "write them anew" in result.output
    result = invoke("vectors", "doc", "--write")
    assert result.exit_code == 0 and "cases" in result.output
    assert file.read_text("utf-8") == doccases.text_of(doccases.make(content))
    assert invoke("vectors", "doc", "--reviewed", "VAL-7").exit_code == 2
    assert invoke("vectors", "doc", "--write", "--reviewed", "VAL-77").exit_code == 2
    assert invoke("vectors", "doc", "--write", "--retire", "doc.values.nobody", "why").exit_code == 2

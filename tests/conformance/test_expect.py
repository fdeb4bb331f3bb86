"""Expectations: strict both ways, in every situation; conditions; edits that keep what is there."""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quantspec_conformance.doccases import load
from quantspec_conformance.errors import UsageError
from quantspec_conformance.examples import Tensor
from quantspec_conformance.expect import (
    KINDS,
    Applied,
    WhenError,
    apply,
    check,
    check_command,
    parse,
    read,
    run_info,
    script,
    script_command,
    signature,
    update,
    update_command,
)
from quantspec_conformance.expect.edit import updated
from quantspec_conformance.expect.globs import Ids, cover
from quantspec_conformance.expect.layout import blocks
from quantspec_conformance.expect.records import MAX_BYTES, MAX_LIST
from quantspec_conformance.expect.versions import version_key
from quantspec_conformance.expect.when import NAMES
from quantspec_conformance.expect.when import parse as parse_when
from quantspec_conformance.implementations.errors import ImplementationError
from quantspec_conformance.implementations.law import OUTPUTS, Law, tell
from quantspec_conformance.protocol.messages import Answer, Failed, Known, Ok, Rejected, Request, Unsupported
from quantspec_conformance.suite.case import Case, Refusal, features_of
from quantspec_conformance.suite.outcome import OUTCOMES, CaseResult, SuiteMismatch
from quantspec_conformance.suite.run import RunOptions, run_suite

TODAY = date(2026, 12, 1)
URL = "https://example.org/1"
INFO = {"name": "it", "version": "1.2.0", "device": "NVIDIA H200", "os": "linux", "policy.scale": "floor"}
HEAD = 'schema = "expect-1"\nimplementation = "it"\n'


def result(name: str, outcome: str = "fail", digest: str = "aaaaaaaaaaaaaaaa", rule: str = "QNT-5") -> CaseResult:
    """A result as the judge makes it."""
    if outcome in ("pass", "unsupported", "notrun", "skipped", "timeout", "crash"):
        return CaseResult(name, outcome)
    bits = SuiteMismatch("codes", "bits", "", 1, 2) if outcome == "fail" else None
    return CaseResult(name, outcome, rule=rule, mismatch=bits, digest=digest)


def entry(ids: str = '"enc.e2m1.tie.a"', outcome: str = "fail", kind: str = "permanent", **more: str) -> str:
    """An entry as text; more keys as they stand in TOML."""
    rows = {"ids": ids, "outcome": f'"{outcome}"', "kind": f'"{kind}"', "reason": '"why"'} | more
    return "\n[[expect]]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items())


def applied(text: str, *results: CaseResult, **more: Any) -> Applied:
    """The results against the entries of a text."""
    info = INFO | more.pop("info", {})
    return apply(parse(HEAD + text, "x.toml"), results, info, more.pop("today", TODAY), **more)


A, B = "enc.e2m1.tie.a", "enc.e2m1.tie.b"
FAILED = result(A)
PIN, SIGN = {"digest": '"aaaaaaaaaaaaaaaa"'}, {"signature": '"codes/bits/QNT-5"'}

#: name: entries, results, comparison of the first, kinds of problems, exit code
SITUATIONS: dict[str, tuple[str, Sequence[CaseResult], str, list[str], int]] = {
    "no entry, it passes": ("", [result(A, "pass")], "", [], 0),
    "no entry, it fails": ("", [FAILED], "", [], 1),
    "no entry, unsupported is told and is no failure": ("", [result(A, "unsupported")], "", [], 0),
    "no entry, it says itself that it is wrong": ("", [result(A, "known")], "", [], 1),
    "no entry, not run": ("", [result(A, "notrun")], "", [], 1),
    "no entry, skipped": ("", [result(A, "skipped")], "", [], 1),
    "fails as expected": (entry(), [FAILED], "xfail", [], 0),
    "fails as expected, waived": (entry(kind="waiver"), [FAILED], "waived", [], 0),
    "fails as expected, tracked": (entry(kind="bug", url=f'"{URL}"'), [FAILED], "xfail", [], 0),
    "passes against an entry": (entry(), [result(A, "pass")], "xpass", ["xpass"], 1),
    "passes against a waiver": (entry(kind="waiver"), [result(A, "pass")], "xpass", ["xpass"], 1),
    "another outcome": (entry(), [result(A, "crash")], "changed", ["changed"], 1),
    "unsupported against a failure": (entry(), [result(A, "unsupported")], "changed", ["changed"], 1),
    "unsupported as expected": (entry(outcome="unsupported"), [result(A, "unsupported")], "xfail", [], 0),
    "no longer unsupported": (entry(outcome="unsupported"), [result(A, "pass")], "xpass", ["xpass"], 1),
    "not run under an entry": (entry(), [result(A, "notrun")], "", [], 1),
    "the same bits": (entry(**PIN), [FAILED], "xfail", [], 0),
    "other bits": (entry(**PIN), [result(A, digest="b" * 16)], "changed", ["changed"], 1),
    "one of the bits": (entry(digest=f'["{"c" * 16}", "{"a" * 16}"]'), [FAILED], "xfail", [], 0),
    "bits without a digest": (entry(**PIN), [result(A, digest="")], "changed", ["changed"], 1),
    "the same signature": (entry(**SIGN), [FAILED], "xfail", [], 0),
    "another signature": (entry(**SIGN), [result(A, rule="VAL-7")], "changed", ["changed"], 1),
    "a signature of any rule": (entry(signature='"codes/bits/*"'), [result(A, rule="VAL-7")], "xfail", [], 0),
    "a signature of another part": (entry(signature='"words/*/*"'), [FAILED], "changed", ["changed"], 1),
    "a refusal's signature": (
        entry(outcome="wrong-error", signature='"-/wrong-error/SCL-20"'), [result(A, "wrong-error", rule="SCL-20")], "xfail", [], 0,
    ),
    "ids that match nothing": (entry() + entry('"enc.e3*"'), [FAILED], "xfail", ["unmatched"], 1),
    "one glob of a list matches nothing": (entry(f'["{A}", "enc.gone.a.b"]'), [FAILED], "xfail", ["unmatched"], 1),
    "over by date": (entry(until="2026-11-30"), [FAILED], "xfail", ["stale"], 1),
    "over by date, in quotes": (entry(until='"2026-11-30"'), [FAILED], "xfail", ["stale"], 1),
    "the last day": (entry(until="2026-12-01"), [FAILED], "xfail", [], 0),
    "over by version": (entry(until='"1.1.9"'), [FAILED], "xfail", ["stale"], 1),
    "the last version": (entry(until='"1.2"'), [FAILED], "xfail", [], 0),
    "more than the ceiling": (entry('"enc.*"', max="1"), [FAILED, result(B)], "xfail", ["ceiling"], 1),
    "at the ceiling": (entry('"enc.*"', max="2"), [FAILED, result(B)], "xfail", [], 0),
    "the condition is true": (entry(when="""'device ~ "*H200*"'"""), [FAILED], "xfail", [], 0),
    "the condition is false, it fails": (entry(when="""'os == "macos"'"""), [FAILED], "", [], 1),
    "the condition is false, it passes": (entry(when="""'os == "macos"'"""), [result(A, "pass")], "", [], 0),
    "the condition is false, the ceiling is not looked at": (
        entry('"enc.*"', max="1", when="""'os == "macos"'"""), [result(A, "pass"), result(B, "pass")], "", [], 0,
    ),
    "the condition cannot be decided": (entry(when="""'os < "1.0"'"""), [FAILED], "", ["when"], 1),
    "two outcomes": (entry() + entry(outcome="crash"), [FAILED], "changed", ["contradiction", "changed"], 1),
    "two kinds": (entry() + entry(kind="waiver"), [FAILED], "xfail", ["contradiction"], 1),
    "two digests": (entry(**PIN) + entry(digest=f'"{"b" * 16}"'), [FAILED], "changed", ["contradiction", "changed"], 1),
    "two signatures": (
        entry(**SIGN) + entry(signature='"codes/bits/VAL-7"'), [FAILED], "changed", ["contradiction", "changed"], 1,
    ),
    "two that agree": (entry(**PIN) + entry('"enc.*"'), [FAILED], "xfail", [], 0),
    "a condition parts two": (entry() + entry(outcome="crash", when="""'os == "macos"'"""), [FAILED], "xfail", [], 0),
    "flaky, fails": (entry(kind="flaky"), [FAILED], "xfail", [], 0),
    "flaky, passes": (entry(kind="flaky"), [result(A, "pass")], "", [], 0),
    "flaky, breaks otherwise": (entry(kind="flaky"), [result(A, "crash")], "changed", ["changed"], 1),
    "some pass": (entry('"enc.*"'), [FAILED, result(B, "pass")], "xfail", ["xpass"], 1),
}  # fmt: skip


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_situation(name: str) -> None:
    text, results, comparison, problems, code = SITUATIONS[name]
    found = applied(text, *results)
    assert (found.results[0].comparison, sorted(p.kind for p in found.problems)) == (comparison, sorted(problems))
    assert found.exit_code == code


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_problem_that_is_downgraded_only_warns(name: str) -> None:
    text, results, _, problems, code = SITUATIONS[name]
    found = applied(text, *results, downgrade=set(problems))
    assert all(p.downgraded and str(p).startswith("warning: ") for p in found.problems)
    undecided = name == "the condition cannot be decided"  # its case stays without an entry
    assert found.exit_code == (code if not problems or undecided else 0)


def test_an_expected_outcome_stands_beside_the_result() -> None:
    rows = applied(entry(), FAILED, result(B, "pass")).results
    assert [(row.result.id, row.expected, row.entry) for row in rows] == [(A, "fail", 1), (B, "pass", 0)]


def test_flaky_results_are_counted_apart() -> None:
    found = applied(entry('"enc.*"', kind="flaky"), FAILED, result(B, "pass"))
    assert (found.flaky, found.exit_code, found.totals) == ({"passed": 1, "failed": 1}, 0, {"": 1, "xfail": 1})


def test_a_file_of_another_implementation_is_a_problem() -> None:
    found = applied("", result(A, "pass"), info={"name": "other"})
    assert ([str(p) for p in found.problems], found.exit_code) == (
        ["implementation: the file is of 'it', the run of 'other'"],
        1,
    )


def test_a_version_that_is_not_told_is_a_problem() -> None:
    found = applied(entry(until='"2.0.0"'), FAILED, info={"version": ""})
    assert [str(p) for p in found.problems] == ["entry 1: stale: until 2.0.0 cannot be told of version ''"]


def test_ids_outside_of_the_selection_are_matched_by_the_suite() -> None:
    text = entry() + entry('"enc.e3m2.tie.*"') + entry('"enc.none*"')
    found = applied(text, FAILED, suite_ids=[A, "enc.e3m2.tie.a"])
    assert [str(p) for p in found.problems] == ["entry 3: unmatched: enc.none* matches no case"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([FAILED, FAILED], "twice"),
        ([replace(FAILED, id="no id")], "no case id"),
        ([replace(FAILED, id="enc.a\x1b[0m.b")], "no case id"),
        ([replace(FAILED, outcome="good")], "allowed: pass, fail"),
    ],
)
def test_results_that_are_none(rows: list[CaseResult], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        applied("", *rows)
    assert str(caught.value).isprintable()


def test_downgrading_what_is_no_kind_of_problem() -> None:
    with pytest.raises(UsageError, match="no kind of problem"):
        applied("", downgrade=["all"])


# files


BROKEN = {
    "no TOML": ("x = ", "no TOML"),
    "too deep": ("x = " + "[" * 5000, "no TOML"),
    "a number of many digits": ("x = " + "9" * 5000, "no TOML"),
    "no schema": ('implementation = "it"', "schema is missing"),
    "another schema": ('schema = "expect-2"\nimplementation = "it"', "this version reads 'expect-1'"),
    "no name": ('schema = "expect-1"', "implementation is missing"),
    "an empty name": ('schema = "expect-1"\nimplementation = " "', "implementation is ' '"),
    "unknown key": (HEAD + "[other]\n", "unknown key 'other'"),
    "no tables": (HEAD + "expect = 3", "tables"),
    "unknown key of an entry": (HEAD + entry(tolerance="1"), "entry 1: unknown key 'tolerance'"),
    "no reason": (HEAD + '[[expect]]\nids = "a"\noutcome = "fail"\nkind = "flaky"', "entry 1: reason is missing"),
    "an empty reason": (HEAD + entry(reason='""'), "entry 1: reason is ''"),
    "a bug that nobody tracks": (HEAD + entry() + entry(kind="bug"), "entry 2: url is missing"),
    "an address that is none": (HEAD + entry(url='"javascript:1"'), "entry 1: url"),
    "a pass": (HEAD + entry(outcome="pass"), "entry 1: outcome is 'pass'"),
    "not run": (HEAD + entry(outcome="notrun"), "entry 1: outcome"),
    "an outcome in a list": (HEAD + entry().replace('"fail"', '["fail"]'), "entry 1: outcome"),
    "another kind": (HEAD + entry(kind="todo"), "entry 1: kind"),
    "ids with a space": (HEAD + entry('"a b"'), "entry 1: ids"),
    "no ids": (HEAD + entry("[]"), "entry 1: ids has 0"),
    "ids twice": (HEAD + entry('["a", "a"]'), "entry 1: ids names 'a' twice"),
    "ids that are numbers": (HEAD + entry("[1]"), "entry 1: ids is 1"),
    "a digest too short": (HEAD + entry(digest='"aa"'), "entry 1: digest"),
    "a signature of two parts": (HEAD + entry(signature='"codes/bits"'), "entry 1: signature"),
    "a ceiling of none": (HEAD + entry(max="0"), "entry 1: max"),
    "a ceiling that is a truth": (HEAD + entry(max="true"), "entry 1: max"),
    "a date that is none": (HEAD + entry(until='"2026-02-30"'), "entry 1: until"),
    "a date with a time": (HEAD + entry(until="2026-01-01T00:00:00"), "entry 1: until"),
    "a version without a dot": (HEAD + entry(until='"2"'), "entry 1: until"),
    "over before it began": (
        HEAD + entry(since="2026-02-01", until="2026-01-01"),
        "entry 1: since 2026-02-01 is after",
    ),
    "over before its version": (HEAD + entry(since='"1.10.0"', until='"1.9.0"'), "entry 1: since 1.10.0 is after"),
    "a condition that is none": (HEAD + entry(when="'os = 3'"), "entry 1: when: character 4"),
    "control codes": (HEAD + entry(outcome="\\u001b[2J"), "entry 1: outcome"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_that_are_wrong_say_where(name: str) -> None:
    text, message = BROKEN[name]
    with pytest.raises(UsageError) as caught:
        parse(text, "x.toml")
    assert str(caught.value).startswith("x.toml: ") and message in str(caught.value)
    assert str(caught.value).isprintable()


@settings(deadline=None)
@given(st.integers(0, 400), st.text(max_size=8), st.integers(0, 8))
def test_a_damaged_file_is_read_or_refused(at: int, put: str, cut: int) -> None:
    text = (
        HEAD + entry(until="2027-01-01", when="""'os ~ "l*"'""", **PIN, **SIGN) + entry(digest='["bbbbbbbbbbbbbbbb"]')
    )
    try:
        parse(text[:at] + put + text[at + cut :], "x.toml")
    except UsageError as error:
        assert str(error).isprintable()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    large, latin = tmp_path / "large", tmp_path / "latin"
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    latin.write_bytes(b"# \xff")
    for path, message in (
        (large, "longer than"), (latin, "not UTF-8 at byte 2"), (tmp_path, "is a folder"), (tmp_path / "gone", "cannot be"),
        (Path("/dev/zero"), "is a device"), (Path("a\0b"), "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            read(path)


def _schema() -> dict[str, Any]:
    text = (resources.files("quantspec_conformance") / "schemas" / "expect.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _valid(text: str) -> bool:
    data = json.loads(json.dumps(tomllib.loads(text), default=str))
    return bool(jsonschema.Draft202012Validator(_schema()).is_valid(data))


def test_the_schema_takes_what_the_reader_takes() -> None:
    for text, *_ in SITUATIONS.values():
        assert _valid(HEAD + text)
    full = {"when": "'os == \"linux\"'", "since": "2026-01-01", "until": '"1.2.3"', "max": "3", "url": f'"{URL}"'}
    assert _valid(HEAD + entry(**full, **PIN, **SIGN)) and parse(HEAD + entry(**full, **PIN, **SIGN), "x")


#: What a schema cannot tell: the calendar, the order of two fields, a language.
BEYOND = ("a date that is none", "over before it began", "over before its version", "a condition that is none")


@pytest.mark.parametrize("name", [name for name in BROKEN if name not in BEYOND and "no TOML" not in BROKEN[name]])
def test_the_schema_refuses_what_the_reader_refuses(name: str) -> None:
    assert not _valid(BROKEN[name][0])


def test_the_schema_lists_the_tables_of_the_reader() -> None:
    row = _schema()["$defs"]["entry"]["properties"]
    assert tuple(row["kind"]["enum"]) == KINDS
    assert set(row["outcome"]["enum"]) == set(OUTCOMES) - {"pass", "notrun"}


# conditions

TRUE = (
    'device == "NVIDIA H200"', "device ~ '*H200*'", 'device != "x"', 'os in ("linux", "macos")', 'os not in ["macos",]',
    'version >= "1.2" and version < "1.10.0"', 'not (os == "macos" or version > "1.2")', 'policy.scale == "floor"',
    'policy.none == ""', 'os == "macos" or os == "linux" and not version < "1.0"', 'driver == ""', 'not driver < "1.0"',
    'os\n==\t"linux"', 'version <= "1.2.0.0"',
)  # fmt: skip
FALSE = (
    'device == "nvidia h200"', 'device ~ "H200"', 'os not in ("linux",)', 'version < "1.2.0"', 'not os == "linux"',
    'not not not os ~ "l*"', 'driver > "0.0"', 'os == "macos" and os == "linux" or os == "macos"', 'policy.scale ~ "[!f]*"',
)  # fmt: skip
NONE = {
    "": 0, "os": 2, 'os = "a"': 3, '"a" == os': 0, 'os == "a': 6, 'os == "a" "b"': 10, "os == os": 6, "os in ()": 7,
    'os in "a"': 6, '(os == "a"': 10, 'os == "a")': 9, 'os not "a"': 7, "os.system('x')": 0, "__import__('os')": 0,
    'version < "x"': 10, "device.__class__ == 'a'": 0, 'policy == "a"': 0, 'policy.a.b == "a"': 0,
    'os == "a" && os == "b"': 10, "1 == 1": 0, 'os == "a" or': 12, 'os in ("a", , "b")': 12, 'OS == "a"': 0, "not": 3,
    "(" * 41: 40, "not " * 41: 160, " " * 2001: 2000, 'os[0] == "a"': 3, 'True or os == "a"': 0, 'os == "a\nb"': 6,
    "lambda: 0": 6, 'os == f"a"': 6, 'os == "a" # c': 10, "os in (\"a\"]": 10,
}  # fmt: skip


@pytest.mark.parametrize("text", TRUE + FALSE)
def test_conditions(text: str) -> None:
    assert parse_when(text).holds(INFO) is (text in TRUE)


def test_depth_is_counted_not_length() -> None:
    assert parse_when(" or ".join(['not (os == "linux")'] * 60)).holds(INFO) is False


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_condition_says_where(text: str) -> None:
    with pytest.raises(WhenError) as caught:
        parse_when(text)
    assert caught.value.position == NONE[text]
    assert str(caught.value).startswith(f"character {NONE[text] + 1}: ")


WORDS = (
    *NAMES,
    "policy.a",
    "and",
    "or",
    "not",
    "in",
    "==",
    "!=",
    "~",
    "<",
    "<=",
    "(",
    ")",
    "[",
    "]",
    ",",
    '"a"',
    "'1.2'",
    ".x",
    "()",
)


@settings(deadline=None)
@given(
    st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=16).map(" ".join)),
    st.dictionaries(st.sampled_from([*NAMES, "policy.a"]), st.text(max_size=12)),
)
@example("os ~ '[z-a]'", {"os": "a"})
@example("os ~ '[[a&&b--c]'", {"os": "a"})
@example('os == "é"', {"os": "é"})
def test_any_text_is_a_condition_or_an_error_with_a_place(text: str, info: dict[str, str]) -> None:
    try:
        value = parse_when(text).holds(info)
    except WhenError as error:
        assert 0 <= error.position <= len(text) and str(error).isprintable()
    else:
        assert isinstance(value, bool)


@settings(deadline=None)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(["==", "!=", "in", "not in"]),
    st.text(st.characters(exclude_characters='"\r\n')),
)
def test_a_literal_is_text_and_nothing_else(name: str, op: str, value: str) -> None:
    text = f'{name} {op} ("{value}")' if "in" in op else f'{name} {op} "{value}"'
    found = parse_when(text)
    assert found.holds({name: value}) is (op in ("==", "in"))
    assert found.holds({name: f"{value}x"}) is (op not in ("==", "in"))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("1.2", "1.10"),
        ("1.2rc1", "1.2"),
        ("1.2.dev3", "1.2"),
        ("v1.2", "1.2.1"),
        ("535.104.05", "535.104.12"),
        ("1.2-beta", "1.2.0"),
    ],
)
def test_versions_are_in_order(low: str, high: str) -> None:
    one, other = version_key(low), version_key(high)
    assert one is not None and other is not None and one < other


def test_versions_that_are_equal_and_texts_that_are_none() -> None:
    assert version_key("1.2") == version_key("1.2.0") == version_key("v1.2+cu124") == version_key("1.2 (abc)")
    assert [version_key(text) for text in ("", "main", "PoCL 6.0", "v")] == [None] * 4


# globs

NAME = st.lists(st.sampled_from(["a", "b", "tie", "tie-a", "tie-b"]), min_size=3, max_size=5).map(".".join)


@settings(deadline=None)
@given(st.sets(NAME, max_size=20), st.sets(NAME, max_size=20))
def test_a_cover_matches_what_is_wanted_and_nothing_else(wanted: set[str], others: set[str]) -> None:
    globs, ids = cover(wanted, others), Ids(wanted | others)
    assert {name for glob in globs for name in ids.matching(glob)} == wanted
    assert len(globs) <= len(wanted)


def test_a_glob_of_many_stars_takes_no_time() -> None:
    assert Ids(["a." + "a" * 190]).matching("*a" * 90 + "*b") == ()


# a realistic run


@cache
def cases() -> tuple[Case, ...]:
    """The worked examples of one operation as cases of a suite."""
    found: list[Case] = []
    for row in load()["cases"]:
        if len(row["do"]) != 1 or row["do"][0] not in OUTPUTS:
            continue
        words = {key: value for key, value in row["given"].items() if isinstance(value, str)}
        tensors = {
            key: Tensor(value["dtype"], tuple(value["shape"]), tuple(int(bits, 16) for bits in value["bits"].split()))
            for key, value in row["given"].items()
            if not isinstance(value, str)
        }
        request = Request(row["do"][0], words, tensors)
        told = tell(request)
        ok = told.answer if isinstance(told.answer, Ok) else Ok()
        no = told.answer if isinstance(told.answer, Rejected) else None
        found.append(
            Case(
                id=row["id"],
                title=row["title"],
                op=request.op,
                level=0,
                kind="positive" if no is None else "negative",
                words=words,
                inputs=tensors,
                outputs=ok.tensors,
                told=ok.words,
                refusal=None if no is None else Refusal(no.kind, no.rule, no.argument),
                rules=told.rules,
                features=features_of(request),
            )
        )
    return tuple(found)


class Liar(Law):
    """Wrong in every way: bits, refusals, words of its own, crashes; `fixed` operations are right."""

    def __init__(self, *fixed: str, flip: int = 1) -> None:
        super().__init__()
        self.fixed, self.flip = fixed, flip

    def handle(self, request: Request) -> Answer:
        """Lies by operation."""
        answer = super().handle(request)
        if request.op in self.fixed:
            return answer
        if isinstance(answer, Rejected):
            lies: dict[str, Answer] = {"encode": Ok(), "quantize": replace(answer, kind="host")}
            return lies.get(request.op, answer)
        if request.op == "quantize" and isinstance(answer, Ok):
            codes = answer.tensors["codes"]
            wrong = tuple(p ^ self.flip if i == 1 else p for i, p in enumerate(codes.patterns))
            return replace(answer, tensors=dict(answer.tensors) | {"codes": Tensor(codes.dtype, codes.shape, wrong)})
        if request.op == "pack":
            raise ImplementationError("crash", "it is gone")
        told: dict[str, Answer] = {
            "unpack": Failed("broken"),
            "split": Known(URL),
            "permute": Unsupported("op:permute"),
        }
        return told.get(request.op, answer)


@dataclass(frozen=True)
class Run:
    """A run as a result file tells it."""

    header: dict[str, Any]
    results: tuple[CaseResult, ...]


def run_of(liar: Law) -> Run:
    """The doc cases on an implementation."""
    header = {
        "implementation": {"name": "liar", "version": "1.0", "device": "a", "policies": {"scale": "floor"}},
        "host": {"python": "3.11.2", "numpy": "2.0", "platform": "Linux-6.1-x86_64", "machine": "x86_64"},
    }
    return Run(header, tuple(run_suite(cases(), liar, RunOptions(repeat=0))))


def judged(text: str, run: Run) -> Applied:
    """A file against a run."""
    return apply(parse(text, "x.toml"), run.results, run_info(run.header), TODAY)


@pytest.fixture(scope="module")
def lied() -> Run:
    return run_of(Liar())


def test_the_liar_fails_in_many_ways(lied: Run) -> None:
    found = {row.outcome for row in lied.results}
    assert {"pass", "fail", "reject-missing", "wrong-error", "crash", "error", "known", "unsupported"} <= found


def test_a_starter_file_foresees_its_own_results(lied: Run) -> None:
    text, code = script_command(lied)
    found = judged(text, lied)
    assert (code, found.exit_code, found.problems) == (0, 0, ())
    assert _valid(text)
    assert len(found.expectations.entries) < sum(row.bad for row in lied.results)
    assert updated(text, found, TODAY) == text


def test_a_starter_file_of_the_law_is_empty_and_of_a_liar_fails_the_law(lied: Run) -> None:
    law = run_of(Law())
    assert not parse(script(law.results, implementation="liar"), "x").entries
    found = judged(script(lied.results, implementation="liar"), law)
    assert (found.exit_code, {p.kind for p in found.problems}) == (1, {"xpass"})


def test_wrong_bits_that_change_are_told(lied: Run) -> None:
    found = judged(script(lied.results, implementation="liar"), run_of(Liar(flip=2)))
    assert found.exit_code == 1 and "changed" in {p.kind for p in found.problems}


@pytest.mark.parametrize("after", [Liar("quantize"), Liar("pack", "split"), Liar(flip=2), Law()])
def test_an_update_makes_the_file_true_and_is_idempotent(lied: Run, after: Law) -> None:
    run = run_of(after)
    before = script(lied.results, implementation="liar")
    text = updated(before, judged(before, run), TODAY)
    again = judged(text, run)
    assert (again.exit_code, again.problems) == (0, ())
    assert updated(text, again, TODAY) == text


def test_an_update_back_and_forth_adds_what_is_new(lied: Run) -> None:
    before = script(run_of(Law()).results, implementation="liar")
    text = updated(before, judged(before, lied), TODAY)
    assert text.startswith(before) and f"since = {TODAY}" in text
    assert judged(text, lied).exit_code == 0


def test_a_starter_without_a_name() -> None:
    with pytest.raises(UsageError, match="does not name"):
        script_command(Run({}, ()))


# edits

FILE = """\
# The expectations of it.

schema = "expect-1"  # the version
implementation = "it"

# Section one.

# a bug
[[expect]]
ids = "enc.e2m1.tie.*"   # all the ties
outcome = "fail"
kind = "permanent"
reason = '''
[[expect]]
ids = "not one" # not a comment'''

[[expect]]  # a list
ids = [
  "enc.e3m2.a",  # first
  "enc.e3m2.b",  # second
  # in between
  "enc.e3m2.c.*",
]
digest = "aaaaaaaaaaaaaaaa" # pinned
outcome = "fail"
kind = "permanent"
reason = "two"
# below two

# about three
[[expect]]
"ids" = ["enc.e4m3.a", 'enc.e4m3.b']
outcome = "fail"
kind = "permanent"
reason = "three"
"""
ALL = [A, B, "enc.e3m2.a", "enc.e3m2.b", "enc.e3m2.c.a", "enc.e3m2.c.b", "enc.e4m3.a", "enc.e4m3.b"]


def edited(changes: dict[str, CaseResult], text: str = FILE) -> str:
    """FILE after a run in which everything fails but what is changed; and it is true then, and stays."""
    rows = [changes.get(name, result(name)) for name in ALL] + [row for name, row in changes.items() if name not in ALL]
    new = updated(text, apply(parse(text, "x"), rows, INFO, TODAY), TODAY)
    found = apply(parse(new, "x"), rows, INFO, TODAY)
    assert (found.exit_code, found.problems) == (0, ())
    assert updated(new, found, TODAY) == new
    return new


def passes(*names: str) -> dict[str, CaseResult]:
    """Results that pass."""
    return {name: result(name, "pass") for name in names}


def test_nothing_to_do_changes_nothing() -> None:
    assert edited({}) == FILE


@pytest.mark.parametrize(
    ("names", "old", "new"),
    [
        ([A], '"enc.e2m1.tie.*"   # all', f'"{B}"   # all'),
        (["enc.e3m2.a"], '  "enc.e3m2.a",  # first\n', ""),
        (["enc.e3m2.c.b"], '"enc.e3m2.c.*"', '"enc.e3m2.c.a"'),
        (["enc.e3m2.c.a", "enc.e3m2.c.b"], '  "enc.e3m2.c.*",\n', ""),
        (["enc.e4m3.a"], '"enc.e4m3.a", \'enc', "'enc"),
        (["enc.e4m3.b"], ", 'enc.e4m3.b'", ""),
        (["enc.e4m3.a", "enc.e4m3.b"], FILE[FILE.index("\n# about three") :], ""),
    ],
)
def test_what_passes_is_taken_out_and_nothing_else(names: list[str], old: str, new: str) -> None:
    assert edited(passes(*names)) == FILE.replace(old, new)


def test_an_entry_that_nothing_is_left_of_goes_with_its_comment() -> None:
    start, end = FILE.index("# a bug"), FILE.index("[[expect]]  # a list")
    assert edited(passes(A, B)) == FILE[:start] + FILE[end:]


def test_bits_that_changed_are_renewed() -> None:
    new = edited({"enc.e3m2.a": result("enc.e3m2.a", digest="b" * 16)})
    assert new == FILE.replace('"aaaaaaaaaaaaaaaa"', f'["{"a" * 16}", "{"b" * 16}"]')


def test_another_outcome_moves_to_an_entry_of_its_own() -> None:
    new = edited({"enc.e4m3.a": result("enc.e4m3.a", "timeout")})
    assert new.startswith(FILE.replace('"enc.e4m3.a", \'enc', "'enc"))
    last = parse(new, "x").entries[-1]
    assert (last.ids, last.outcome, last.reason, last.max) == (("enc.e4m3.a",), "timeout", "TODO", 1)


def test_new_failures_are_grouped_and_pinned() -> None:
    names = [f"dec.e2m1.new.{i}" for i in range(3)]
    new = edited({name: result(name, digest=f"{i}" * 16) for i, name in enumerate(names)})
    (last,) = parse(new, "x").entries[3:]
    assert (last.ids, last.max, last.signature) == (("dec.e2m1.new.*",), 3, "codes/bits/QNT-5")
    assert last.digest == ("0" * 16, "1" * 16, "2" * 16)


def test_line_ends_stay_as_they_are() -> None:
    text = FILE.replace("\n", "\r\n")
    new = edited(passes(A, "enc.e3m2.a", "enc.e4m3.b") | {"dec.e2m1.new.a": result("dec.e2m1.new.a")}, text)
    assert "\n" not in new.replace("\r\n", "") and "# second" in new and "# first" not in new


@settings(deadline=None)
@given(st.sets(st.sampled_from(ALL)), st.sets(st.sampled_from(ALL)), st.sets(st.sampled_from(ALL)))
def test_any_run_can_be_written_down(good: set[str], other: set[str], crashed: set[str]) -> None:
    changes = {name: result(name, digest="b" * 16) for name in other} | {
        name: result(name, "crash") for name in crashed
    }
    new = edited(changes | passes(*good))
    kept = ["# The expectations of it.", "# the version", "# Section one."]
    assert all(comment in new for comment in kept)


def test_a_glob_that_falls_into_too_many_pieces_is_left_to_somebody() -> None:
    rows = [result(f"enc.a.{i}.b", "pass" if i % 2 else "fail") for i in range(2 * MAX_LIST + 2)]
    text = HEAD + entry('"enc.*"')
    found = apply(parse(text, "x"), rows, INFO, TODAY)
    with pytest.raises(UsageError, match=f"entry 1 would need {MAX_LIST + 1} ids"):
        updated(text, found, TODAY)
    starter = script(rows, implementation="it")
    assert apply(parse(starter, "x"), rows, INFO, TODAY).exit_code == 0


def test_another_signature_moves_to_an_entry_of_its_own() -> None:
    text = HEAD + entry('"enc.e2m1.tie.*"', **SIGN)
    rows = [result(A), result(B, rule="VAL-7")]
    new = updated(text, apply(parse(text, "x"), rows, INFO, TODAY), TODAY)
    assert [(e.ids, e.signature) for e in parse(new, "x").entries] == [
        ((A,), "codes/bits/QNT-5"),
        ((B,), "codes/bits/VAL-7"),
    ]
    assert apply(parse(new, "x"), rows, INFO, TODAY).exit_code == 0


def test_two_globs_that_narrow_to_one_id_leave_it_once() -> None:
    text = HEAD + entry('["enc.e2m1.*", "enc.*.tie.*"]')
    found = apply(parse(text, "x"), [result(A), result(B, "pass")], INFO, TODAY)
    assert updated(text, found, TODAY) == HEAD + entry(f'["{A}"]')


def test_an_entry_whose_condition_is_false_is_left_alone() -> None:
    text = HEAD + entry(when="""'os == "macos"'""")
    found = apply(parse(text, "x"), [result(A, "pass")], INFO, TODAY)
    assert updated(text, found, TODAY) == text


def test_digests_are_pinned_where_bits_alone_make_them_and_they_are_few() -> None:
    def pins(count: int, outcome: str) -> tuple[str, ...]:
        rows = [replace(result(f"enc.a.b.{i}", outcome), digest=f"{i:016x}") for i in range(count)]
        (row,) = parse(script(rows, implementation="it"), "x").entries
        return row.digest

    assert [len(pins(16, "fail")), len(pins(17, "fail")), len(pins(1, "reject-missing"))] == [16, 0, 1]
    assert [pins(1, outcome) for outcome in ("error", "wrong-error", "known", "nondeterministic")] == [()] * 4


def test_what_somebody_must_decide_stays() -> None:
    rows = [result(A), result(B)]
    text = HEAD + entry('"enc.*"', until="2026-01-01", max="1") + entry(f'"{A}"', kind="waiver")
    assert updated(text, apply(parse(text, "x"), rows, INFO, TODAY), TODAY) == text


def test_globs_that_match_nothing_go_unless_the_suite_has_them() -> None:
    text = HEAD + entry('["enc.e2m1.*", "enc.e3m2.*", "enc.none.*"]') + entry('"dec.*"')
    found = apply(parse(text, "x"), [result(A)], INFO, TODAY, suite_ids=[A, "enc.e3m2.a"])
    assert updated(text, found, TODAY) == HEAD + entry('["enc.e2m1.*", "enc.e3m2.*"]')


def test_new_entries_can_be_bound_to_the_run() -> None:
    found = apply(parse(HEAD, "x"), [result(A)], INFO, TODAY)
    (row,) = parse(updated(HEAD, found, TODAY, when=["device", "driver", "os"]), "x").entries
    assert row.when is not None and row.when.text == 'device == "NVIDIA H200" and os == "linux"'
    assert row.when.holds(INFO)
    odd = apply(parse(HEAD, "x"), [result(A)], INFO | {"device": 'a "b" \\ \x1b', "os": "'\""}, TODAY)
    (row,) = parse(updated(HEAD, odd, TODAY, when=["device", "os", "policy.scale"]), "x").entries
    assert row.when is not None and row.when.text == """device == 'a "b" \\ \x1b' and policy.scale == "floor\""""
    with pytest.raises(UsageError, match="'name' is no name of a condition"):
        updated(HEAD, found, TODAY, when=["name"])


def test_a_file_in_another_notation_is_refused_not_damaged() -> None:
    text = HEAD + f'expect = [{{ids = "{A}", outcome = "fail", kind = "permanent", reason = "r"}}]\n'
    found = apply(parse(text, "x"), [result(A, "pass")], INFO, TODAY)
    with pytest.raises(UsageError, match="table of its own"):
        updated(text, found, TODAY)


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(HEAD + entry())
    found = apply(read(path), [FAILED], INFO, TODAY)
    assert update(path, found, TODAY) == HEAD + entry()
    path.write_text(HEAD + entry(kind="flaky"))
    with pytest.raises(UsageError, match="read it again"):
        update(path, found, TODAY)


def test_entries_are_found_whatever_hides_in_strings() -> None:
    text = (
        HEAD
        + entry(reason='"""\n[[expect]]\n\\"""  # x """')
        + entry(reason="'''\n]]\n'''")
        + entry(reason='"# \\" ["')
    )
    found = blocks(text)
    assert [sorted(block.keys) for block in found] == [["ids", "kind", "outcome", "reason"]] * 3


# the command


def test_check_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(HEAD + entry(reason='"TODO"', until="2026-01-01") + entry('"enc.none"', since="2027-01-01"))
    lines = [
        "entry 1: reason still says TODO",
        "entry 2: since 2027-01-01 is after today, 2026-12-01",
        "entry 1: stale: until 2026-01-01 is over; today is 2026-12-01",
    ]
    assert check(path, today=TODAY) == lines
    assert check(path, today=TODAY, suite_ids=[A]) == [*lines, "entry 2: unmatched: enc.none matches no case"]
    assert check_command(path, today=TODAY)[1] == 1


def test_check_against_a_run(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(HEAD.replace('"it"', '"liar"') + entry())
    header = {"implementation": {"name": "liar"}}
    assert check_command(path, Run(header, (FAILED,)), today=TODAY) == (
        [f"{path}: 1 entries, 0 problems, 0 warnings"],
        0,
    )
    lines, code = check_command(path, Run(header, (result(A, "pass"), result(B))), today=TODAY)
    assert (lines[:2], code) == (
        [f"entry 1: xpass: {A} passed; fail was expected", f"unexpected: {B}: fail; no entry foresees it"], 1,
    )  # fmt: skip
    lines, code = check_command(path, Run(header, (result(A, "pass"),)), today=TODAY, downgrade=["xpass"])
    assert (lines[0], code) == (f"warning: entry 1: xpass: {A} passed; fail was expected", 0)


def test_update_command(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes((HEAD + entry()).replace("\n", "\r\n").encode())
    header = {"implementation": {"name": "it"}}
    assert update_command(path, Run(header, (FAILED,)), today=TODAY) == (path.read_bytes().decode(), 0)
    text, code = update_command(path, Run(header, (result(A, "pass"),)), today=TODAY)
    assert (parse(text, "x").entries, code) == ((), 1)
    with pytest.raises(UsageError, match="the run of 'other'"):
        update_command(path, Run({"implementation": {"name": "other"}}, (FAILED,)), today=TODAY)


def test_what_a_run_tells_conditions(lied: Run) -> None:
    info = run_info(lied.header)
    assert (info["os"], info["python"], info["policy.scale"], info["driver"]) == ("linux", "3.11.2", "floor", "")
    assert run_info({"implementation": 3, "host": {"platform": None}})["os"] == ""


def test_signatures() -> None:
    assert signature(FAILED) == "codes/bits/QNT-5"
    assert signature(result(A, "crash")) == "-/crash/-"


def test_what_an_implementation_makes_up_is_in_no_signature() -> None:
    rows = [
        replace(result(A, "wrong-error"), rule='a/b\n"', reason="\x1b[0m\n[[expect]]"),
        replace(FAILED, id=B, mismatch=SuiteMismatch("x/../y", "surplus")),
    ]
    assert [signature(row) for row in rows] == ["-/wrong-error/-", "-/surplus/QNT-5"]
    text = script(rows, implementation='a"\n\x7f\\')
    assert apply(parse(text, "x"), rows, {"name": 'a"\n\x7f\\'}, TODAY).exit_code == 0

"""Explain: every form of a value and of a code, neighbours, and an element of a file."""

from pathlib import Path

import numpy as np
import pytest

import quantspec
from quantspec_conformance.errors import UsageError
from quantspec_conformance.explain import explain
from quantspec_conformance.matrix import parse


def explained(scheme: str, what: str, **options: object) -> str:
    """The text of an explanation."""
    return "\n".join(explain(parse(scheme), what, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "bits"),
    [
        ("1.75", "0x3FE00000"),
        ("0x1.cp+0", "0x3FE00000"),
        ("0x1.Cp0", "0x3FE00000"),
        ("0x3FE00000", "0x3FE00000"),
        ("-0", "0x80000000"),
        ("1e-45", "0x00000001"),
        ("0.7006492321624085e-45", "0x00000000"),
        ("3.4028235e38", "0x7F7FFFFF"),
        ("3.4028236e38", "0x7F800000"),
        ("1e39", "0x7F800000"),
        ("16777217", "0x4B800000"),
        ("16777219", "0x4B800002"),
        ("nan", "0x7FC00000"),
        ("-inf", "0xFF800000"),
        ("0xFF800001", "0xFF800001"),
    ],
)
def test_values_in_every_form(what: str, bits: str) -> None:
    assert f"input      {bits}" in explained("e2m1.native.t-f32", what)


def test_a_tie_shows_its_neighbours_and_its_rules() -> None:
    text = explained("e2m1.packed_native_0.b16-ue4m3.t-f32", "1.75")
    assert "encodes to 0x04  0|10|0  +2" in text
    assert "below      0x03  0|01|1  +1.5   midpoint 1.75" in text
    assert "above      0x05  0|10|1  +3   midpoint 2.5" in text
    assert "VAL-7 Ties go to the even code [MUST]" in text
    assert "half way between two" in text


def test_a_number_that_is_no_binary32_says_so() -> None:
    assert "0.1 is no binary32 number: rounded to the nearest" in explained("q8s.native.t-f32", "0.1")
    assert "no binary32 number" not in explained("q8s.native.t-f32", "0.5")


@pytest.mark.parametrize("what", ["code:0x7F", "code:7f", "c7F"])
def test_codes_in_every_form(what: str) -> None:
    text = explained("e4m3.native.t-f32", what)
    assert "code       0x7F  0|1111|111  NaN" in text
    assert "decodes to 0x7FC00000" in text
    assert "VAL-3 " in text


def test_a_code_of_a_table_is_an_index() -> None:
    text = explained("q4f.native.lut-nf4.t-f32", "c0")
    assert "code       0x00  0000  -1" in text
    assert "below      none" in text


def test_an_element_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "w.npy"
    np.save(file, np.array([[1, 2, 3, 4], [5, 6, 7, -8]], np.float32))
    text = explained("q4s.native.b2-f16", str(file), index=(1, 3))
    for line in (
        "block      (1, 1) of (2, 2)",
        "amax       0x41000000",
        "code       0xF9  1001  -7",
        "rules, in the order",
    ):
        assert line in text
    with pytest.raises(UsageError, match=r"--index 2,0: w has shape \(2, 4\)"):
        explained("q4s.native.b2-f16", str(file), index=(2, 0))


@pytest.mark.parametrize(
    "what", ["", "0x", "abc", "1e999999999", "0x1.8", "code:", "code:0x1FF", "1_000", "--", "0x1p99999999"]
)
def test_what_is_no_value_is_refused(what: str) -> None:
    with pytest.raises(UsageError):
        explained("e2m1.native.t-f32", what)


def test_values_under_a_recipe_step_by_step() -> None:
    """-5 and 5 by burn-flex: the worked example of the spec, 10/255 and a tie at -127.5 that goes away from zero."""
    text = explained("q8f.native.t-f32", "-5,5", recipe="burn-flex", codec="burn-cpu")
    for line in (
        "recipe     burn-flex (amax ignore-nan)",
        "codec      burn-cpu: rounding away",
        "element    (0,) of 2 values",
        "raw = div(twice, span)                      0x3D20A0A1  +0.039215688",
        "good = gt0(up)                                          yes",
        "q = mul(x, inverse)                         0xC2FF0000  -127.5",
        "code                                        0x80  10000000  -128",
        "POL-6 ",
    ):
        assert line in text
    assert max(map(len, text.partition("recipe ")[2].partition("rules,")[0].splitlines())) <= 100
    other = explained("q8f.native.t-f32", "-5,5", recipe="burn-flex", codec="burn-cpu", index=(1,))
    assert "x: input                                    0x40A00000  +5" in other
    assert "decode " in other


def test_a_recipe_that_takes_whole_blocks_gets_one() -> None:
    text = explained("q8s.native.b32-f16", "1,-2,3", recipe="ggml-q8_0")
    assert "3 values, filled up with zeros to (32,)" in text


def test_a_file_under_a_recipe(tmp_path: Path) -> None:
    file = tmp_path / "w.npy"
    np.save(file, np.array([[7, 1], [6, -3]], np.float32))
    text = explained("e2m1.native.b2-ue8m0", str(file), recipe="even", index=(0, 0))
    assert "scale = pow2[even](a)" in text
    assert "0x80  10000000  +2   ue8m0" in text
    with pytest.raises(UsageError, match=r"--index 2,0: w, shape \(2, 2\)"):
        explained("e2m1.native.b2-ue8m0", str(file), recipe="even", index=(2, 0))


def test_a_name_that_is_not_defined_lists_those_that_are() -> None:
    with pytest.raises(quantspec.UnsupportedError, match=r"recipe='nobody' is not defined; defined: canonical, ocp-mx"):
        explained("e2m1.native.t-f32", "1", recipe="nobody")
    with pytest.raises(
        quantspec.UnsupportedError, match=r"codec='nobody' is not defined; defined: canonical, ties-away"
    ):
        explained("e2m1.native.t-f32", "1", codec="nobody")
    with pytest.raises(UsageError, match="'c7' is a code"):
        explained("e2m1.native.t-f32", "c7", recipe="even")
    with pytest.raises(UsageError, match="--index goes with a file"):
        explained("e2m1.native.t-f32", "1", index=(0,))


def test_the_page_shows_what_the_command_prints() -> None:
    page = (Path(__file__).parents[2] / "spec" / "10-policies.md").read_text("utf-8")
    shown = page.partition("--recipe burn-ndarray --codec burn-cpu\n")[2].partition("```")[0]
    text = explained("q8f.native.t-f32", "-5,5", recipe="burn-ndarray", codec="burn-cpu")
    assert shown.strip()
    assert shown in text[text.index("recipe ") :] + "\n"

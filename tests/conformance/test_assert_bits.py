"""`assert_bits_equal`: patterns and nothing else, whatever library an array comes from; a liar a class."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from quantspec import SCALES, VALUES
from quantspec_conformance.testing.equality import assert_bits_equal, difference
from quantspec_conformance.testing.formats import CLASSES, format_of


def f32(*patterns: int) -> Any:
    """Numbers by their patterns."""
    return np.array(patterns, np.uint32).view(np.float32)


def message(actual: Any, expected: Any, fmt: str | None = None, **more: Any) -> str:
    """What is raised; "" where nothing is."""
    try:
        assert_bits_equal(actual, expected, fmt, **more)
    except AssertionError as error:
        return str(error)
    return ""


class WithArray:
    """A tensor of a library that speaks __array__ alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


class WithDlpack:
    """A tensor that speaks DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnDevice:
    """A tensor whose memory the host does not see."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("implicit conversion is not allowed")


def test_equal_bits_are_equal() -> None:
    assert message(f32(0, 0x80000000, 0x7FC00001), f32(0, 0x80000000, 0x7FC00001)) == ""
    assert message(np.zeros((0, 3), np.float16), np.zeros((0, 3), np.float16)) == ""
    assert message(np.float64(2), np.float64(2)) == ""


def test_the_zeros_differ() -> None:
    """The liar that loses -0; numpy's own comparison lets it pass."""
    np.testing.assert_array_equal(f32(0), f32(0x80000000))
    text = message(f32(1, 0), f32(1, 0x80000000))
    assert text.splitlines() == [
        "1 of 2 patterns differ (f32)",
        " index (1,), flat 1",
        "  expected  0x80000000  1|00000000|00000000000000000000000  -0",
        "  actual    0x00000000  0|00000000|00000000000000000000000  +0",
        "      1  expected -zero, actual +zero",
    ]


def test_nans_differ_by_payload_and_sign_unless_the_class_is_asked() -> None:
    actual, expected = f32(0x7FC00001, 0xFFC00000, 0x3F800000), f32(0x7FC00000, 0x7FC00000, 0x3F800000)
    text = message(actual, expected)
    assert "2 of 3 patterns differ (f32)" in text
    assert "NaN (sign 0, payload 0x400001)" in text and "1  expected +nan, actual -nan" in text
    assert "relation='nan-class' lets one NaN stand for another" in text
    assert message(actual, expected, relation="nan-class") == ""


def test_the_class_of_nan_excuses_nothing_else() -> None:
    text = message(f32(0x7F800000, 0x7FC00001, 1), f32(0x7FC00000, 0x7FC00000, 0), relation="nan-class")
    assert "2 of 3 patterns differ" in text
    assert "1  expected +nan, actual +inf" in text and "1  expected +zero, actual +subnormal" in text


def test_shape_and_dtype_come_before_bits() -> None:
    assert message(f32(1, 2), f32(1)) == "shape (2,); expected (1,)"
    assert message(f32(1), f32(1).reshape(1, 1)) == "shape (1,); expected (1, 1)"
    assert message(np.array([1], np.float32), np.array([1], np.float64)) == "dtype float32; expected float64"
    assert (
        message(np.array([1], np.uint8), np.array([[1]], np.int8), "q8s")
        == "shape (1,); expected (1, 1); dtype uint8; expected int8"
    )
    assert message(np.array([1], np.float16), np.array([1], ml_dtypes.bfloat16)) == "dtype float16; expected bfloat16"


def test_byte_order_and_strides_are_no_difference() -> None:
    assert message(np.array([1.5, -0.0], ">f4"), np.array([1.5, -0.0], "<f4")) == ""
    assert (
        message(np.arange(12, dtype=np.float32).reshape(3, 4).T, np.arange(12, dtype=np.float32).reshape(3, 4).T.copy())
        == ""
    )
    assert "index (1,)" in message(np.array([1.5, 2], ">f4"), np.array([1.5, 3], "<f4"))


@pytest.mark.parametrize(
    ("fmt", "expected", "actual", "lines"),
    [
        ("e2m1", 0x03, 0x02, ["0x03  0|01|1  +1.5", "0x02  0|01|0  +1", "expected +normal, actual +normal"]),
        ("e2m1", 0x01, 0x00, ["expected +subnormal, actual +zero"]),
        ("e2m1", 0x0F, 0x1F, ["0x1F  not a code of e2m1", "expected -normal, actual illegal"]),
        ("e4m3", 0x7E, 0x7F, ["expected +normal, actual +nan"]),
        ("e5m2", 0x7B, 0x7C, ["expected +normal, actual +inf"]),
        ("e5m2", 0xFE, 0x7E, ["expected -nan, actual +nan"]),
        ("q4s", 0xF9, 0x09, ["0xF9  1001  -7", "expected -normal, actual illegal"]),
        ("q8f", 0x80, 0x00, ["expected -normal, actual +zero"]),
        ("ue8m0", 0x00, 0xFF, ["expected normal, actual nan"]),
        ("ue4m3", 0x07, 0x80, ["0x80  not a code of ue4m3", "expected subnormal, actual illegal"]),
    ],
)
def test_codes_are_named_by_their_format(fmt: str, expected: int, actual: int, lines: list[str]) -> None:
    text = message(np.array([0, actual], np.uint8), np.array([0, expected], np.uint8), fmt)
    for line in lines:
        assert line in text
    assert "index (1,), flat 1" in text


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "f64"])
def test_floats_are_named_by_their_dtype(name: str) -> None:
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64}[name]
    text = message(np.array([1, 2], dtype), np.array([1, 3], dtype))
    assert f"1 of 2 patterns differ ({name})" in text and "+normal" in text


@pytest.mark.parametrize("name", [*VALUES, *SCALES, "f64"])
def test_every_class_of_every_format_has_a_liar(name: str) -> None:
    """A pattern of each class, wrong by one bit: told, with the class in its bucket."""
    row = format_of(name)
    source = np.random.default_rng(0)
    width = 8 * row.size
    drawn = (
        np.arange(1 << width) if width <= 16 else source.integers(0, 1 << 32, 4096, np.uint64) << np.uint64(width - 32)
    )
    dtype = np.dtype(f"u{row.size}")
    every = np.asarray(drawn, np.uint64).astype(dtype)
    every[:3] = 0, 1, 1 << (width - 1)
    if name in ("f32", "f64"):  # chance meets no infinity
        every[3] = 0x7F800000 if name == "f32" else 0x7FF0000000000000
    for kind in np.unique(row.classes(every)):
        expected = every[row.classes(every) == kind][:1]
        text = message(expected ^ dtype.type(1), expected, name)
        assert f"1 of 1 patterns differ ({name})" in text and f"{CLASSES[kind]}, actual" in text


def test_many_differences_are_counted_not_listed() -> None:
    expected = np.arange(4096, dtype=np.uint32).reshape(64, 64).view(np.float32)
    text = message(expected.view(np.uint32).__xor__(np.uint32(1)).view(np.float32), expected)
    assert text.startswith("4096 of 4096 patterns differ (f32)") and " and 4091 more" in text
    assert "index (0, 4), flat 4" in text and len(text.splitlines()) < 30


def test_unsigned_integers_without_a_format_have_no_classes() -> None:
    text = message(np.array([1], np.uint8), np.array([2], np.uint8))
    assert "(u8)" in text and "expected pattern, actual pattern" in text
    with pytest.raises(ValueError, match="relation='nan-class' needs fmt: uint8"):
        assert_bits_equal(np.array([1], np.uint8), np.array([2], np.uint8), relation="nan-class")
    assert message(np.array([0x7F], np.uint8), np.array([0xFF], np.uint8), "e4m3", relation="nan-class") == ""


def test_arrays_of_other_libraries() -> None:
    array, wrong = f32(0, 0x3F800000), f32(0x80000000, 0x3F800000)
    for wrap in (WithArray, WithDlpack):
        assert message(wrap(array), array) == "" and message(array, wrap(array)) == ""
        assert "expected -zero, actual +zero" in message(wrap(array), wrap(wrong))
    brain = np.array([1, 2], ml_dtypes.bfloat16)
    assert message(WithArray(brain), brain) == ""


def test_torch_tensors_keep_the_bits_that_torch_cannot_convert(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch: bfloat16 has no numpy dtype there, memory is on a device, gradients are on."""
    torch = type("torch", (), {"uint8": np.uint8, "int16": np.int16})

    class Tensor:
        def __init__(self, array: Any, dtype: str, ready: int = 0) -> None:
            self.raw, self.dtype, self.ready = array, dtype, ready

        def detach(self) -> Any:
            return Tensor(self.raw, self.dtype, self.ready | 1)

        def cpu(self) -> Any:
            return Tensor(self.raw, self.dtype, self.ready | 2)

        def contiguous(self) -> Any:
            return self

        def element_size(self) -> int:
            return int(self.raw.dtype.itemsize)

        def view(self, dtype: Any) -> Any:
            return Tensor(self.raw.view(dtype), f"torch.{np.dtype(dtype).name}", self.ready)

        def numpy(self) -> Any:
            if self.ready != 3 or self.dtype.startswith(("torch.bfloat16", "torch.float8")):
                raise TypeError("no numpy of this")
            return self.raw

    Tensor.__module__ = "torch"
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    brain = np.array([1, -0.0], ml_dtypes.bfloat16)
    raw = brain.view(np.uint16)
    assert message(Tensor(raw, "torch.bfloat16"), brain) == ""
    assert "expected -zero, actual +zero" in message(Tensor(raw & np.uint16(0x7FFF), "torch.bfloat16"), brain)
    eight = np.array([1, 448], ml_dtypes.float8_e4m3fn)
    assert message(Tensor(eight.view(np.uint8), "torch.float8_e4m3fn"), eight) == ""
    assert message(Tensor(np.array([1], np.float32), "torch.float32"), np.array([1], np.float32)) == ""


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([1.0], "actual is list, from which no array comes: a list or a number has no dtype"),
        (1.0, "actual is float"),
        (np.array(["a"]), "actual has dtype <U1; allowed: numbers of 1, 2, 4 or 8 bytes"),
        (np.array([1j]), "actual has dtype complex128"),
        (np.array([None]), "actual has dtype object"),
        (np.zeros(1, [("a", "u4")]), "actual has dtype"),
        (OnDevice(), "implicit conversion is not allowed.*copy it to the host"),
    ],
)
def test_what_is_no_array_is_a_type_error(given: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        assert_bits_equal(given, np.array([1], np.float32))


def test_wrong_arguments_say_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="fmt='e9m9'; allowed: q8f"):
        assert_bits_equal(np.array([1], np.uint8), np.array([1], np.uint8), "e9m9")
    with pytest.raises(ValueError, match="relation='close'; allowed: bits, nan-class"):
        difference(np.array([1], np.uint8), np.array([1], np.uint8), relation="close")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fmt='f32' has patterns of 4 bytes; the arrays are uint8"):
        assert_bits_equal(np.array([1], np.uint8), np.array([1], np.uint8), "f32")


def test_there_is_no_tolerance_to_be_given() -> None:
    with pytest.raises(TypeError):
        assert_bits_equal(f32(1), f32(1), rtol=1e-3)  # type: ignore[call-arg]

"""The comparison: every verb of a session against the reference, as bits and as refusals."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc

from .data import patterns


def same_bits(found: Any, expected: Any, what: str) -> None:
    """Two arrays have one shape, one dtype and the same bits."""
    assert (found is None) == (expected is None), what
    if expected is None:
        return
    found = found.get() if isinstance(found, qc.DeviceArray) else found
    assert found.shape == expected.shape and found.dtype == expected.dtype, f"{what}: {found.shape} {found.dtype}"
    differ = np.argwhere(patterns(found) != patterns(expected))
    if len(differ):
        index = tuple(differ[0])
        size = 2 * expected.dtype.itemsize
        raise AssertionError(
            f"{what}{[int(i) for i in index]}: found 0x{int(patterns(found)[index]):0{size}X}, expected "
            f"0x{int(patterns(expected)[index]):0{size}X}; {len(differ)} of {expected.size} differ"
        )


def same_quantized(found: qc.DeviceQuantized, expected: qs.Quantized, what: str) -> None:
    """Codes, scale codes, tensor scale code and saturation report are the same."""
    same_bits(found.codes, expected.codes, f"{what}: codes")
    same_bits(found.scale_codes, expected.scale_codes, f"{what}: scale codes")
    same_bits(found.tensor_scale_code, expected.tensor_scale_code, f"{what}: tensor scale code")
    assert found.saturation == expected.saturation, f"{what}: {found.saturation}, expected {expected.saturation}"


def same_refusal(session: qc.Session, verb: str, *arguments: Any, **options: Any) -> str:
    """The session refuses a verb's arguments as the reference does: one class, one rule, one text, which is returned."""
    return same_error(
        partial(getattr(session, verb), *arguments, **options), partial(getattr(qs, verb), *arguments, **options)
    )


def same_error(found: Callable[[], Any], expected: Callable[[], Any]) -> str:
    """Both calls refuse, with one class, rule and text; returns it."""
    raised: list[qs.QuantspecError] = []
    for call in (expected, found):
        try:
            call()
        except qs.QuantspecError as error:
            raised.append(error)
    assert len(raised) == 2, f"only one of them refused: {[str(error) for error in raised]}"
    reference, kernel = raised
    assert (type(kernel), str(kernel)) == (type(reference), str(reference))
    return str(kernel)


def same_outcome(session: qc.Session, verb: str, *arguments: Any, **options: Any) -> None:
    """Both refuse alike, or neither does and the bits are the same."""
    try:
        result = getattr(qs, verb)(*arguments, **options)
    except qs.QuantspecError:
        same_refusal(session, verb, *arguments, **options)
    else:
        found = getattr(session, verb)(*arguments, **options)
        if isinstance(result, qs.Quantized):
            same_quantized(found, result, verb)
        else:
            same_bits(found, result, verb)


def same_verbs(session: qc.Session, x: npt.NDArray[Any], scheme: str | qs.Scheme, **given: Any) -> None:
    """quantize, pack, to_bytes, from_bytes, split, unpack and dequantize of one tensor give the reference's bits."""
    parsed = qs.Scheme.parse(scheme) if isinstance(scheme, str) else scheme
    expected, found = qs.quantize(x, parsed, **given), session.quantize(x, parsed, **given)
    what = f"{parsed.text} of {x.shape}"
    same_quantized(found, expected, f"quantize {what}")
    same_storage(session, found, expected)
    for dtype in ("f32", "f16", "bf16"):
        same_bits(session.dequantize(found, dtype), qs.dequantize(expected, dtype), f"dequantize {what} to {dtype}")


def same_storage(session: qc.Session, found: qc.DeviceQuantized, expected: qs.Quantized) -> None:
    """Words, bytes and the way back are the reference's; `found` and `expected` hold the same."""
    scheme, shape = expected.scheme, expected.shape
    what = f"{scheme.text} of {shape}"
    packed, words = session.pack(found), qs.pack(expected).words
    same_bits(packed.words, words, f"pack {what}")
    data = session.to_bytes(packed)
    assert data.get().tobytes() == qs.to_bytes(expected), f"to_bytes {what}"
    again = session.from_bytes(data, scheme, shape)
    same_bits(again.words, words, f"from_bytes {what}: words")
    same_bits(again.scale_codes, expected.scale_codes, f"from_bytes {what}: scale codes")
    same_bits(again.tensor_scale_code, expected.tensor_scale_code, f"from_bytes {what}: tensor scale code")
    same_bits(session.unpack(packed).codes, expected.codes, f"unpack {what}")
    same_bits(session.split(data, scheme, shape).codes, expected.codes, f"split {what}")


def needs_host_memory(session: qc.Session) -> None:
    """Skip a test of memory that host and device share."""
    if session.info.kind != "cpu":
        pytest.skip("the device's memory is not the host's")

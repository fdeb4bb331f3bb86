"""Codes and scales read through ml_dtypes and numpy as the numbers that the rules say. ml_dtypes is checked, not trusted."""

import ml_dtypes
import numpy as np
import pytest

import quantspec as qs


@pytest.mark.parametrize("value", qs.VALUES)
def test_code_bytes_read_as_their_numbers(value: str) -> None:
    row = qs.VALUES[value]
    fields = np.arange(1 << row.bits, dtype=np.uint8)
    top = np.uint8(row.sign_bit)
    codes = (fields ^ top) - top if row.is_integer else fields
    q = qs.Quantized(qs.Scheme(value), codes, None, np.array(0x3F800000, np.uint32))
    view = q.values_view
    assert view.dtype == row.dtype
    ours, theirs = qs.decode(codes, value).view(np.uint32), view.astype(np.float32).view(np.uint32)
    nan = (ours & 0x7FFFFFFF) > 0x7F800000
    assert ours[~nan].tolist() == theirs[~nan].tolist()
    assert ((theirs[nan] & 0x7FFFFFFF) > 0x7F800000).all()


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("ue8m0", ml_dtypes.float8_e8m0fnu),
     ("ue4m3", ml_dtypes.float8_e4m3fn)],
)  # fmt: skip
def test_scale_codes_read_as_their_numbers(scale: str, dtype: type) -> None:
    x = np.array([0.3, 2.0, 17.5, 1e-3], np.float32)
    q = qs.quantize(x, f"q8s.native.b1-{scale}.t-{scale}")
    assert q.scales_view is not None and q.scale_codes is not None and q.tensor_scale_view is not None
    assert q.scales_view.dtype == q.tensor_scale_view.dtype == np.dtype(dtype)
    assert q.scales_view.astype(np.float32).tolist() == qs.decode_scale(q.scale_codes, scale).tolist()


def test_outputs_have_the_dtype_asked_for() -> None:
    q = qs.quantize(np.ones(3, np.float32), "q8s.native.t-f32")
    for name, dtype in (("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        assert qs.dequantize(q, name).dtype == qs.dequantize(q, dtype).dtype == np.dtype(dtype)

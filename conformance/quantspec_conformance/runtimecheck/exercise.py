"""Every kernel of the package at small sizes, compared with the reference; runs in a process of its own.

    python -m quantspec_conformance.runtimecheck.exercise RESULT.json [canary | PATH ...]

Made for a simulator that watches every load and store: the sizes are small, and a kernel that nothing here launches is
named in the result. With `canary` three faulty kernels run instead, to see that whoever watches notices.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pyopencl.array as cl_array

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.program import all_programs, source_of

from .exercise_fused import fuse
from .exercise_moves import move

__all__ = ["CANARIES", "kernel_names", "main"]

#: Faulty kernels, and what a checker must say of each.
CANARIES = {
    "uninitialised_buffer": "uninitialised",
    "race_nibble": "race",
    "race_local": "race",
    "oob_read": "bounds",
    "oob_write": "bounds",
}
_CANARY = """
__kernel void race_nibble(__global const uint* x, __global uchar* y) {
    size_t i = get_global_id(0);
    y[i >> 1] |= (uchar)((x[i] & 15) << (4 * (i & 1)));
}
__kernel void race_local(__global const uint* x, __global uint* y) {
    __local uint t[64];
    uint l = get_local_id(0);
    t[l] = x[get_global_id(0)];
    y[get_global_id(0)] = t[(l + 1) & 63];
}
__kernel void oob_read(__global const uint* x, __global uint* y) { size_t i = get_global_id(0); y[i] = x[i + 1]; }
__kernel void oob_write(__global const uint* x, __global uint* y) { size_t i = get_global_id(0); y[i + 1] = x[i]; }
__kernel void uninitialised_buffer(__global const uint* x, __global uint* y) { size_t i = get_global_id(0); y[i] += x[i]; }
"""
_PROBES = (("prelude.cl", "probe.cl"), ("prelude.cl", "probe_pairs.cl"))

#: Schemes whose steps meet every branch of the kernels: values, stores, one and two levels, lookup, partial blocks.
SCHEMES = (
    "q8s.native.t-f32",
    "q4f.packed_native_0.b2x16-f32",
    "q2s.packed_u32_1.b3-bf16.t-f16",
    "e2m1.packed_native_0.b16-ue4m3.t-f32",
    "e2m1.packed_native_1.b32-ue8m0",
    "e4m3.packed_u32_0.b32-ue8m0",
    "e5m2.native.b2-f16",
    "e3m2.packed_u32_0.b32-ue8m0",
    "e2m3.packed_native_0.b1000-ue4m3",
    "q4s.packed_u32_0.lut-nf4.b16-f16",
    "q8f.packed_u32_0.t-ue8m0",
)
SHAPES = ((4, 64), (3, 70), (2, 32, 3))
Array = npt.NDArray[Any]


def kernel_names() -> dict[str, str]:
    """Every kernel of every program of the package, and the first program's files that define it."""
    sources = [(program.files, program.source) for program in all_programs()]
    sources += [(files, source_of(*files)) for files in _PROBES]
    found: dict[str, str] = {}
    for files, source in sources:
        for name in re.findall(r"__kernel\s+void\s+(\w+)\s*\(", source):
            found.setdefault(name, " ".join(files))
    return found


class _Exercise:
    """What was launched, what was compared and what came out wrong."""

    def __init__(self) -> None:
        self.launched: set[str] = set()
        self.compared = 0
        self.wrong: list[str] = []
        self.kept: list[cl.Buffer] = []

    def record(self) -> None:
        """Note the name of every kernel launched from now on, and release no buffer.

        The shadow memory of a simulator takes what is at a new buffer's address for written if an old one was there.
        """
        call: Callable[..., Any] = cl.Kernel.__call__

        def recorded(kernel: cl.Kernel, *arguments: Any, **named: Any) -> Any:
            self.launched.add(kernel.function_name)
            return call(kernel, *arguments, **named)

        kept = self.kept

        class Kept(cl.Buffer):
            def __init__(self, *arguments: Any, **named: Any) -> None:
                super().__init__(*arguments, **named)
                kept.append(self)

        for owner, name, changed in ((cl.Kernel, "__call__", recorded), (cl, "Buffer", Kept)):
            setattr(owner, name, changed)

    def attempt(self, what: str, step: Callable[[], Any]) -> None:
        """Run a step; an error of it, such as a program that does not build, is one more thing that is wrong."""
        try:
            step()
        except Exception as error:  # of whatever kind: the other steps are still worth their answer
            self.wrong.append(f"{what}: {type(error).__name__}: {error}")

    def same(self, what: str, found: Any, expected: Any) -> None:
        """Compare the bits of two arrays, or of all the arrays of two records."""
        parts = ("codes", "scale_codes", "tensor_scale_code", "words")
        if isinstance(expected, qs.Quantized | qs.Packed):
            for part in parts:
                left, right = getattr(found, part, None), getattr(expected, part, None)
                if right is not None:
                    self.same(f"{what} {part}", left, right)
            return
        self.compared += 1
        left, right = np.asarray(found), np.asarray(expected)
        if left.shape != right.shape or left.dtype != right.dtype or left.tobytes() != right.tobytes():
            self.wrong.append(what)

    def agreed(self, what: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
        """Both accept, or both refuse with the same text."""
        said = []
        for call in (ours, theirs):
            try:
                call()
                said.append("accepted")
            except qs.QuantspecError as error:
                said.append(f"{type(error).__name__} {error}")
        self.compared += 1
        if said[0] != said[1]:
            self.wrong.append(f"{what}: {said[0]!r}, expected {said[1]!r}")


def _numbers(shape: tuple[int, ...], number: int) -> Array:
    """Normal numbers with zeros, subnormals, ties, an infinity and a NaN among them."""
    rng = np.random.Generator(np.random.Philox(number))
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))).astype(np.float32)
    flat = x.reshape(-1)
    for i, bits in enumerate((0, 0x80000000, 1, 0x80000001, 0x7F800000, 0x7FC00000, 0x3FC00000, 0x00800000)):
        flat[i * 7 % flat.size] = np.array(bits, np.uint32).view(np.float32)
    return x


def _scheme(run: _Exercise, session: qc.Session, text: str, shape: tuple[int, ...], number: int) -> None:
    """The verbs of one scheme on one shape; a scheme that does not take the shape is refused by both."""
    scheme = qs.Scheme.parse(text)
    x = _numbers(shape, number)
    what = f"{text} {'x'.join(map(str, shape))}"
    try:
        scheme.require_shape(shape)
    except qs.QuantspecError:
        run.agreed(what, partial(session.quantize, x, scheme), partial(qs.quantize, x, scheme))
        return
    expected = qs.quantize(x, scheme)
    found = session.quantize(x, scheme)
    run.same(f"{what} quantize", found.get(), expected)
    packed = session.pack(found)
    run.same(f"{what} pack", packed.get(), qs.pack(expected))
    run.same(f"{what} unpack", session.unpack(packed).get(), expected)
    data = qs.to_bytes(expected)
    run.same(f"{what} to_bytes", session.to_bytes(packed).get().tobytes(), bytes(data))
    run.same(f"{what} split", session.split(data, scheme, shape).get(), qs.split(data, scheme, shape))
    dirty = bytes(255 - byte for byte in data)
    for padding in ("refuse", "ignore"):
        _either(run, f"{what} split dirty, {padding}", session, scheme, shape, dirty, padding)
    for dtype in ("f32", "f16", "bf16"):
        run.same(f"{what} dequantize {dtype}", session.dequantize(found, dtype).get(), qs.dequantize(expected, dtype))
    given: dict[str, Any] = {"scale_codes": expected.scale_codes, "tensor_scale_code": expected.tensor_scale_code}
    again = qs.quantize(x[..., ::-1], scheme, **given)
    run.same(f"{what} given", session.quantize(x[..., ::-1], scheme, **given).get(), again)


def _either(
    run: _Exercise, what: str, session: qc.Session, scheme: qs.Scheme, shape: tuple[int, ...], data: bytes, padding: Any
) -> None:
    """Bytes that may be legal or not: the same answer or the same refusal."""
    try:
        expected = qs.split(data, scheme, shape, padding=padding)
    except qs.QuantspecError:
        ours = partial(session.split, data, scheme, shape, padding=padding)
        run.agreed(what, ours, partial(qs.split, data, scheme, shape, padding=padding))
    else:
        run.same(what, session.split(data, scheme, shape, padding=padding).get(), expected)


def _verbs(run: _Exercise, session: qc.Session) -> None:
    """The verbs on values and scales, strided device arrays, and refusals that a kernel finds."""
    x = _numbers((96,), 1)
    finite = np.abs(np.nan_to_num(x, nan=1, posinf=2))
    for value in qs.VALUES:
        codes = qs.encode(x, value)
        run.same(f"encode {value}", session.encode(x, value).get(), codes)
        run.same(f"decode {value}", session.decode(codes, value).get(), qs.decode(codes, value))
        wrong = np.array([0, 255, 128], np.uint8)
        if qs.VALUES[value].bits < 8:
            run.agreed(f"decode {value}", partial(session.decode, wrong, value), partial(qs.decode, wrong, value))
    run.same("encode nf4", session.encode(x, "q4s", table=qs.NF4).get(), qs.encode(x, "q4s", table=qs.NF4))
    for scale in qs.SCALES:
        for rounding in ("up", "nearest"):
            codes = qs.encode_scale(finite, scale, rounding)
            run.same(f"encode_scale {scale}", session.encode_scale(finite, scale, rounding).get(), codes)
        run.same(f"decode_scale {scale}", session.decode_scale(codes, scale).get(), qs.decode_scale(codes, scale))
        run.agreed(
            f"encode_scale {scale}",
            partial(session.encode_scale, -finite, scale),
            partial(qs.encode_scale, -finite, scale),
        )
    high = np.array([0x80, 0x81, 0x7F], np.uint8)
    run.agreed("bit 7", partial(session.decode_scale, high, "ue4m3"), partial(qs.decode_scale, high, "ue4m3"))
    cleared = session.decode_scale(high, "ue4m3", ue4m3_bit7="ignore").get()
    run.same("bit 7 ignored", cleared, qs.decode_scale(high, "ue4m3", ue4m3_bit7="ignore"))
    for dtype in (np.float32, np.float16):
        scalar = np.array(0.0123, dtype)
        given: dict[str, Any] = {"tensor_scale": scalar}
        found = session.quantize(x.astype(dtype), "e4m3.native.t-f32", **given).get()
        run.same("given tensor scale", found, qs.quantize(x.astype(dtype), "e4m3.native.t-f32", **given))
    strided = cl_array.to_device(session.queue, x.reshape(8, 12))[:, ::3]
    run.same("strided", session.encode(strided, "e2m1").get(), qs.encode(x.reshape(8, 12)[:, ::3], "e2m1"))
    long = np.arange(1400, dtype=np.float32)  # more than two chunks of a search and a fold
    codes = np.full(1400, 7, np.uint8)
    codes[1300] = 128
    run.agreed("long decode", partial(session.decode, codes, "q4s"), partial(qs.decode, codes, "q4s"))
    text = "e2m1.native.b2-ue4m3"
    found, expected = session.quantize(long * np.float32(1e6), text).get(), qs.quantize(long * np.float32(1e6), text)
    run.same("long", found, expected)
    run.same("saturation", np.array(found.saturation.count), np.array(expected.saturation.count))


#: Presets whose rows meet every kernel of recipes, codecs and containers, each with a scheme.
PRESETS = {
    "ggml-q4_0": "q4f.packed_native_0.b32-f16",
    "nvfp4-te": "e2m1.packed_native_0.b16-ue4m3.t-f32",
    "mlx": "e2m1.packed_u32_0.b16-ue4m3.t-f32",
    "ocp-mx": "e4m3.packed_u32_0.b32-ue8m0",
    "bitnet-absmean": "q2s.packed_u32_0.t-f32",
    "burn-ndarray": "q8s.native.b32-f32",
    "bnb-nf4": "q4f.packed_native_0.lut-nf4.b32-f32",
}


def _policies(run: _Exercise, session: qc.Session) -> None:
    """Rows of recipes, codecs and containers."""
    x = np.nan_to_num(_numbers((4, 64), 3), posinf=5)
    for name, text in PRESETS.items():
        preset = qs.Preset.of(name)
        by: dict[str, Any] = {"recipe": preset.recipe, "codec": preset.codec}
        expected, found = qs.quantize(x, text, **by), session.quantize(x, text, **by)
        run.same(f"{name} quantize", found.get(), expected)
        run.same(f"{name} dequantize", session.dequantize(found).get(), qs.dequantize(expected))
        for container in (preset.container, "cublas-128x4", "high-nibble"):
            try:
                data = qs.to_bytes(expected, container=container)
            except qs.QuantspecError:
                continue
            run.same(f"{name} to_bytes", session.to_bytes(found, container=container).get().tobytes(), data)
            back = session.split(data, text, x.shape, container=container, **by)
            run.same(f"{name} split", back.get(), expected)
    for codec in qs.CODECS:
        if qs.CODECS[codec].rounding != "thresholds":
            codes = qs.encode(x, "e5m2", codec=codec)
            run.same(f"encode by {codec}", session.encode(x, "e5m2", codec=codec).get(), codes)
            numbers = qs.decode(codes, "e5m2", codec=codec)
            run.same(f"decode by {codec}", session.decode(codes, "e5m2", codec=codec).get(), numbers)
    steps: dict[str, Any] = {"single": ["scale = up[T](a)"], "element": ["q = div(x, s)"], "decode": ["y = mul(s, v)"]}
    odd: dict[str, Any] = {"recipe": qs.Recipe("odd", refuse=("gt0(a)",), **steps)}
    text = "q8s.native.b32-f32"
    run.agreed("refuse", partial(session.quantize, x, text, **odd), partial(qs.quantize, x, text, **odd))


def _exercise(paths: Sequence[Any]) -> dict[str, Any]:
    run = _Exercise()
    run.record()
    identity = ""
    for path in paths:
        session = qc.open_device("0:0", path=path)  # not poisoned: that would hide what no kernel writes
        identity = f"{session.info.platform} / {session.info.name}, {session.info.version}"
        for number, text in enumerate(SCHEMES):
            for shape in SHAPES:
                run.attempt(f"{text}, path {path}", partial(_scheme, run, session, text, shape, number))
        run.attempt(f"verbs, path {path}", partial(_verbs, run, session))
        run.attempt(f"policies, path {path}", partial(_policies, run, session))
        run.attempt(f"moves, path {path}", partial(move, session, run.same, run.agreed))
        run.attempt(f"fused uses, path {path}", partial(fuse, session, run.same))
        session.finish()
        run.attempt("self-test", partial(qc.self_test, session))
    names = kernel_names()
    return {
        "device": identity,
        "compared": run.compared,
        "wrong": run.wrong,
        "launched": sorted(run.launched),
        "not launched": {name: files for name, files in names.items() if name not in run.launched},
    }


def _canary() -> dict[str, Any]:
    _, device = qc.device.find_device("0:0")
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, _CANARY).build(["-cl-std=CL1.2"])
    flags = cl.mem_flags
    kept = []
    for name in CANARIES:
        x = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=np.arange(64, dtype=np.uint32))
        y = cl.Buffer(context, flags.READ_WRITE, 4 * 64)
        kept += [x, y]
        cl.Kernel(program, name)(queue, (64,), (64,), x, y)
        queue.finish()
    return {"launched": list(CANARIES)}


def main(arguments: list[str]) -> int:
    """Write the result into the file named first."""
    result = _canary() if "canary" in arguments[1:] else _exercise(arguments[1:] or ("generic", "fast"))
    Path(arguments[0]).write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

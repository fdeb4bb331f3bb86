"""quantize, dequantize, encode, pack and to_bytes under what other stacks do: a suite a preset, a codec and a container.

Blocks are built from the preset itself: what its scale is for some amax is asked of the law, and elements are laid on the
thresholds that follow. So they meet ties whatever the recipe does with the scale.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import VALUES, Codec, Container, Preset, Quantized, ScaleType, Scheme, ValueFormat
from quantspec.scales import decode_codes

from ...errors import DamagedError
from ...examples import Tensor
from ...implementations.law import tell
from ...protocol.messages import Ok, Request
from ..case import Case
from .common import Ask, Place, Plan, as_answered, bits32, codes_of, drawn, f32, positives, rng_of, shape_text, typed
from .scales import code_dtype
from .schemes import ask
from .values import NANS, beside, both_signs, evenly, legal_codes, midpoints, overflow, specials

__all__ = ["CODECS", "named", "plans", "presets_of"]

F32 = npt.NDArray[np.float32]
_MX = tuple(f"{value}.native.b32-ue8m0" for value in ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"))
_THREE = _MX[0::2]
_NVFP4 = ("e2m1.native.b16-ue4m3.t-f32",)
_INTEGERS = ("q8s.native.t-f32", "q4s.native.b32-f16", "q8f.native.b32-ue4m3.t-f32")
#: Preset -> schemes that it covers and that are asked for.
SCHEMES: dict[str, tuple[str, ...]] = {
    "ocp-mx": _MX,
    "nvidia-mx": _THREE,
    "even": _THREE,
    "fit": _THREE,
    "compressed-tensors-mx": ("e4m3.native.b32-ue8m0", "e2m1.native.b32-ue8m0"),
    "burn-flex": _INTEGERS,
    "burn-ndarray": _INTEGERS[:2],
    "burn-cube": ("q8s.native.t-f32", "q4s.native.b32-f16", "e4m3.native.b32-ue8m0", *_NVFP4),
    "burn-absmean": ("q4s.native.b32-f16",),
    "nvfp4-te": _NVFP4,
    "nvfp4-torchao": _NVFP4,
    "nvfp4-modelopt": _NVFP4,
    "nvfp4-compressed-tensors": _NVFP4,
    "mlx": ("e2m1.packed_u32_0.b16-ue4m3.t-f32",),
    "mlx-mxfp4": ("e2m1.packed_u32_0.b32-ue8m0",),
    "onnx-qdq": ("e4m3.native.b32-f32", "e5m2.native.b32-f32", "q8f.native.b32-f32", "q4f.native.b32-f32"),
    "ggml-q8_0": ("q8f.native.b32-f16", "q8s.native.b32-f16"),
    "ggml-q4_0": ("q4f.packed_native_0.b32-f16",),
    "ggml-mxfp4": ("e2m1.packed_native_0.b32-ue8m0",),
    "bnb-nf4": ("q4f.packed_native_0.lut-nf4.b64-f32",),
    "bnb-fp4": ("q4f.packed_native_0.lut-{table}.b64-f32",),
    "bnb-nf4-cpu": ("q4f.packed_native_0.lut-nf4.b64-f32",),
    "bnb-fp4-cpu": ("q4f.packed_native_0.lut-{table}.b64-f32",),
    "bitnet-absmean": ("q2s.native.t-f32",),
    "gfloat-mx": _THREE,
    "gguf-mxfp4": ("e2m1.packed_native_0.b32-ue8m0",),
    "torchao-rceil": _THREE,
}
#: Presets with a first look at level 0.
FIRST = {"ocp-mx": "e2m1.native.b32-ue8m0", "nvidia-mx": "e2m1.native.b32-ue8m0"}
#: Codec -> value formats that its encode is asked for.
_SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
CODECS: dict[str, tuple[str, ...]] = {
    "ties-away": ("q8s", "q4f", "e2m1"),
    "ties-toward-zero": ("e2m1", "q4s"),
    "ml-dtypes": _SMALL,
    "ptx": _SMALL,
    "onnx": _SMALL,
    "burn-cpu": ("q8s", "q4s", "q2s"),
    "burn-cube": ("q8s", "q4s", "q2s", "e4m3", "e2m1"),
    "compressed-tensors": ("e2m1",),
    "modelopt-nvfp4": ("e2m1",),
    "mlx-fp4": ("e2m1",),
    "ggml-mxfp4": ("e2m1",),
    "ggml-q4_0": ("q4f",),
}
#: Container -> schemes whose words are asked for.
CONTAINERS: dict[str, tuple[str, ...]] = {
    "high-nibble": ("e2m1.packed_native_0.b8-ue8m0", "q4f.packed_native_1.b8-f32"),
    "split-half": ("e2m1.packed_native_0.b8-ue8m0",),
    "ggml-blocks": ("e2m1.packed_native_0.b32-ue8m0",),
    "ggml-q4_0": ("q4f.packed_native_0.b32-f16",),
    "ggml-q8_0": ("q8f.native.b32-f16",),
    "compressed-tensors-i32": ("q4f.packed_u32_0.b8-f32", "q8f.packed_u32_0.b8-f32"),
    "gptq-i32": ("q4f.packed_u32_1.b8-f32",),
    "awq-i32": ("q4f.packed_u32_0.b8-f32",),
    "mlx-u32": ("e2m1.packed_u32_0.b16-ue4m3.t-f32", "e3m2.packed_u32_0.b32-ue8m0"),
    "cublas-128x4": ("e2m1.packed_native_0.b16-ue4m3.t-f32",),
}
#: Family -> what it hunts.
BUGS: dict[str, tuple[str, ...]] = {
    "ordinary": (),
    "ties": ("tie", "reciprocal"),
    "ulps": ("tie", "double-rounding", "reciprocal"),
    "awkward": ("tie", "reciprocal", "decode-order"),
    "amax-steps": ("scale-rounding",),
    "scale-steps": ("scale-rounding",),
    "tiny": ("scale-underflow", "ftz"),
    "subnormal": ("subnormal", "scale-underflow", "ftz"),
    "huge": ("scale-overflow", "sat-vs-inf"),
    "zero": ("zero-block",),
    "signed-zeros": ("neg-zero",),
    "nan": ("nan-code",),
    "nan-sign": ("nan-code",),
    "inf": ("sat-vs-inf",),
    "zero-block": ("zero-block",),
    "inf-nan": ("nan-code", "sat-vs-inf"),
    "mixed": ("subnormal",),
}
#: Family -> the one that it joins where blocks are independent.
TOGETHER = {"mixed": "ordinary", "scale-steps": "amax-steps", "zero-block": "zero", "inf-nan": "inf"}


def plans(level: int) -> Iterator[Plan]:
    """The suites of level 1, and a first look at two presets at level 0."""
    if level == 0:
        for name, text in FIRST.items():
            preset = Preset.of(name)
            for op, make in (("quantize", _first), ("dequantize", _first_read)):
                place = Place(Scheme.parse(text).value.name, op, f"first-{name}", 0)
                yield Plan(place, partial(make, preset, Scheme.parse(text)))
    if level != 1:
        return
    for name, texts in SCHEMES.items():
        preset = Preset.of(name)
        for value, schemes in _by_value(preset, texts).items():
            yield Plan(Place(value, "quantize", name, 1), partial(_quantize, preset, schemes))
            yield positives(Place(value, "dequantize", name, 1), partial(_dequantize, preset, schemes))
    for name, values in CODECS.items():
        for value in values:
            yield positives(Place(value, "encode", name, 1), partial(_encode, Codec.of(name), VALUES[value]))
            if Codec.of(name).negative_zero != "keep":
                yield positives(Place(value, "decode", name, 1), partial(_decode, Codec.of(name), VALUES[value]))
    for name, texts in CONTAINERS.items():
        for value in dict.fromkeys(text.partition(".")[0] for text in texts):
            chosen = [Scheme.parse(text) for text in texts if text.startswith(f"{value}.")]
            for op in ("pack", "to_bytes", "unpack", "split"):
                yield positives(Place(value, op, name, 1), partial(_words, op, Container.of(name), chosen))


def _by_value(preset: Preset, texts: Sequence[str]) -> dict[str, list[Scheme]]:
    """The schemes of a preset by their value format; the one with the preset's own table has it."""
    found: dict[str, list[Scheme]] = {}
    for text in texts:
        table = preset.table
        scheme = Scheme.parse(text.format(table=table.name) if table else text, tables=[table] if table else [])
        found.setdefault(preset.require(scheme).value.name, []).append(scheme)
    return found


def presets_of(value: str) -> Iterator[tuple[Preset, list[Scheme]]]:
    """The presets that are asked for with a value format, each with its schemes of that format."""
    for name, texts in SCHEMES.items():
        preset = Preset.of(name)
        if schemes := _by_value(preset, texts).get(value):
            yield preset, schemes


def named(preset: Preset) -> dict[str, str]:
    """The words that say the preset's policies."""
    both = {"recipe": preset.recipe.name, "codec": preset.codec.name}
    return {axis: name for axis, name in both.items() if name != "canonical"}


# ---------------------------------------------------------------- data


class _Blocks:
    """The families of blocks for a scheme under a preset: rows of a block each."""

    def __init__(self, preset: Preset, scheme: Scheme, key: str) -> None:
        self.preset, self.scheme = preset, scheme
        self.width = 32 if scheme.block is None else scheme.block.extents[-1]
        self.rng, self.awkward_rng = rng_of(key), rng_of(f"{key}.awkward")
        self.half = float(scheme.half_range)
        if scheme.table is None and scheme.value.is_integer:
            self.half = float(scheme.value.highest)

    def given(self, x: F32) -> dict[str, npt.NDArray[Any]]:
        """Scales that have to be given: amax over the largest number, by row, 1 for a row without any."""
        if not self.preset.recipe.given_only:
            return {}
        with np.errstate(all="ignore"):
            size = np.where(np.isfinite(x), np.abs(x), np.float32(0)).max(axis=1, keepdims=True)
            scales = np.maximum(size / np.float32(self.half), np.float32(math.ldexp(1, -126)))
        return {"scales": np.where(size > 0, scales, np.float32(1)).astype(np.float32)}

    @property
    def has_significand(self) -> bool:
        """Whether a scale of the scheme is more than a power of two."""
        levels = (self.scheme.tensor, None if self.scheme.block is None else self.scheme.block.scale)
        return any(scale is not None and scale.mantissa_bits > 0 for scale in levels)

    def steps(self, x: F32) -> npt.NDArray[np.float64]:
        """What a code of 1 stands for in each row, by the law."""
        by: dict[str, Any] = {"recipe": self.preset.recipe, "codec": self.preset.codec}
        with np.errstate(all="ignore"):
            made = quantspec.quantize(x, self.scheme, scales=self.given(x).get("scales"), **by)
            table = self.scheme.table
            entries = None if table is None else np.array(table.bits, np.uint32).view(np.float32)
            code, number = (1, 1.0) if entries is None else (int(np.argmax(entries)), float(np.max(entries)))
            if entries is None and not self.scheme.value.is_integer:
                one = quantspec.encode(np.ones(1, np.float32), self.scheme.value)
                code = int(one[0])
            codes = np.full(x.shape, code, np.uint8)
            record = Quantized(
                self.scheme,
                codes,
                made.scale_codes,
                made.tensor_scale_code,
                self.preset.recipe,
                codec=self.preset.codec,
            )
            return quantspec.dequantize(record)[:, :1].astype(np.float64) / number

    def _rows(self, amax: npt.ArrayLike, fill: npt.ArrayLike) -> F32:
        """Rows of an amax at their ends and other elements below it; where there is no row, none."""
        peaks = np.asarray(amax, np.float32).reshape(-1)
        x = np.zeros((len(peaks), self.width), np.float32)
        x[:, 1:] = np.resize(np.asarray(fill, np.float32), (len(peaks), self.width - 1))
        x[:, 0] = peaks
        return x

    def below(self, peaks: npt.ArrayLike) -> F32:
        """Each amax, and parts of it beside, of both signs, none of them 0."""
        largest = np.asarray(peaks, np.float32).reshape(-1, 1)
        parts = (self.rng.integers(1, 4096, (len(largest), self.width - 1)) / np.float32(4096)).astype(np.float32)
        signs = np.where(np.arange(self.width - 1) % 3 == 0, np.float32(-1), np.float32(1))
        with np.errstate(all="ignore"):
            return np.concatenate([largest, largest * parts * signs], axis=1).astype(np.float32)

    def _limits(self) -> F32:
        """What separates codes, of both signs: exact middles, or a codec's own thresholds."""
        codec = self.preset.codec
        if codec.thresholds:
            own = bits32(codec.thresholds)
            return (both_signs(own) if codec.signed else own).view(np.float32)
        if self.scheme.table is not None:
            numbers = np.unique(np.array(self.scheme.table.bits, np.uint32).view(np.float32)).astype(np.float64)
            return ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
        middles = midpoints(self.scheme.value)
        return middles[evenly(len(middles), 60)].view(np.float32)

    def around(self, reach: Sequence[int], *, mantissas: npt.ArrayLike = 1.0, times: int = 1) -> F32:
        """Elements at the limits times the step of their row, and so many patterns away; each `times` times."""
        limits = self._limits()
        many = max(1, -(-len(limits) * len(reach) * times // (self.width - 2)))
        exponents = np.resize(np.array([0, -7, 3, -2]), many)
        peaks = np.ldexp(np.float32(self.half) * np.resize(np.asarray(mantissas, np.float32), many), exponents).astype(
            np.float32
        )
        if self.preset.recipe.amax == "signed":
            peaks = -peaks
        x = self._rows(peaks, 0)
        steps = self.steps(x)
        places = np.resize(np.repeat(limits, len(reach)), many * (self.width - 2)).reshape(many, -1)
        away = np.resize(np.tile(np.array(reach), len(limits)), places.size).reshape(many, -1)
        with np.errstate(all="ignore"):
            exact = (places.astype(np.float64) * steps).astype(np.float32)
        bits = exact.view(np.uint32).astype(np.int64) + away
        x[:, 2:] = np.where(exact == 0, np.int64(0), bits).astype(np.uint32).view(np.float32)
        largest = np.abs(peaks)[:, None]
        return np.clip(x, -largest, largest).astype(np.float32)

    def awkward(self) -> F32:
        """The limits and what is near under scales with a full significand: each order of operations rounds elsewhere."""
        mantissas = (1 + self.awkward_rng.integers(1, 1 << 23, (16,)) / (1 << 23)).astype(np.float32)
        return self.around([-2, -1, 0, 1, 2], mantissas=mantissas, times=3)

    def peaks(self, numbers: npt.ArrayLike) -> F32:
        """Numbers and one pattern to each side, as amax of a row each."""
        bits = np.asarray(numbers, np.float32).reshape(-1).view(np.uint32).astype(np.int64)
        near = (bits[:, None] + np.array([-1, 0, 1])).reshape(-1)
        found: F32 = np.clip(near, 1, 0x7F7FFFFF).astype(np.uint32).view(np.float32)
        return found

    def amax_steps(self) -> F32:
        """amax about every place in a binade where a rule for powers of two steps, and in another binade."""
        own = 2 * math.frexp(self.half)[0]
        mantissas = np.unique(np.array([1, 1.5, 1.75, 1.875, own]))
        return self.below(np.concatenate([self.peaks(mantissas), np.ldexp(mantissas[1::2], -20).astype(np.float32)]))

    def scale_steps(self) -> F32:
        """amax about H times a scale and times the middle of two, times g where there is one."""
        scale = self.scheme.tensor if self.scheme.block is None else self.scheme.block.scale
        if scale is None:
            return self.below([1])
        ones = _code_of_one(scale)
        top = scale.largest_code
        codes = np.unique(np.clip([1, ones, top - 2], 0, top - 1))
        low, high = (decode_codes(np.asarray(codes + more, scale.code_dtype), scale) for more in (0, 1))
        middle = (low.astype(np.float64) + high.astype(np.float64)) / 2
        with np.errstate(all="ignore"):
            edges = (np.concatenate([low, middle]) * self.half).astype(np.float32)
        edges = edges[np.isfinite(edges) & (edges > 0)][:7]
        found = self.below(self.peaks(edges)[1:])
        if self.scheme.block is not None and self.scheme.tensor is not None:
            found[-1] = self.below([self.half * self.scheme.block.scale.block_top])[0]
        return found

    def families(self) -> Iterator[tuple[str, str, F32]]:
        """Family, title, rows."""
        nan, negative, payload = (np.uint32(bits).view(np.float32) for bits in (0x7FC00000, 0xFFC00000, 0x7FA00001))
        base = self.below([self.half, 3.7, 1e-3, 255])
        yield "ordinary", "ordinary blocks of several sizes", base[:3]
        yield "ties", "elements on the thresholds of their block", self.around([0])
        yield "ulps", "elements one pattern to each side of the thresholds", self.around([-1, 1])
        if self.has_significand:
            yield "awkward", "elements about the thresholds under scales of many bits", self.awkward()
        yield "amax-steps", "amax about the steps within a binade", self.amax_steps()
        yield "scale-steps", "amax about scales and middles of scales", self.scale_steps()
        tiny = [math.ldexp(m, e) for m, e in ((1, -126), (1.75, -125), (1, -120), (1.5, -118), (1, -100))]
        yield "tiny", "blocks down to the smallest normal numbers", self.below(tiny)
        subnormal = np.array([1, 3, 0x12345, 0x400000, 0x7FFFFF], np.uint32).view(np.float32)
        yield "subnormal", "blocks of subnormal numbers", self.below(subnormal)
        huge = np.array([0x7F7FFFFF, 0x7F600000, 0x7F5FFFFF, 0x7F000000, 0x7E800001], np.uint32)
        yield "huge", "blocks up to the largest number", self.below(huge.view(np.float32))
        zeros = np.zeros_like(base)
        yield "zero", "a tensor of zeros", zeros
        yield "zero-block", "a block of zeros beside others", np.concatenate([base[:1], zeros[:1], base[1:2]])
        mixed = base[:2].copy()
        mixed[:, 2::4], mixed[:, 3::4], mixed[:, 5::8] = -0.0, 0.0, np.float32(-1e-9)
        yield "signed-zeros", "zeros of both signs, and numbers that become one", np.concatenate([mixed, -zeros[:1]])
        for family, title, entries in (
            ("nan", "a NaN first, within, and nothing else", (nan, nan, nan)),
            ("nan-sign", "a NaN with a sign, or a payload", (negative, payload, negative)),
            ("inf", "infinities first, within, and nothing else", (np.float32(np.inf), np.float32(-np.inf), np.inf)),
        ):
            x = base[:3].copy()
            x[0, 0], x[1, self.width // 2], x[2, :] = entries
            yield family, title, x
        both = base[:2].copy()
        both[0, :2], both[1, 3], both[1, 7] = (np.inf, nan), nan, -np.inf
        yield "inf-nan", "an infinity beside a NaN", both
        span = self.rng.integers(87, 167, (3, self.width)).astype(np.uint32) << np.uint32(23)
        bits = span | self.rng.integers(0, 1 << 23, (3, self.width)).astype(np.uint32)
        bits |= self.rng.integers(0, 2, (3, self.width)).astype(np.uint32) << np.uint32(31)
        yield "mixed", "elements over eighty binades", bits.view(np.float32)

    def together(self) -> Iterator[tuple[str, str, F32]]:
        """The families, those of one kind in one tensor: for schemes whose blocks do not see one another."""
        found: dict[str, tuple[str, list[F32]]] = {}
        for family, title, x in self.families():
            found.setdefault(TOGETHER.get(family, family), (title, []))[1].append(x)
        for family, (title, parts) in found.items():
            yield family, title, np.concatenate(parts)


def _code_of_one(scale: ScaleType) -> int:
    return scale.bias << scale.mantissa_bits


# ---------------------------------------------------------------- quantize and dequantize


def _asks(preset: Preset, scheme: Scheme, families: Sequence[str] = ()) -> Iterator[Ask]:
    """A request a family; a tensor scale sees one block only, so these have a case a row."""
    blocks = _Blocks(preset, scheme, f"{preset.name}.{scheme.text}")
    for family, title, x in (
        blocks.families() if scheme.block is None or scheme.tensor is not None else blocks.together()
    ):
        if families and family not in families:
            continue
        parts = [(family, x)]
        if scheme.block is None:
            parts = [
                (f"{family}-{number}", row[None]) for number, row in enumerate(x[evenly(len(x), 1 + (len(x) > 3))])
            ]
        for slug, rows in parts:
            given = {name: Tensor.of(array) for name, array in blocks.given(rows).items()}
            bugs = BUGS[family]
            yield ask(scheme, slug, title, {"x": Tensor.of(rows), **given}, *bugs, **named(preset))
    if scheme.block is not None and scheme.tensor is not None and not scheme.value.is_integer and not families:
        base = blocks.below([blocks.half, 3.7, 1e-3, 255])
        made = quantspec.quantize(base, scheme, recipe=preset.recipe, codec=preset.codec)
        level = {"tensor_scale_code": Tensor.of(np.asarray(made.tensor_scale_code))}
        for family, title, x in blocks.families():
            if family in ("ordinary", "scale-steps", "tiny", "huge", "zero-block", "nan", "inf"):
                given = {"x": Tensor.of(x), **level}
                yield ask(scheme, f"given-{family}", f"{title}, under a given tensor scale", given,
                          *BUGS[family], **named(preset))  # fmt: skip


def _quantize(preset: Preset, schemes: Sequence[Scheme], place: Place) -> Iterator[Case]:
    for scheme in schemes:
        first, *others = _asks(preset, scheme)
        yield from as_answered(place, first, others)


def _first(preset: Preset, scheme: Scheme, place: Place) -> Iterator[Case]:
    first, *others = _asks(preset, scheme, ("ordinary", "ties", "zero", "nan"))
    title = "integers, which the recipe does not cover"
    others.append(ask(Scheme.parse("q4s.native.b32-ue8m0"), "not-covered", title, dict(first.tensors), **named(preset)))
    yield from as_answered(place, first, others)


def _first_read(preset: Preset, scheme: Scheme, place: Place) -> Iterator[Case]:
    first, *others = _reads(preset, scheme)
    yield from as_answered(place, first, others[:1])


def _dequantize(preset: Preset, schemes: Sequence[Scheme]) -> Iterator[Ask]:
    for scheme in schemes:
        yield from _reads(preset, scheme)


def _scale_codes(scale: ScaleType) -> dict[str, list[int]]:
    """Kinds of scale codes of a type."""
    one = _code_of_one(scale)
    found = {"scales": [one, one + 1, max(one - 3, 1), scale.largest_code], "scale-lowest": [0, 1]}
    if scale.infinity_code is not None:
        found["scale-inf"] = [scale.infinity_code]
    return {**found, "scale-nan": [scale.nan_code]}


def _reads(preset: Preset, scheme: Scheme) -> Iterator[Ask]:
    """All codes under a scale of 1 and an awkward one; a row of codes under scales of every kind; tensor scales."""
    width = 32 if scheme.block is None else scheme.block.extents[-1]
    codes = legal_codes(scheme.value, scheme.table)
    every = np.resize(codes, (max(1, -(-len(codes) // width)), width))
    some = np.resize(codes[evenly(len(codes), width)], width)
    scale = scheme.tensor if scheme.block is None else scheme.block.scale
    if scale is None:
        return
    kinds = _scale_codes(scale)

    def read(slug: str, title: str, x: npt.NDArray[np.uint8], numbers: Sequence[int], *bugs: str, top: int = -1) -> Ask:
        level = np.resize(np.asarray(numbers), (len(x), 1))
        given = {"codes": codes_of(x, x.shape)}
        if scheme.block is None:
            given["tensor_scale_code"] = typed(code_dtype(scale), [numbers[0]], ())
        else:
            given["scale_codes"] = typed(code_dtype(scale), level, level.shape)
            if scheme.tensor is not None:
                code = _code_of_one(scheme.tensor) if top < 0 else top
                given["tensor_scale_code"] = typed(code_dtype(scheme.tensor), [code], ())
        return ask(scheme, slug, title, given, *bugs, **named(preset))

    yield read("codes", "every code", every, kinds["scales"][:3], "decode-order")
    for kind, numbers in kinds.items():
        rows = np.tile(some, (len(numbers) if scheme.block is not None else 1, 1))
        yield read(
            kind, f"scale codes {', '.join(f'{number:X}' for number in numbers)}", rows, numbers, "nan-code", "ftz"
        )
    if preset.recipe.amax == "signed" and scale.sign_bit:
        yield read("scale-negative", "a negative scale", some[None], [_code_of_one(scale) | scale.sign_bit], "neg-zero")
    if scheme.block is not None and scheme.tensor is not None:
        for name, bits in (("awkward", 0x3DCCCCCD), ("large", 0x45280000), ("lowest", 0x00800000), ("subnormal", 0x00012345),
                           ("largest", 0x7F7FFFFF), ("inf", 0x7F800000), ("nan", 0x7FC00000)):  # fmt: skip
            rows = np.tile(some, (3, 1))
            yield read(
                f"tensor-{name}", f"a tensor scale of {bits:08X}", rows, kinds["scales"], "decode-order", top=bits
            )


# ---------------------------------------------------------------- codecs and containers


def _encode(codec: Codec, value: ValueFormat) -> Iterator[Ask]:
    """Every middle of two codes and its neighbours; zeros, subnormal numbers, infinities, NaN; what is beyond the range."""
    middles = midpoints(value)
    for slug, title, x, bugs in (
        ("ties", "every middle of two codes", middles, ("tie",)),
        ("ulps", "beside every middle of two codes", beside(middles[evenly(len(middles), 90)], 1), ("tie",)),
        ("beyond", "at and beyond the ends of the range", overflow(value), ("sat-vs-inf",)),
        ("specials", "zeros, subnormals, infinities", specials(), ("neg-zero", "subnormal")),
        ("nan", "NaN of both signs, with payloads", both_signs(NANS), ("nan-code",)),
    ):
        yield _element(codec, value, slug, title, {"x": f32(x)}, *bugs)


def _decode(codec: Codec, value: ValueFormat) -> Iterator[Ask]:
    yield _element(codec, value, "codes", "every code", {"codes": codes_of(legal_codes(value))}, "neg-zero")


def _element(codec: Codec, value: ValueFormat, slug: str, title: str, given: Mapping[str, Tensor], *bugs: str) -> Ask:
    words = {"value": value.name, "codec": codec.name}
    return Ask(slug=slug, title=f"{value.name}: {title}", words=words, tensors=given, bugs=bugs)


#: Operation that reads words or bytes -> the one that writes them, whose draws and answer it is given.
WRITES = {"unpack": "pack", "split": "to_bytes"}


def _words(op: str, container: Container, schemes: Sequence[Scheme]) -> Iterator[Ask]:
    """Drawn codes, in whole blocks; for an operation that reads, what the law writes of them."""
    writes = WRITES.get(op, op)
    for scheme in schemes:
        width = scheme.block.extents[-1] if scheme.block is not None else 8
        for lines in (2, 8):
            shape = (lines, 2 * width) if scheme.store.d != 1 else (2 * width, lines)
            if scheme.store.d == 1:
                shape = (8 * lines, 2 * width)
            given = drawn(f"{writes}.{container.name}.{scheme.text}.{lines}", scheme, shape, finite=True)
            name = f"{shape[0]}x{shape[1]}"
            made = ask(
                scheme, name, f"drawn codes of {name}", given, "nibble-order", "word-order", container=container.name
            )
            yield made if op == writes else _read_back(made, writes, shape)


def _read_back(written: Ask, op: str, shape: tuple[int, ...]) -> Ask:
    """The request that reads what the law answers to one that writes."""
    answer = tell(Request(op, written.words, written.tensors)).answer
    if not isinstance(answer, Ok):
        raise DamagedError(f"{written.title}: the law says {str(answer)[:300]}")
    words = {**written.words, "shape": shape_text(shape)}
    levels = {name: entry for name, entry in written.tensors.items() if name != "codes"} if op == "pack" else {}
    return replace(written, words=words, tensors={**answer.tensors, **levels})

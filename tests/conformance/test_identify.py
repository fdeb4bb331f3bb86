"""Identify: policies drawn at random are found, whatever is not known is said to be none, and liars are caught."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest
from click.testing import CliRunner

import quantspec
from quantspec import QuantspecError, Scheme
from quantspec.amax import AMAX
from quantspec.codecs import CODECS, NAN_INTEGERS, NANS, OVERFLOWS, ROUNDINGS, ZERO_SIGNS, Codec
from quantspec.containers import CONTAINERS, Container
from quantspec.following import facts_of
from quantspec.recipes import RECIPES, Recipe
from quantspec.values import encode_bits
from quantspec_conformance.cli import main
from quantspec_conformance.identify import Found, identify
from quantspec_conformance.identify.asking import ANSWERED, BREAKS, Asking, Budget, wire
from quantspec_conformance.identify.axes import Way, element_ways, scale_ways
from quantspec_conformance.identify.cli import asking
from quantspec_conformance.identify.domains import DOMAINS, blocks_in
from quantspec_conformance.identify.hints import hint_lines
from quantspec_conformance.identify.layout import Layout
from quantspec_conformance.identify.pool import random_pool, scale_pool
from quantspec_conformance.identify.predictions import ANY, Codes
from quantspec_conformance.identify.quantizing import Quantizing
from quantspec_conformance.identify.text import found_lines
from quantspec_conformance.identify.verdict import PartFound
from quantspec_conformance.implementations.errors import ImplementationError
from quantspec_conformance.implementations.law import Law, rejection
from quantspec_conformance.peers.identifying import Documented, documented, recorded, right
from quantspec_conformance.peers.table import peers
from quantspec_conformance.protocol.messages import Answer, Hello, Identity, Ok, Request, Unsupported

T = TypeVar("T")
SCHEMES = (
    "e2m1.native.b32-ue8m0", "e4m3.native.b32-ue8m0", "e5m2.native.b32-ue8m0", "e3m2.native.b32-ue8m0",
    "e2m1.native.b16-ue4m3.t-f32", "e2m1.native.b16-ue4m3", "q8s.native.b32-f16", "q4f.native.b32-f16",
    "q8f.native.b32-f32", "q4f.native.b32-f32", "q4s.native.b32-bf16", "q8s.native.t-f32", "e4m3.native.t-f32",
    "q2s.native.b32-f32", "e4m3.native.b8-f16.t-f32",
)  # fmt: skip
POLICIES = 30


class Synthetic:
    """The reference under one recipe, codec and container: what an implementation with that policy would answer."""

    def __init__(
        self,
        recipe: Recipe,
        codec: Codec,
        container: Container = CONTAINERS["canonical"],
        ops: tuple[str, ...] = ("quantize",),
    ) -> None:
        self.recipe, self.codec, self.container, self.ops = recipe, codec, container, ops
        self.asked = 0

    def hello(self, hello: Hello) -> Identity:
        return Identity(name="synthetic", ops=self.ops)

    def handle(self, request: Request) -> Answer:
        self.asked += 1
        if request.op not in self.ops or set(request.words) - {"scheme", "value"}:
            return Unsupported(request.op)
        try:
            return Ok(getattr(self, request.op)(request))
        except QuantspecError as error:
            return rejection(error)

    def quantize(self, request: Request) -> dict[str, Any]:
        x = request.tensors["x"].array()
        made = quantspec.quantize(x, request.words["scheme"], recipe=self.recipe, codec=self.codec)
        parts = {"codes": made.codes, "scale_codes": made.scale_codes, "tensor_scale_code": made.tensor_scale_code}
        return {name: wire(part) for name, part in parts.items() if part is not None}

    def encode(self, request: Request) -> dict[str, Any]:
        return {"codes": wire(quantspec.encode(request.tensors["x"].array(), request.words["value"], codec=self.codec))}

    def _record(self, request: Request) -> quantspec.Quantized:
        scales, tensor = (request.tensors.get(name) for name in ("scale_codes", "tensor_scale_code"))
        return quantspec.Quantized(
            Scheme.parse(request.words["scheme"]),
            request.tensors["codes"].array(),
            None if scales is None else scales.array(),
            None if tensor is None else tensor.array(),
            self.recipe,
            codec=self.codec,
        )

    def dequantize(self, request: Request) -> dict[str, Any]:
        return {"y": wire(quantspec.dequantize(self._record(request)).view(np.uint32), "f32")}

    def pack(self, request: Request) -> dict[str, Any]:
        return {"words": wire(quantspec.pack(self._record(request), container=self.container).words)}

    def to_bytes(self, request: Request) -> dict[str, Any]:
        data = quantspec.to_bytes(self._record(request), container=self.container)
        return {"bytes": wire(np.frombuffer(data, np.uint8))}

    def close(self) -> None:
        """Nothing."""


def draw(seed: int) -> tuple[Scheme, dict[str, Way], Way, Recipe, Codec]:
    """A scheme and a policy: every axis drawn by itself from the rows; one that answers at least ordinary numbers."""
    random = np.random.default_rng(seed)

    def pick(listed: Sequence[T]) -> T:
        return listed[int(random.integers(len(listed)))]

    while True:
        scheme, amax = Scheme.parse(pick(SCHEMES)), pick(AMAX)
        names = ("tensor", "block") if scheme.block is not None and scheme.tensor is not None else ("single",)
        stages = {
            name: pick([way for way in scale_ways(name, scheme, facts_of(scheme)) if way.amax == amax])
            for name in names
        }
        element = pick(element_ways(scheme, [amax]))
        codec = Codec(
            "drawn", pick([one for one in ROUNDINGS if one != "thresholds"]), pick(OVERFLOWS), pick(NANS),
            pick(ZERO_SIGNS), pick(NAN_INTEGERS),
        )  # fmt: skip
        programs: dict[str, Any] = {name: way.program for name, way in stages.items()}
        x = random.standard_normal((4, 32)).astype(np.float32)
        try:
            recipe = Recipe("drawn", amax=amax, element=element.program, decode=("y = mul(s, v)",), **programs)
            quantspec.quantize(x, scheme, recipe=recipe, codec=codec)
        except QuantspecError:
            continue
        return scheme, stages, element, recipe, codec


def _search(scheme: Scheme, policy: Synthetic) -> Quantizing:
    search = Quantizing(Asking(policy, Layout(scheme), Budget(2000)))
    search.run()
    return search


@pytest.mark.parametrize("seed", range(POLICIES))
def test_a_policy_drawn_at_random_is_found(seed: int) -> None:
    scheme, stages, element, recipe, codec = draw(seed)
    print(f"seed {seed}: {scheme.text}\n{recipe.text}\n{codec}")
    search = _search(scheme, Synthetic(recipe, codec))
    assert search.asking.budget.used <= 2000
    assert not search.evidence.changed
    for left in search.stages:
        assert left.alive, left.name
        labels = [dict(left.stage.label(index)) for index in left.alive]
        if left.name in stages:
            title = {"tensor": "tensor scale", "block": "block scale", "single": "scale"}[left.name]
            wanted = {"amax": recipe.amax, title: stages[left.name].label}
        else:
            wanted = {"element": element.label, "rounding": _named_rounding(scheme, codec, labels)}
        assert any(wanted.items() <= label.items() for label in labels), (wanted, labels)
        if left.name != "code":  # those of NaN are what is left of codes
            _same_elsewhere(search, left.stage, left.alive)
        assert not left.exempt


def _named_rounding(scheme: Scheme, codec: Codec, labels: list[dict[str, str]]) -> str:
    """The rounding under the name that it has where several are one: every number of 2 bits is its own neighbour's tie."""
    numbers = (np.arange(-40, 40, dtype=np.float32) / 8).view(np.uint32)
    wanted = encode_bits(numbers, scheme.value, None, replace(codec, overflow="saturate"))
    for name in dict.fromkeys(label["rounding"] for label in labels):
        if np.array_equal(
            wanted, encode_bits(numbers, scheme.value, None, replace(codec, rounding=name, overflow="saturate"))
        ):
            return name
    return codec.rounding


def _same_elsewhere(search: Quantizing, stage: Any, alive: list[int]) -> None:
    """Ways that are left are equal on questions that were never asked, too; but for rare ones."""
    evidence, layout = search.evidence, search.layout
    scale = layout.scheme.tensor if layout.scheme.block is None else layout.scheme.block.scale
    assert scale is not None
    pool = scale_pool(layout, facts_of(layout.scheme), scale, 999, few=True).joined(random_pool(layout, 60, 999))
    which = evidence.add(pool)
    evidence.asking.budget.most = 10**6  # those that the policy answers at all
    evidence.ask(which)
    which = which[evidence.answers.status[which] == ANSWERED]
    assert len(which)
    tensor, scales = evidence.scales(which)
    at = evidence.measured.take(which)
    predicted = stage.predict(alive[:40], at, tensor, scales)
    if isinstance(stage, Codes):
        others = replace(stage, nan=False).predict(alive[:40], at, tensor, scales)
        predicted = np.where(predicted == ANY, others, predicted)
    answers = evidence.answers.at(which)
    came = stage.observed(answers.tensor, answers.scales, answers.codes)
    assert (predicted == came).all(axis=(0, 2)).mean() > 0.99


# ---------------------------------------------------------------- rows by name


def one(implementation: Any, scheme: str, max_blocks: int = 2000) -> Found:
    (found,) = identify(implementation, [scheme], max_blocks=max_blocks)
    return found


@pytest.mark.parametrize(
    ("preset", "scheme"),
    [
        ("ocp-mx", "e2m1.packed_native_0.b32-ue8m0"),
        ("nvfp4-torchao", "e2m1.packed_native_0.b16-ue4m3.t-f32"),
        ("nvfp4-te", "e2m1.packed_native_0.b16-ue4m3.t-f32"),
        ("ggml-q8_0", "q8s.native.b32-f16"),
        ("ggml-q4_0", "q4f.packed_native_0.b32-f16"),
        ("mlx", "e2m1.packed_u32_0.b16-ue4m3.t-f32"),
        ("bnb-nf4", "q4f.packed_native_0.lut-nf4.b32-f32"),
        ("gfloat-mx", "e5m2.native.b32-ue8m0"),
        ("gguf-mxfp4", "e2m1.packed_native_0.b32-ue8m0"),
        ("gguf-q4_0", "q4f.packed_native_0.b32-f16"),
        ("torchao-rceil", "e5m2.native.b32-ue8m0"),
        ("torchao-floor", "e5m2.native.b32-ue8m0"),
        ("torchao-even", "e5m2.native.b32-ue8m0"),
        ("torchao-ceil", "e5m2.native.b32-ue8m0"),
        ("jax-mxfp8", "e4m3.native.b32-ue8m0"),
        ("jax-nvfp4", "e2m1.native.b16-ue4m3"),
        ("mlx-mxfp8", "e4m3.native.b32-ue8m0"),
        ("mlx-nvfp4", "e2m1.native.b16-ue4m3"),
        ("compressed-tensors-int", "q8f.native.b32-f32"),
    ],
)
def test_a_preset_is_found_by_its_name(preset: str, scheme: str) -> None:
    row = quantspec.presets.PRESETS[preset]
    ops = ("quantize", "dequantize", "to_bytes")
    found = one(Synthetic(row.recipe, row.codec, row.container, ops), scheme)
    assert found.outcome == "identified", list(found_lines(found))
    assert row.recipe.name in found.recipes
    assert row.codec.name in found.codecs
    assert row.id in found.presets
    parts = {part.part: part for part in found.parts}
    decodes = parts["dequantize"].axes["decode"]
    assert any(RECIPES[name].steps("decode") == row.recipe.steps("decode") for name in decodes)
    if "to_bytes" in parts:
        assert row.container.name in parts["to_bytes"].axes["container"][0].split(" or ")


def test_the_law_is_canonical_with_every_alternative_refuted() -> None:
    found = one(Law(), "e4m3.packed_native_0.b32-ue8m0")
    assert (found.outcome, found.recipes, found.presets) == ("identified", ["canonical"], ["canonical@0.1.0"])
    assert found.codecs[0] == "canonical"
    refuted = {(part.part, line.axis, line.way) for part in found.parts for line in part.refuted}
    assert {("scale", "amax", "all"), ("scale", "scale", "ocp-mx"), ("codes", "rounding", "away")} <= refuted
    assert {("codes", "zero sign", "drop"), ("codes", "nan", "positive"), ("encode", "overflow", "ieee")} <= refuted
    floor = next(line for part in found.parts for line in part.refuted if line.way == "ocp-mx")
    assert sum(bits != "00000000" for bits in floor.by.x) == 1
    assert found.path[0]["before"] > found.path[-1]["after"]


@pytest.mark.parametrize("codec", ["canonical", "ml-dtypes", "ptx", "mlx-fp4", "ties-away"])
def test_who_encodes_only_has_a_codec(codec: str) -> None:
    found = one(Synthetic(RECIPES["canonical"], CODECS[codec], ops=("encode",)), "e2m1.native.b32-ue8m0")
    (part,) = found.parts
    assert found.outcome == part.outcome == "identified"
    assert codec in part.axes["codec"][0].split(" or ")


class Given(Synthetic):
    """It is given scales, and chooses none."""

    def quantize(self, request: Request) -> dict[str, Any]:
        x, scales = request.tensors["x"].array(), request.tensors["scale_codes"].array()
        made = quantspec.quantize(x, request.words["scheme"], scale_codes=scales, recipe=self.recipe, codec=self.codec)
        return {"codes": wire(made.codes), "scale_codes": wire(scales)}

    def handle(self, request: Request) -> Answer:
        return Unsupported("scales") if "scale_codes" not in request.tensors else super().handle(request)


def test_who_is_given_scales_has_a_quotient_and_a_codec() -> None:
    found = one(Given(RECIPES["onnx-qdq"], CODECS["onnx"]), "q8f.native.b32-f32")
    assert (found.outcome, found.given, found.recipes) == ("identified", True, ["onnx-qdq"])
    assert "onnx" in found.codecs
    assert [part.part for part in found.parts] == ["codes"]


# ---------------------------------------------------------------- none of the known


def test_an_unknown_rule_is_none_of_the_known_with_a_small_counterexample() -> None:
    """The threshold of another rule: it bumps the exponent from 1.6 on."""
    recipe = replace(
        RECIPES["ocp-mx"], name="of-its-own", single=("large = mul(a, 0x1.4p+0)", "scale = pow2[floor](large)")
    )
    found = one(Synthetic(recipe, CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0")
    assert (found.outcome, found.recipes, found.presets) == ("none of the known", [], [])
    scale, codes = found.parts
    assert (scale.outcome, codes.outcome) == ("none of the known", "identified")
    assert codes.axes["rounding"] == ["even"]
    nearest = scale.nearest[0]
    assert {ways["amax"] for ways in nearest.ways} == {"all"}
    assert 0.5 * nearest.of < nearest.agrees < nearest.of
    assert all(good < count for good, count in nearest.families.values())
    assert scale.counterexample is not None
    assert sum(bits != "00000000" for bits in scale.counterexample.x) == 1
    assert any("none of the known" in line for line in found_lines(found))


def test_an_unknown_rounding_is_none_of_the_known() -> None:
    class Odd(Synthetic):
        def quantize(self, request: Request) -> dict[str, Any]:
            made = super().quantize(request)
            codes = np.array(made["codes"].array())
            return {**made, "codes": wire(np.where(codes == 0x05, np.uint8(0x04), codes))}

    found = one(Odd(RECIPES["ocp-mx"], CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0")
    scale, codes = found.parts[:2]
    assert (found.outcome, scale.outcome, codes.outcome) == ("none of the known", "identified", "none of the known")
    assert (found.codecs, found.presets) == ([], [])
    assert codes.counterexample is not None
    assert (codes.counterexample.expected, codes.counterexample.got) == ("05", "04")
    assert sum(bits != "00000000" for bits in codes.counterexample.x) <= 2


# ---------------------------------------------------------------- except


class Edged(Synthetic):
    """A policy that is left in the blocks that meet a condition, which is told the elements of each."""

    left: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]

    def quantize(self, request: Request) -> dict[str, Any]:
        made = super().quantize(request)
        x = np.array(request.tensors["x"].array())
        codes, scales = np.array(made["codes"].array()), np.array(made["scale_codes"].array())
        with np.errstate(invalid="ignore"):
            met = type(self).left(x.reshape(scales.shape[0], -1))
        codes[met] ^= np.uint8(1)
        scales[met] ^= np.uint8(2)
        return {**made, "codes": wire(codes), "scale_codes": wire(scales)}


class Wrapping(Edged):
    """Tiny blocks have other scales, as where an exponent wraps."""

    left = staticmethod(lambda rows: (np.abs(rows).max(axis=1) < 2.0**-124) & (rows != 0).any(axis=1))


class Payload(Edged):
    """Blocks with a NaN have other codes."""

    left = staticmethod(lambda rows: np.isnan(rows).any(axis=1))


class Ordinary(Edged):
    """One block in eight of ordinary numbers has other codes: a fault that is no edge."""

    left = staticmethod(
        lambda rows: (rows.view(np.uint32).sum(axis=1, dtype=np.uint64) % 8 == 0) & (rows != 0).all(axis=1)
    )


class Everywhere(Edged):
    """Blocks with a NaN, an infinity, zeros alone, tiny and huge ones are all others: too many domains to leave out."""

    left = staticmethod(
        lambda rows: ~np.isfinite(rows).all(axis=1) | (np.nan_to_num(np.abs(rows)).max(axis=1) < 2.0**-120)
        | (np.nan_to_num(np.abs(rows)).max(axis=1) > 2.0**127)
    )  # fmt: skip


@pytest.mark.parametrize(("liar", "domain"), [(Wrapping, "tiny"), (Payload, "NaN")])
def test_a_rule_that_is_left_at_an_edge_is_known_but_for_that_edge(liar: Callable[..., Synthetic], domain: str) -> None:
    found = one(liar(RECIPES["ocp-mx"], CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0")
    assert (found.outcome, found.recipes) == ("identified, except", ["ocp-mx"]), list(found_lines(found))
    assert "ocp-mx@1.0" in found.presets
    exempt = [place for part in found.parts for place in part.exempt]
    assert {place.domain for place in exempt} == {domain}
    assert all(place.agrees < place.of and place.by is not None for place in exempt)
    assert any("except" in line for line in found_lines(found))
    assert found.blocks <= 2000


@pytest.mark.parametrize("liar", [Ordinary, Everywhere])
def test_a_rule_that_is_left_elsewhere_or_at_every_edge_is_none(liar: Callable[..., Synthetic]) -> None:
    found = one(liar(RECIPES["ocp-mx"], CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0")
    assert found.outcome == "none of the known", list(found_lines(found))
    assert found.presets == []


def test_domains_hold_no_ordinary_number() -> None:
    for scheme in map(Scheme.parse, SCHEMES):
        layout = Layout(scheme)
        x = (
            np.random.default_rng(3)
            .uniform(0.5, 1, (20, layout.blocks, layout.size))
            .astype(np.float32)
            .view(np.uint32)
        )
        for name in DOMAINS:
            assert not blocks_in((name,), layout, x).any(), (scheme.text, name)


class Named(Synthetic):
    """It has two ways, and takes the name of the second."""

    def handle(self, request: Request) -> Answer:
        words = dict(request.words)
        recipe = words.pop("recipe", "ocp-mx")
        self.recipe = RECIPES[recipe]
        return super().handle(replace(request, words=words))


def test_one_of_several_ways_is_asked_for_by_its_name() -> None:
    found = list(identify(Named(RECIPES["ocp-mx"], CODECS["canonical"]), ["e2m1.native.b32-ue8m0"], recipe="rceil"))
    assert [(one.asked_as, one.recipes) for one in found] == [("rceil", ["rceil"])]
    (unasked,) = identify(Named(RECIPES["rceil"], CODECS["canonical"]), ["e2m1.native.b32-ue8m0"])
    assert unasked.recipes == ["ocp-mx"]


# ---------------------------------------------------------------- the recorded peers


@pytest.mark.parametrize("row", documented(), ids=lambda row: f"{row.peer}-{row.scheme}-{row.asked_as}")
def test_what_was_found_of_a_peer_is_what_is_documented(row: Documented) -> None:
    found = {(one["peer"], one["scheme"], one["as"]): one for one in recorded()["answers"]}
    answer = found[row.peer, row.scheme, row.asked_as]
    assert right(row, answer) == ""
    assert answer["blocks"] <= 2000
    for name, known in ((row.recipe, RECIPES), (row.codec, CODECS)):
        assert not name or name in known
    assert row.text.endswith(".")


def test_every_peer_is_documented_and_a_wrong_answer_is_seen() -> None:
    assert {row.peer for row in documented()} == {peer.name for peer in peers()}
    assert {one["version"].split("+")[0] for one in recorded()["answers"] if one["peer"] == "torch"} == {"2.13.0"}
    row = next(row for row in documented() if row.peer == "gguf")
    answer = next(one for one in recorded()["answers"] if (one["peer"], one["scheme"]) == (row.peer, row.scheme))
    assert right(row, {**answer, "recipes": ["ocp-mx"]}).startswith("recipes")
    assert right(row, {**answer, "codecs": []}).startswith("codecs")
    assert right(row, {**answer, "outcome": "none of the known"}).startswith("outcome")
    part = {"part": "scale", "outcome": "identified, except", "except": [{"domain": "zeros"}]}
    assert right(row, {**answer, "parts": [part]}) == "except zeros"


# ---------------------------------------------------------------- liars


class Fickle(Synthetic):
    """Every other answer has another first code."""

    def quantize(self, request: Request) -> dict[str, Any]:
        made = super().quantize(request)
        codes = np.array(made["codes"].array())
        codes.reshape(-1)[:: max(codes.size - 1, 1)] ^= np.uint8(self.asked % 2)
        return {**made, "codes": wire(codes)}


class Refusing(Synthetic):
    """It refuses whatever it is given."""

    def quantize(self, request: Request) -> dict[str, Any]:
        raise quantspec.UnsupportedError("POL-1", "recipe='x' is not defined")


class Forgetful(Synthetic):
    """It answers each block once; asked again for nothing but blocks that it knows, it breaks."""

    def quantize(self, request: Request) -> dict[str, Any]:
        rows = {row.tobytes() for row in np.array(request.tensors["x"].array())}
        seen = self.__dict__.setdefault("seen", set())
        if rows <= seen:
            raise quantspec.HostError("QNT-1", "out of memory")
        seen |= rows
        return super().quantize(request)


class Neighbourly(Synthetic):
    """It answers a lone block by the law; many at once have the scales of their neighbours."""

    def quantize(self, request: Request) -> dict[str, Any]:
        made = super().quantize(request)
        scales = np.array(made["scale_codes"].array())
        return {**made, "scale_codes": wire(np.roll(scales, 1, axis=0))}


class Broken(Synthetic):
    """Its scale codes have another shape than the grid."""

    def quantize(self, request: Request) -> dict[str, Any]:
        made = super().quantize(request)
        return {**made, "scale_codes": wire(np.zeros(3, np.uint8))}


class EvenRows(Synthetic):
    """It takes an even number of rows alone, as mlx does."""

    def quantize(self, request: Request) -> dict[str, Any]:
        if request.tensors["x"].shape[0] % 2:
            raise quantspec.ShapeError("BLK-1", "x has an odd number of rows")
        return super().quantize(request)


def test_who_takes_no_odd_number_of_rows_is_asked_for_even_ones() -> None:
    found = one(EvenRows(RECIPES["ocp-mx"], CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0")
    assert (found.outcome, found.recipes) == ("identified", ["ocp-mx"])


@pytest.mark.parametrize(
    ("liar", "outcome"),
    [
        (Fickle, "answers change"),
        (Forgetful, "answers change"),
        (Neighbourly, "answers change"),
        (Refusing, "refuses"),
        (Broken, "refuses"),
    ],
)
def test_liars_are_not_identified(liar: Callable[..., Synthetic], outcome: str) -> None:
    found = one(liar(RECIPES["canonical"], CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0")
    assert found.outcome == outcome
    assert found.blocks <= 2000


class Hangs(Synthetic):
    """It never answers, and says why on stderr."""

    def handle(self, request: Request) -> Answer:
        self.asked += 1
        raise ImplementationError("timeout", "no answer to quantize for 10 s", "Traceback\nMemoryError: no room")


class HangsLater(Synthetic):
    """It answers ordinary blocks, and breaks on those with a NaN."""

    def handle(self, request: Request) -> Answer:
        if request.op == "quantize" and np.isnan(request.tensors["x"].array()).any():
            self.asked += 1
            raise ImplementationError("crash", "the process ended: signal SIGSEGV")
        return super().handle(request)


def test_who_never_answers_is_not_asked_for_minutes() -> None:
    hangs = Hangs(RECIPES["ocp-mx"], CODECS["canonical"])
    found = one(hangs, "e2m1.packed_native_0.b32-ue8m0")
    assert (found.outcome, hangs.asked) == ("refuses", BREAKS)
    assert list(found.refusals) == [
        "failed: timeout: no answer to quantize for 10 s; its last words: MemoryError: no room"
    ]
    later = HangsLater(RECIPES["ocp-mx"], CODECS["canonical"])
    found = one(later, "e2m1.packed_native_0.b32-ue8m0")
    assert later.asked > 2 * BREAKS and found.outcome == "identified"
    assert list(found.refusals) == ["failed: crash: the process ended: signal SIGSEGV"]


def test_a_terminal_is_told_what_is_asked_and_a_pipe_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with asking("e2m1.native.t-f32"):
        assert capsys.readouterr().err == ""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: True, raising=False)
    with pytest.raises(ZeroDivisionError), asking("e2m1.native.t-f32"):
        assert capsys.readouterr().err.endswith("asking e2m1.native.t-f32 ...")
        raise ZeroDivisionError
    assert "e2m1" not in capsys.readouterr().err


def test_other_bits_and_no_answer_the_second_time_are_told_apart() -> None:
    """A crash in the middle is no change of bits."""
    forgetful, fickle = (
        " ".join(one(liar(RECIPES["ocp-mx"], CODECS["canonical"]), "e2m1.packed_native_0.b32-ue8m0").notes)
        for liar in (Forgetful, Fickle)
    )
    assert "got no answer the second time" in forgetful and "got other bits" not in forgetful
    assert "got other bits the second time" in fickle and "got no answer" not in fickle


def test_a_feature_that_names_the_operation_alone_is_said_to_say_nothing() -> None:
    class Bare(Synthetic):
        said = "quantize:"

        def handle(self, request: Request) -> Answer:
            return Unsupported(self.said)

    class Plain(Bare):
        said = "scale:ue8m0"

    notes = [one(liar(RECIPES["ocp-mx"], CODECS["canonical"]), "q8s.native.t-f32").notes for liar in (Bare, Plain)]
    assert notes == [
        ["quantize is answered unsupported, without saying what is lacking"],
        ["quantize is answered unsupported: scale:ue8m0"],
    ]


def test_a_small_budget_is_kept() -> None:
    policy = Synthetic(RECIPES["ocp-mx"], CODECS["canonical"])
    found = one(policy, "e2m1.packed_native_0.b32-ue8m0", 40)
    assert found.blocks <= 40
    assert found.outcome == "identified"


def test_what_is_not_offered_is_said() -> None:
    found = one(Synthetic(RECIPES["canonical"], CODECS["canonical"], ops=("decode",)), "e2m1.packed_native_0.b32-ue8m0")
    assert (found.outcome, found.parts, found.blocks) == ("not offered", [], 0)


# ---------------------------------------------------------------- the command


def test_the_command_prints_and_exits_by_outcome() -> None:
    run = CliRunner().invoke(main, ["identify", "reference", "--format", "q8s.native.t-f32", "--max-blocks", "300"])
    assert run.exit_code == 0, run.output
    assert "preset        canonical@0.1.0" in run.output
    assert "refuted by" in run.output
    as_json = CliRunner().invoke(main, ["identify", "reference", "--format", "q8s.native.t-f32", "--json"])
    told = json.loads(as_json.output)
    assert told["formats"][0]["outcome"] == "identified"
    assert CliRunner().invoke(main, ["identify", "nobody"]).exit_code == 2
    assert CliRunner().invoke(main, ["identify", "reference", "--format", "e9m9.native.t-f32"]).exit_code == 2
    misspelt = CliRunner().invoke(main, ["identify", "reference", "--recipe", "ocp_mx"])
    assert misspelt.exit_code == 2 and "(near: ocp-mx)" in misspelt.output


def test_brief_leaves_out_the_path_and_what_refutes() -> None:
    command = ["identify", "reference", "--format", "q8s.native.t-f32", "--max-blocks", "300"]
    whole, brief = (CliRunner().invoke(main, [*command, *more]).output for more in ((), ("--brief",)))
    assert "\n  path\n" in whole and "\n  refuted by\n" in whole
    assert "path" not in brief and "refuted by" not in brief
    assert set(brief.splitlines()) < set(whole.splitlines())


def test_questions_that_split_nothing_are_not_on_the_printed_path() -> None:
    found = one(Synthetic(RECIPES["ggml-q8_0"], CODECS["ties-away"]), "q8f.native.b32-f16")
    idle = [step for step in found.path if step["after"] == step["before"]]
    printed = [line for line in found_lines(found) if line.endswith(" ways")]
    assert idle and len(printed) == len(found.path) - len(idle)
    splits = [re.findall(r"(\d+) -> (\d+) ways", line)[0] for line in printed]
    assert all(int(after) < int(before) for before, after in splits)


def test_what_to_declare_and_what_was_not_asked_is_said() -> None:
    """The hints of a library that has ocp-mx and ptx, ggml's blocks, and integers in a form that nobody asks for."""
    scheme = "e2m1.native.b32-ue8m0"
    container = PartFound("to_bytes", "identified", [{"container": "ggml-q8_0"}])
    found = [
        Found(scheme, "identified", recipes=["ocp-mx", "torchao-floor"], codecs=["ptx", "torchao"]),
        Found("q8f.native.b32-f16", "identified", [container], recipes=["canonical"], codecs=["canonical", "ptx"]),
        Found("q4f.native.b32-f16", "not offered"),
    ]
    mine = Identity(name="mine", values=("e2m1", "q8f", "q4s"), stores=("packed_u32",), scales=("f16",))
    lines = list(hint_lines(mine, found, asked=False))
    assert [" ".join(line.split(" in hello")[0].split(": listed")[0].split()) for line in lines] == [
        "declare policy.recipe=ocp-mx",
        "declare policy.codec=ptx",
        "declare policy.container=ggml-q8_0",
        "no preset joins ocp-mx and ptx: cases of ocp-mx name the codec canonical; "
        "quantspec expect script writes down what differs",
        "not asked q4s",
    ]
    assert lines[-1].endswith("--format q4s.packed_u32_0.b32-f16")
    declared = {"recipe": "ocp-mx, even", "codec": "ptx", "container": "ggml-q8_0"}
    assert [line.split()[0] for line in hint_lines(replace(mine, policies=declared), found, asked=True)] == ["no"]
    assert (
        list(hint_lines(Identity(name="mine"), [Found(scheme, "identified", recipes=["canonical"])], asked=False)) == []
    )


def test_what_to_declare_of_a_preset_are_its_rows() -> None:
    """More rows may agree; those of the preset that was found go together."""
    found = Found(
        "q8f.native.b32-f16", "identified", recipes=["canonical", "ggml-q8_0"], codecs=["burn-cpu", "ties-away"]
    )
    found.presets = ["ggml-q8_0@0.19.0"]
    lines = list(hint_lines(Identity(name="mine"), [found], asked=True))
    assert [line.split()[1] for line in lines] == ["policy.recipe=ggml-q8_0", "policy.codec=ties-away"]

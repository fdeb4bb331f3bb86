"""Liars of fused uses: implementations of the protocol that do one thing wrong, as kernels and compilers do.

Each is the reference but for one operation. Run one by hand:
    quantspec run --impl py:tests/fakes_fused.py:MulAndAdd --select op:product
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Quantized, Scheme, Step
from quantspec.chain import chain
from quantspec.fma import fma
from quantspec.outputs import narrowed, output_type
from quantspec.rounding import add, canonical, multiply, to_float, widen
from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.law import Law, example_of
from quantspec_conformance.protocol.messages import Answer, Hello, Identity, Ok, Request
from quantspec_conformance.state import State
from quantspec_conformance.verbs import steps_of

__all__ = ["MEANT"]

F32 = npt.NDArray[np.float32]
Fused = Callable[[F32, F32, F32], F32]


def mul_and_add(x: F32, y: F32, z: F32) -> F32:
    """Two roundings."""
    return add(multiply(x, y), z)


def through_binary64(x: F32, y: F32, z: F32) -> F32:
    """A sum in binary64, rounded again."""
    with np.errstate(all="ignore"):
        return canonical((x.astype(np.float64) * y + z).astype(np.float32))


class Lying(Law):
    """The reference, but that `lie` may answer in its place."""

    def hello(self, hello: Hello) -> Identity:
        """The liar's name."""
        return Identity(name=type(self).__name__, version="0", language="Python")

    def handle(self, request: Request) -> Answer:
        """What the law accepts is lied about."""
        right = super().handle(request)
        if not isinstance(right, Ok):
            return right
        wrong = self.lie(request, State(example_of(request)), right)
        return right if wrong is None else wrong

    def lie(self, request: Request, state: State, right: Ok) -> Answer | None:
        """Another answer; None for the right one."""
        raise NotImplementedError


class Product(Lying):
    """A product with other steps."""

    run = 32
    order = 1
    fused: Fused = staticmethod(fma)
    first_product = False
    first_run = False
    skip = False

    def lie(self, request: Request, state: State, right: Ok) -> Answer | None:
        """The sum of the liar's steps."""
        if request.op != "product":
            return None
        x, w = to_float(widen(state.need("x"))), quantspec.dequantize(state.quantized())
        rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])[..., np.newaxis]
        total = np.zeros((len(rows), w.shape[1]), np.float32)
        for start in range(0, x.shape[-1], self.run):
            p = np.zeros_like(total)
            indices = range(x.shape[-1])[start : start + self.run][:: self.order]
            for index in indices:
                a, b = np.broadcast_arrays(rows[:, index], w[index])
                if self.first_product and index == indices[0]:
                    p = multiply(a, b)
                    continue
                made = type(self).fused(a, b, p)
                p = np.where((a == 0) | (b == 0), p, made) if self.skip else made
            total = p if self.first_run and start == 0 else add(total, p)
        y = narrowed(canonical(total), output_type(state.word("to", "f32")))
        return Ok({"y": Tensor.of(y.reshape(right.tensors["y"].shape))})


class MulAndAdd(Product):
    """Rounds each product before it is added."""

    fused = staticmethod(mul_and_add)


class ThroughBinary64(Product):
    """Has no fma and adds in binary64."""

    fused = staticmethod(through_binary64)


class WholeK(Product):
    """One run of all indices."""

    run = 1 << 30


class RunsOf16(Product):
    """Runs of half the length."""

    run = 16


class RunsOf64(Product):
    """Runs of twice the length."""

    run = 64


class Descending(Product):
    """From the last index of a run to the first."""

    order = -1


class StartsFromProduct(Product):
    """The first product of a run is taken as it is, and so is the first run."""

    first_product = first_run = True


class SkipsZeros(Product):
    """A factor of zero adds nothing, whatever the other is."""

    skip = True


class Chain(Lying):
    """A chain whose steps were changed by a compiler."""

    def lie(self, request: Request, state: State, right: Ok) -> Answer | None:
        """The chain of the changed steps."""
        if request.op != "chain":
            return None
        y = self.made(state.quantized(), steps_of(state), state.word("to", "f32"))
        return None if y is None else Ok({"y": Tensor.of(np.asarray(y).reshape(right.tensors["y"].shape))})

    def made(self, tensor: Quantized, steps: list[Step], to: str) -> npt.NDArray[Any] | None:
        """The numbers; None for the right ones."""
        changed = self.changed(steps)
        return None if changed is None else chain(tensor, changed, to)

    def changed(self, steps: list[Step]) -> list[Step] | None:
        """Other steps."""
        raise NotImplementedError


def carried(y: F32) -> Quantized:
    """A tensor whose dequantized numbers are these."""
    return Quantized(Scheme.parse("q8s.native.b1-f32"), np.ones(y.shape, np.uint8), y.view(np.uint32), None)


def operand(step: Step, shape: tuple[int, ...]) -> F32:
    """The numbers of an operand."""
    return np.broadcast_to(to_float(widen(np.asarray(step.operand))), shape)


class Contracts(Chain):
    """Joins a multiplication with the addition or subtraction behind it."""

    def made(self, tensor: Quantized, steps: list[Step], to: str) -> npt.NDArray[Any] | None:
        """The chain with an fma wherever one fits."""
        y, left = quantspec.dequantize(tensor), list(steps)
        while left:
            step = left.pop(0)
            if step.op == "mul" and left and left[0].op in ("add", "sub"):
                then = left.pop(0)
                c = operand(then, y.shape)
                y = fma(y, operand(step, y.shape), -c if then.op == "sub" else c)
            else:
                y = chain(carried(y), [step])
        return narrowed(canonical(np.asarray(y)), output_type(to))


class ContractsDequantize(Chain):
    """Joins the multiplication of dequantize with the first addition."""

    def made(self, tensor: Quantized, steps: list[Step], to: str) -> npt.NDArray[Any] | None:
        """The scale and the number go into an fma."""
        block = tensor.scheme.block
        plain = block is not None and block.extents == () and tensor.scheme.tensor is None
        if not plain or not steps or steps[0].op not in ("add", "sub") or block is None or tensor.scale_codes is None:
            return None
        s = quantspec.decode_scale(tensor.scale_codes, block.scale)
        v = quantspec.decode(tensor.codes, tensor.scheme.value, table=tensor.scheme.table)
        c = operand(steps[0], v.shape)
        return chain(carried(fma(s, v, -c if steps[0].op == "sub" else c)), steps[1:], to)


class Reciprocal(Chain):
    """Multiplies by the reciprocal of a divisor."""

    def changed(self, steps: list[Step]) -> list[Step] | None:
        """mul for div."""
        with np.errstate(all="ignore"):
            return [
                Step("mul", np.float32(1) / to_float(widen(np.asarray(step.operand)))) if step.op == "div" else step
                for step in steps
            ]


class NegIsSubtraction(Chain):
    """0 - y for the sign of y."""

    def changed(self, steps: list[Step]) -> list[Step] | None:
        """rsub for neg."""
        return [Step("rsub", np.float32(0)) if step.op == "neg" else step for step in steps]


class LeavesOutZero(Chain):
    """Takes y + 0 for y."""

    def changed(self, steps: list[Step]) -> list[Step] | None:
        """No step that adds zero."""
        return [s for s in steps if not (s.op == "add" and not np.any(np.asarray(s.operand)))]


class LeavesOutCasts(Chain):
    """Takes a cast for nothing."""

    def changed(self, steps: list[Step]) -> list[Step] | None:
        """No cast."""
        return [step for step in steps if step.op != "cast"]


class NumberOverNan(Chain):
    """min and max of C, which prefer a number to NaN."""

    def made(self, tensor: Quantized, steps: list[Step], to: str) -> npt.NDArray[Any] | None:
        """fmin and fmax."""
        y = quantspec.dequantize(tensor)
        for step in steps:
            if step.op in ("min", "max"):
                of = np.fmin if step.op == "min" else np.fmax
                y = canonical(np.asarray(of(y, operand(step, y.shape)), np.float32))
            else:
                y = chain(carried(y), [step])
        return narrowed(canonical(np.asarray(y)), output_type(to))


class LowestBit(Chain):
    """Looks at one bit of a mask."""

    def changed(self, steps: list[Step]) -> list[Step] | None:
        """Masks of their lowest bits."""
        return [s if s.mask is None else Step(s.op, s.operand, np.asarray(s.mask) & np.uint8(1)) for s in steps]


class Codes(Lying):
    """A product of codes made otherwise."""

    def lie(self, request: Request, state: State, right: Ok) -> Answer | None:
        """The numbers of `made`."""
        if request.op != "product_codes":
            return None
        x, w = state.quantized(), state.quantized("_2")
        return Ok({"y": Tensor.of(self.made(x, w, state.word("to", "f32")))})

    def made(self, x: Quantized, w: Quantized, to: str) -> npt.NDArray[Any]:
        """Other numbers."""
        raise NotImplementedError


class ByNumbers(Codes):
    """product of the dequantized x: scales are rounded into every element."""

    def made(self, x: Quantized, w: Quantized, to: str) -> npt.NDArray[Any]:
        """Numbers for codes."""
        return quantspec.product(quantspec.dequantize(x), w, to)


class Repack(Lying):
    """A change of store that changes more."""

    def lie(self, request: Request, state: State, right: Ok) -> Answer | None:
        """The answer of `moved`."""
        return self.moved(state, right) if request.op == "repack" else None

    def moved(self, state: State, right: Ok) -> Answer | None:
        """Another answer."""
        raise NotImplementedError


class Reencodes(Repack):
    """Dequantizes and quantizes again."""

    def moved(self, state: State, right: Ok) -> Answer | None:
        """requantize, for codes."""
        if "codes" not in right.tensors:
            return None
        made = quantspec.requantize(state.quantized(), right.words["text"])
        parts = {"codes": made.codes, "scale_codes": made.scale_codes, "tensor_scale_code": made.tensor_scale_code}
        return Ok({name: Tensor.of(np.asarray(part)) for name, part in parts.items() if part is not None}, right.words)


class DirtyPadding(Repack):
    """Leaves ones in the fields that hold no code."""

    def moved(self, state: State, right: Ok) -> Answer | None:
        """Words with padding."""
        if "words" not in right.tensors or not right.tensors["words"].patterns:
            return None
        scheme, shape = Scheme.parse(right.words["text"]), state.numbers("shape")
        words = right.tensors["words"].array().copy()
        per_word, width = scheme.store.codes_per_word(scheme.value.bits), scheme.store.field_bits(scheme.value.bits)
        filled = (shape[scheme.packed_axis(len(shape))] if shape else 1) % per_word
        if not filled:
            return None
        words[..., -1] |= words.dtype.type(((1 << per_word * width) - 1) & ~((1 << filled * width) - 1))
        return Ok({"words": Tensor.of(words)}, right.words)


class FlatLines(Repack):
    """Packs without a new word for each line."""

    def moved(self, state: State, right: Ok) -> Answer | None:
        """The words of the codes in one line, cut to the right size."""
        if "words" not in right.tensors:
            return None
        scheme, wanted = Scheme.parse(right.words["text"]), right.tensors["words"]
        packed = quantspec.Packed(
            state.scheme, state.numbers("shape"), state.need("words"), state.array("scale_codes"), state.array("tensor_scale_code")
        )  # fmt: skip
        codes = quantspec.unpack(packed).codes.reshape(-1)
        flat = Scheme(scheme.value, scheme.store.kind + ("_0" if scheme.store.packed else ""), tensor="f32")
        words = np.resize(quantspec.pack_codes(codes, flat), wanted.shape) if wanted.patterns else wanted.array()
        return Ok({"words": Tensor.of(np.asarray(words, wanted.array().dtype))}, right.words)


#: Liar -> the case that is there for it, and the rules one of which its failure is to name.
MEANT: dict[type[Lying], tuple[str, set[str]]] = {
    MulAndAdd: ("product.q8s-native-b1-f32.fma.cancelled", {"PRD-1", "PRD-5"}),
    ThroughBinary64: ("product.q8s-native-b1-f32.fma.tie-below", {"PRD-1", "PRD-5"}),
    WholeK: ("product.q8s-native-t-f32.runs.places", {"PRD-4", "PRD-5"}),
    RunsOf16: ("product.q8s-native-t-f32.runs.places", {"PRD-4", "PRD-5"}),
    RunsOf64: ("product.q8s-native-t-f32.runs.places", {"PRD-4", "PRD-5"}),
    Descending: ("product.q8s-native-t-f32.order.permuted", {"PRD-5"}),
    StartsFromProduct: ("product.q8s-native-b1-f32.zeros.signs", {"PRD-5", "PRD-6"}),
    SkipsZeros: ("product.q8s-native-b1-f32.special.zeros-times-infinity", {"PRD-5", "PRD-7"}),
    Contracts: ("chain.q8s-native-b1-f32.contraction.mul-add", {"OPS-15"}),
    ContractsDequantize: ("chain.e4m3-native-b1-f32.contraction.dequantize-add", {"OPS-15", "OPS-17"}),
    Reciprocal: ("chain.q8s-native-b1-f32.contraction.div-number", {"OPS-15", "OPS-17"}),
    NegIsSubtraction: ("chain.q8s-native-b1-f32.pairs.neg", {"OPS-19"}),
    LeavesOutZero: ("chain.q8s-native-b1-f32.contraction.add-zero", {"OPS-15", "OPS-17"}),
    LeavesOutCasts: ("chain.q8s-native-b1-f32.contraction.cast-cast", {"OPS-21", "QNT-10"}),
    NumberOverNan: ("chain.q8s-native-b25-f32.pairs.min", {"OPS-16", "OPS-18"}),
    LowestBit: ("chain.q8s-native-b6-f32.pairs.select", {"OPS-16", "OPS-20"}),
    ByNumbers: ("product_codes.e5m2-native-b2-f16.cuts.2-and-4", {"PRD-13"}),
    Reencodes: ("repack.e2m1-packed_native_0-b4-ue4m3-t-f32.codes.codes-3x4x8-to-native", {"OPS-13"}),
    DirtyPadding: ("repack.q4s-native-t-f32.stores.words-3x5-to-packed_u32_0", {"PAK-3"}),
    FlatLines: ("repack.q4s-native-t-f32.stores.words-3x5-to-packed_native_0", {"PAK-2", "PAK-4", "OPS-13"}),
}

"""What stands behind one entry of a case's result: where it is, what it was made from, which scale applied and why."""

from dataclasses import dataclass

import numpy as np

from quantspec import QuantspecError, Scheme
from quantspec.quantize import effective_scale
from quantspec.words import stored_axes

from ..compare import Difference
from ..entries import apart, shown
from ..examples import Tensor
from ..implementations.law import Told, tell
from ..patterns import binary32, hexadecimal
from ..protocol.messages import Ok
from ..suite.blame import SUMS, element_of
from ..suite.case import Case
from .frame import MAIN, Index, block_of, frame_of, input_scheme, output_scheme

__all__ = ["Anatomy"]

Line = tuple[str, str]
#: Rules that say where a scale comes from; those about its bits are not among them.
CHOICE = tuple(f"SCL-{number}" for number in (7, 8, 9, 11, 12, 13, 20, 21, 23))


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A case, what the law says to it, and the schemes of what goes in and comes out."""

    case: Case
    told: Told
    scheme: Scheme | None
    out: Scheme | None

    @classmethod
    def of(cls, case: Case) -> "Anatomy":
        """The anatomy of a case; the law is asked once."""
        return cls(case, tell(case.request, intermediates=True), input_scheme(case), output_scheme(case))

    def shown(self, part: str, pattern: int) -> str:
        """A pattern of an output with its fields and number."""
        return shown(pattern, part, self.out, self._dtype(part))

    def apart(self, part: str, difference: Difference) -> str:
        """How far expected and actual lie apart."""
        return apart(difference, part, self.out, self._dtype(part))

    def _dtype(self, part: str) -> str:
        tensor = self.case.outputs.get(part)
        return "u8" if tensor is None else tensor.dtype

    def block(self, part: str, index: Index) -> Index | None:
        """The block that an entry of a part belongs to."""
        if self.case.op in ("encode_scale", "decode_scale", *SUMS):
            return None
        if part == "scale_codes":
            return index
        element = element_of(self.case, part, index)
        return None if element is None else block_of(self.out if part == "codes" else self.scheme, element)

    def place(self, part: str, index: Index, flat: int) -> str:
        """Where an entry is, in words."""
        if part == "tensor_scale_code":
            return "the tensor's scale"
        if part == "bytes":
            return f"byte {flat}"
        if part == "words" and index:
            a_line = self.case.outputs[part].shape[-1]
            return f"line {flat // a_line}, word {index[-1]} of {a_line}, flat {flat}{self._holds(index)}"
        block = self.block(part, index)
        if part == "scale_codes" and block is not None:
            return f"block {block}, flat {flat}"
        return f"element {index}, flat {flat}" + ("" if block is None else f", block {block}")

    def _holds(self, index: Index) -> str:
        element = element_of(self.case, "words", index)
        return "" if element is None else f", first element {element}"

    def source(self, part: str, index: Index) -> list[Line]:
        """What the entry was made from: input and scale, code and scale, amax, or the codes of a word."""
        op = self.case.op
        if op in ("encode", "decode", "encode_scale", "decode_scale"):
            return [("input", self.given(MAIN[op], index))]
        if op == "quantize" and part == "codes":
            return [("input", self.given("x", index)), *self.scale(index)]
        if op == "quantize":
            return self._amax(part, index)
        if op in ("dequantize", "chain") and part == "y":
            return [("input", self.given("codes", index)), *self.scale(index)]
        if op == "pack" and part == "words":
            return self._word(index)
        if (
            op == "requantize"
            and part == "codes"
            and self.case.inputs["codes"].shape == self.case.outputs["codes"].shape
        ):
            return [("input", self.given("codes", index)), *self.scale(index)]
        return []

    def given(self, name: str, index: Index) -> str:
        """An entry of an input with its dtype, fields and number."""
        tensor = self.case.inputs[name]
        pattern = _at(tensor, index)
        label = tensor.dtype if tensor.dtype[0] != "u" else name
        return f"{label} {shown(pattern, name, self.scheme, tensor.dtype)}"

    def scale(self, index: Index) -> list[Line]:
        """The effective scale of an element, the codes it comes from, and the rules that chose them."""
        scheme, parts = self.scheme, self.scales()
        if scheme is None or not any(tensor is not None for tensor in parts):
            return []
        arrays = [None if tensor is None else tensor.array() for tensor in parts]
        block = block_of(scheme, index)
        codes, block_codes = [], None
        if arrays[0] is not None and block is not None and scheme.block is not None:
            block_codes = np.asarray(arrays[0][block])
            codes.append(
                f"block {hexadecimal(int(block_codes), 8 * scheme.block.scale.size)} of {scheme.block.scale.name}"
            )
        if arrays[1] is not None and scheme.tensor is not None:
            codes.append(
                f"tensor {hexadecimal(int(arrays[1].reshape(-1)[0]), 8 * scheme.tensor.size)} of {scheme.tensor.name}"
            )
        try:
            s = effective_scale(scheme, block_codes, None if arrays[1] is None else arrays[1].reshape(()))
        except (QuantspecError, ValueError):
            return []
        rules = [rule for rule in self._fired(index) if rule in CHOICE]
        why = f"; {' '.join(rules)}" if rules else ""
        return [("scale", f"{binary32(int(np.asarray(s).view(np.uint32)))}  ({', '.join(codes)}{why})")]

    def scales(self) -> tuple[Tensor | None, Tensor | None]:
        """Scale codes of both levels: those that the law chose, else those given."""
        answer = self.told.answer
        made = answer.tensors if isinstance(answer, Ok) and self.case.op in ("quantize", "split") else {}
        found = [made.get(name) or self.case.inputs.get(name) for name in ("scale_codes", "tensor_scale_code")]
        return found[0], found[1]

    def _fired(self, index: Index | None) -> tuple[str, ...]:
        try:
            return self.told.trace.rules(index)
        except QuantspecError:
            return ()

    def _amax(self, part: str, index: Index) -> list[Line]:
        """The quantities that a scale was chosen from."""
        lines = []
        for name in ("amax", "raw", "bounded", "g", "u"):
            tensor = self.told.intermediates.get(name)
            if tensor is not None and (tensor.shape == () or part == "scale_codes"):
                place = index if tensor.shape else ()
                lines.append((name, binary32(_at(tensor, place))))
        return lines

    def _word(self, index: Index) -> list[Line]:
        """The codes that a word holds, the lowest field first. Rules PAK-2, PAK-4."""
        frame, scheme, codes = frame_of(self.case), self.scheme, self.case.inputs["codes"]
        if frame is None or scheme is None or not frame.shape:
            return []
        count, rank = scheme.store.codes_per_word(scheme.value.bits), len(frame.shape)
        axes, axis = stored_axes(scheme, rank), scheme.packed_axis(rank)
        held = []
        for place in range(index[-1] * count, min((index[-1] + 1) * count, frame.shape[axis])):
            stored = (*index[:-1], place)
            held.append(f"0x{_at(codes, tuple(stored[axes[i]] for i in range(rank))):02X}")
        return [("codes", f"{' '.join(held)}  (along axis {axis})")]


def _at(tensor: Tensor, index: Index) -> int:
    return tensor.patterns[int(np.ravel_multi_index(index, tensor.shape)) if tensor.shape else 0]

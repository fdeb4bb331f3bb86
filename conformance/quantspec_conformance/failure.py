"""The failure block: what was asked, what came, which bits differ, which rules fix them, and how to see it again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import quantspec
from quantspec import Scheme
from quantspec.blocks import amax, spread
from quantspec.quantize import effective_scale
from quantspec.rounding import widen

from .cases import Batch
from .compare import Difference, Mismatch, Outcome
from .diagnose import Diagnosis, codes_apart, diagnose, element_of
from .entries import shown, width_of
from .patterns import binary32, hexadecimal, value_code
from .shelltext import line_of
from .spec import rule_line

__all__ = ["Failure", "explain_failure"]


@dataclass(frozen=True, slots=True)
class Failure:
    """One case that did not come out as expected, ready to print or to store."""

    case: str
    device: str
    outcome: str
    step: str
    part: str
    kind: str
    rule: str | None
    message: str
    count: int
    total: int
    rules: tuple[str, ...]
    pattern: str
    elements: tuple[Mapping[str, Any], ...]
    lines: tuple[str, ...]
    repro: str

    def as_json(self) -> dict[str, Any]:
        """The failure for the result file; `lines` are its text."""
        written = asdict(self)
        return {name: list(part) if isinstance(part, tuple) else part for name, part in written.items()}

    def text(self) -> str:
        """The failure block."""
        where = f"step {self.step}" + (f", {self.part}" if self.part else "") if self.step else ""
        rule = f"rule {rule_line(self.rule)}" if self.rule else ""
        head = "   ".join(part for part in (f"FAIL {self.case}", f"device={self.device}", where) if part)
        outcome = f" outcome   {self.outcome}" + (f" ({self.kind})" if self.kind not in ("bits", "") else "")
        body = [outcome + (f"   {rule}" if rule else ""), *self.lines]
        if self.rules:
            body.append(f" rules     {' '.join(self.rules)}")
        if self.count:
            share = f"{self.count} of {self.total} entries of {self.part} differ"
            body.append(f" pattern   {share}{f'; {self.pattern}' if self.pattern else ''}")
        body.append(f" repro     {self.repro}")
        return "\n".join([head, *body])


def repro_line(batch: Batch, scheme: Scheme, device: str, seed: int, extra: Sequence[str]) -> str:
    """The command that runs this case alone."""
    words = ["quantspec", "run", "--device", device, "--seed", str(seed), *extra]
    words += ["--only", scheme.text] if "--tensor" in extra else ["--case", batch.plan.case_id(scheme)]
    return line_of(words)


def explain_failure(
    batch: Batch, scheme: Scheme, outcome: Outcome, device: str, seed: int, extra: Sequence[str] = ()
) -> Failure:
    """The failure block of an outcome. `extra` are the options of the run that a repro needs."""
    mismatch = outcome.mismatch or Mismatch("", "", "error", "")
    diagnosis = diagnose(batch, scheme, mismatch)
    lines = [f" {mismatch.kind:9s} {line}" for line in mismatch.message.splitlines() if line]
    for number, difference in enumerate(mismatch.first):
        lines += _element(batch, scheme, mismatch, difference, number == 0)
    return Failure(
        case=batch.plan.case_id(scheme),
        device=device,
        outcome=outcome.status,
        step=mismatch.step,
        part=mismatch.part,
        kind=mismatch.kind,
        rule=diagnosis.rule if mismatch.kind != "error" else None,
        message=mismatch.message,
        count=mismatch.count,
        total=mismatch.total,
        rules=_listed(diagnosis, mismatch),
        pattern=diagnosis.pattern,
        elements=tuple(_element_json(batch, scheme, mismatch, difference) for difference in mismatch.first),
        lines=tuple(lines),
        repro=repro_line(batch, scheme, device, seed, extra),
    )


def _listed(diagnosis: Diagnosis, mismatch: Mismatch) -> tuple[str, ...]:
    if not mismatch.first:
        return ()
    by_kind = {"padding": ("CNF-2",), "unwritten": ("CNF-3",)}
    return tuple(dict.fromkeys((*diagnosis.rules, *by_kind.get(mismatch.kind, ()))))


def _dtype(mismatch: Mismatch) -> str:
    """Dtype of the part's entries, as far as the scheme does not fix it."""
    return mismatch.step.rpartition(".")[2] if mismatch.part == "y" else "u8"


def _width(mismatch: Mismatch, scheme: Scheme) -> int:
    """Bits of an entry of the part."""
    return width_of(mismatch.part, scheme, _dtype(mismatch))


def _shown(code: int, scheme: Scheme, mismatch: Mismatch) -> str:
    """A pattern of the part with fields and number."""
    return shown(code, mismatch.part, scheme, _dtype(mismatch))


def _element(batch: Batch, scheme: Scheme, mismatch: Mismatch, difference: Difference, full: bool) -> list[str]:
    """The lines of one differing entry: all of it for the first, one line for the others."""
    expected, actual = (_shown(code, scheme, mismatch) for code in (difference.expected, difference.actual))
    place = _place(batch, scheme, mismatch, difference)
    if not full:
        return [f" also      {place}: expected {expected}; actual {actual}"]
    apart = f"  {codes_apart(difference, scheme)}" if mismatch.part == "codes" else ""
    lines = [f" where     {place}", *_source(batch, scheme, mismatch, difference)]
    lines += [f" expected  {expected}", f" actual    {actual}{apart}"]
    return lines


def _place(batch: Batch, scheme: Scheme, mismatch: Mismatch, difference: Difference) -> str:
    shape = batch.x.shape
    if mismatch.part == "bytes":
        return f"byte {difference.flat}"
    if mismatch.part == "words":
        a_line = quantspec.words_shape(scheme, shape)[-1]
        return f"line {difference.flat // a_line}, word {difference.index[-1]} of {a_line}, flat {difference.flat}"
    if mismatch.part == "scale_codes":
        element = element_of(mismatch, difference.index, scheme, shape)
        return f"block {difference.index}, flat {difference.flat}, first element {element}"
    if mismatch.part == "tensor_scale_code":
        return "the tensor's scale"
    block = ""
    if scheme.block is not None:
        extents = scheme.extents(len(shape))
        block = f", block {tuple(i // e for i, e in zip(difference.index, extents, strict=True))}"
    return f"element {difference.index}, flat {difference.flat}{block}"


def _source(batch: Batch, scheme: Scheme, mismatch: Mismatch, difference: Difference) -> list[str]:
    """What the entry was made from: the input and the scale, or the code and the scale, or the block's amax."""
    if mismatch.part == "codes" and mismatch.step.endswith("quantize"):
        x = int(widen(batch.x)[difference.index])
        s, how = _scale_at(batch, scheme, mismatch.step, difference.index)
        return [f" input     {batch.x.dtype.name} {binary32(x)}", f" scale     {binary32(s)}{how}"]
    if mismatch.part == "y":
        q = _dequantized(batch, scheme, mismatch.step)
        s, how = _scale_at(batch, scheme, mismatch.step, difference.index)
        code = value_code(int(q.codes[difference.index]), scheme)
        return [f" input     {code}", f" scale     {binary32(s)}{how}"]
    if mismatch.part in ("scale_codes", "tensor_scale_code"):
        return _amax_lines(batch, scheme, mismatch, difference)
    return []


def _amax_lines(batch: Batch, scheme: Scheme, mismatch: Mismatch, difference: Difference) -> list[str]:
    if not mismatch.step.endswith("quantize"):
        return []
    bits = widen(batch.x)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    finite = np.where(magnitude < 0x7F800000, magnitude, np.uint32(0))
    largest = int(finite.max(initial=0))
    if mismatch.part == "scale_codes":
        largest = int(amax(bits, scheme.extents(bits.ndim))[difference.index])
    return [f" amax      {binary32(largest)}"]


def _dequantized(batch: Batch, scheme: Scheme, step: str) -> quantspec.Quantized:
    """The quantized tensor that a step reads, under the reference."""
    if step.startswith("drawn") and batch.codes is not None:
        return quantspec.Quantized(scheme, batch.codes, batch.scale_codes, batch.tensor_scale_code)
    if step.startswith("given"):
        return quantspec.quantize(
            batch.x, scheme, scale_codes=batch.scale_codes, tensor_scale_code=batch.tensor_scale_code
        )
    return quantspec.quantize(batch.x, scheme)


def _scale_at(batch: Batch, scheme: Scheme, step: str, index: tuple[int, ...]) -> tuple[int, str]:
    """The effective scale of an element, as a pattern, and the codes that it comes from."""
    q = _dequantized(batch, scheme, step)
    s = effective_scale(scheme, q.scale_codes, q.tensor_scale_code)
    codes = []
    if scheme.block is not None and q.scale_codes is not None:
        extents = scheme.extents(len(q.shape))
        s = spread(s, q.shape, extents)
        block = tuple(i // e for i, e in zip(index, extents, strict=True))
        codes.append(
            f"block {hexadecimal(int(q.scale_codes[block]), 8 * scheme.block.scale.size)} of {scheme.block.scale.name}"
        )
    if scheme.tensor is not None and q.tensor_scale_code is not None:
        codes.append(f"tensor {hexadecimal(int(q.tensor_scale_code), 8 * scheme.tensor.size)} of {scheme.tensor.name}")
    pattern = np.broadcast_to(s, q.shape)[index]
    return int(pattern.view(np.uint32)), f"  ({', '.join(codes)})"


def _element_json(batch: Batch, scheme: Scheme, mismatch: Mismatch, difference: Difference) -> dict[str, Any]:
    width = _width(mismatch, scheme)
    written: dict[str, Any] = {
        "index": list(difference.index),
        "flat": difference.flat,
        "expected": hexadecimal(difference.expected, width),
        "actual": hexadecimal(difference.actual, width),
    }
    if mismatch.part == "codes" and mismatch.step.endswith("quantize"):
        written["input"] = hexadecimal(int(widen(batch.x)[difference.index]), 32)
    return written

"""Asking: questions as requests, answers as arrays; blocks are counted, and what is asked twice must be answered twice alike."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quantspec.scales import ScaleType, decode_codes

from ..examples import DTYPES, Tensor
from ..implementations.errors import ImplementationError
from ..protocol.bits import Bits
from ..protocol.messages import Answer, Failed, Implementation, Known, Ok, Rejected, Request, Unsupported
from .layout import Array, Layout

__all__ = [
    "ANSWERED",
    "GIVEN",
    "NOT_ASKED",
    "REFUSED",
    "Answers",
    "Asking",
    "Budget",
    "Lacking",
    "one_nan",
    "send",
    "under",
    "wire",
]

NOT_ASKED, ANSWERED, REFUSED = 0, 1, 2
BATCH = 256  #: blocks of one tensor
GIVEN = ("codes", "numbers")  #: ways to give scales
REFUSALS = 48  #: single questions refused, none ever answered: the rest is not asked one by one
BREAKS = 6  #: crashes and time-outs, nothing ever answered: the rest is not asked at all
_DTYPE_OF = {1: "u8", 2: "u16", 4: "u32"}


class Lacking(Exception):
    """The implementation does not offer this."""


class Malformed(Exception):
    """An answer that is none."""


def wire(array: Array, dtype: str = "") -> Tensor:
    """An array of unsigned patterns as a tensor of the protocol."""
    name = dtype or _DTYPE_OF[array.dtype.itemsize]
    return Bits.over(name, array.shape, np.array(array, f"u{DTYPES[name][1].itemsize}", order="C"))


class Broken(Failed):
    """A crash or a time-out: no answer at all."""

    __slots__ = ()


def send(implementation: Implementation, request: Request) -> Answer:
    """One answer; an implementation that breaks has failed."""
    try:
        return implementation.handle(request)
    except ImplementationError as error:
        return Broken(f"{error.status}: {error}")


def under(recipe: str) -> dict[str, str]:
    """The word that names a recipe, where one is named."""
    return {"recipe": recipe} if recipe else {}


def one_nan(codes: Array, scale: ScaleType) -> Array:
    """Scale codes with one code for every NaN: which of them is written is no matter here."""
    wide = codes.astype(np.int64)
    return np.where((wide & scale.magnitude_mask) >= scale.first_nan_code, scale.nan_code, wide)


@dataclass(slots=True)
class Budget:
    """Blocks that may still be asked, and those that were."""

    most: int
    used: int = 0
    requests: int = 0

    @property
    def left(self) -> int:
        """Blocks that may still be asked."""
        return self.most - self.used

    def take(self, blocks: int) -> bool:
        """True where so many are left; they are taken."""
        if blocks > self.left:
            return False
        self.used += blocks
        self.requests += 1
        return True


@dataclass(slots=True)
class Answers:
    """What came to questions: status, and the codes of each level (0 for a level that there is not)."""

    status: Array  #: (count,)
    tensor: Array  #: (count,)
    scales: Array  #: (count, blocks)
    codes: Array  #: (count, blocks, size)

    @classmethod
    def none(cls, count: int, layout: Layout) -> "Answers":
        """No answers yet."""
        shape = (count, layout.blocks)
        return cls(
            np.full(count, NOT_ASKED),
            np.zeros(count, np.int64),
            np.zeros(shape, np.int64),
            np.zeros((*shape, layout.size), np.uint8),
        )

    def put(self, where: Array, other: "Answers") -> None:
        """Take over what came to the questions at `where`."""
        for name in ("status", "tensor", "scales", "codes"):
            getattr(self, name)[where] = getattr(other, name)

    def at(self, where: Array) -> "Answers":
        """Those at `where`."""
        return Answers(self.status[where], self.tensor[where], self.scales[where], self.codes[where])

    def joined(self, other: "Answers") -> "Answers":
        """These and others."""
        names = ("status", "tensor", "scales", "codes")
        return Answers(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))

    def differ(self, other: "Answers") -> Array:
        """Where two answers to the same questions are not the same."""
        same = (self.status == other.status) & (self.tensor == other.tensor)
        same &= (self.scales == other.scales).all(axis=1) & (self.codes == other.codes).all(axis=(1, 2))
        return np.asarray(~same)


@dataclass(slots=True)
class Asking:
    """The operation quantize of one implementation under one scheme."""

    implementation: Implementation
    layout: Layout
    budget: Budget
    given: str = ""  #: codes or numbers: scales are given, for who chooses none
    even: bool = False  #: an even number of blocks at a time: an odd one has its last block twice
    largest: int = 0  #: elements of a tensor at most; 0: any
    answered: bool = False  #: anything at all
    named: str = ""  #: the recipe that requests name; none: what it does unasked
    said: dict[str, int] = field(default_factory=dict)  #: why questions were refused, and how often
    broke: int = 0  #: crashes and time-outs

    def ask(self, bits: Array, scales: Array | None = None, tensor: Array | None = None) -> Answers:
        """Answers to questions (count, blocks, size); those beyond the budget stay unasked. Lacking where it is not offered."""
        answers = Answers.none(len(bits), self.layout)
        step = 1
        if self.layout.together:
            step = max(min(BATCH, (self.largest or 2**22) // self.layout.size), 1)
        for start in range(0, len(bits), step):
            self._ask(bits, np.arange(start, min(start + step, len(bits))), answers, scales, tensor)
        return answers

    def _ask(self, bits: Array, which: Array, answers: Answers, scales: Array | None, tensor: Array | None) -> None:
        which = which[: max(self.budget.left // self.layout.blocks, 0)]
        if self.even and len(which) % 2 and self.layout.together:
            which = np.append(which, which[-1])
        if self.dead:
            answers.status[which] = REFUSED
            return
        if not len(which) or not self.budget.take(len(which) * self.layout.blocks):
            return
        words = {"scheme": self.layout.scheme.text, **under(self.named)}
        x = self.layout.tensor(bits[which].reshape(-1, self.layout.size))
        tensors = {"x": wire(x, "f32")}
        if self.given and scales is not None and self.layout.scheme.block is not None:
            levels = scales[which].reshape(self.layout.grid(scales[which].size))
            tensors |= self._level("scales", "scale_codes", levels, self.layout.scheme.block.scale)
        if self.given and tensor is not None and self.layout.scheme.tensor is not None:
            tensors |= self._level(
                "tensor_scale", "tensor_scale_code", tensor[which].reshape(()), self.layout.scheme.tensor
            )
        table = self.layout.scheme.table
        if table is not None:
            tensors["table"] = wire(np.asarray(table.entries).view(np.uint32), "f32")
        answer = send(self.implementation, Request("quantize", words, tensors))
        self.broke += isinstance(answer, Broken)
        if isinstance(answer, Unsupported):
            raise Lacking(f"{answer.feature} {answer.message}".strip())
        try:
            if isinstance(answer, Ok):
                self._read(answer, which, answers)
                return
            why = _reason(answer)
        except Malformed as error:
            why = str(error)
        if self.dead or self._hopeless:
            if not self._hopeless:
                self.said[why] = self.said.get(why, 0) + len(np.unique(which))
            answers.status[which] = REFUSED
            return
        if len(np.unique(which)) > 1:  # one of them: each half by itself
            for half in (which[: len(which) // 2], which[len(which) // 2 :]):
                self._ask(bits, half, answers, scales, tensor)
            return
        self.said[why] = self.said.get(why, 0) + 1
        answers.status[which] = REFUSED

    @property
    def dead(self) -> bool:
        """True where it broke each time that it was asked anything: no question more is sent."""
        return self.broke >= BREAKS and not self.answered

    @property
    def _hopeless(self) -> bool:
        return sum(self.said.values()) >= REFUSALS and not self.answered

    def _level(self, numbers: str, codes: str, given: Array, scale: ScaleType) -> dict[str, Tensor]:
        """Scales as this implementation takes them."""
        stored = given.astype(scale.code_dtype)
        if self.given == "codes":
            return {codes: wire(stored)}
        return {
            numbers: wire(
                np.ascontiguousarray(decode_codes(stored, scale)).reshape(stored.shape).view(np.uint32), "f32"
            )
        }

    def _read(self, answer: Ok, which: Array, answers: Answers) -> None:
        layout, scheme = self.layout, self.layout.scheme
        count = len(which) * layout.blocks
        codes = _tensor(answer, "codes", count * layout.size, "u8")
        scales, tensor = np.zeros(count, np.int64), np.zeros(1, np.int64)
        if scheme.block is not None:
            scale = scheme.block.scale
            scales = one_nan(_tensor(answer, "scale_codes", count, _DTYPE_OF[scale.size]), scale)
        if scheme.tensor is not None:
            scale = scheme.tensor
            tensor = one_nan(_tensor(answer, "tensor_scale_code", 1, _DTYPE_OF[scale.size]), scale)
        answers.codes[which] = codes.reshape(len(which), layout.blocks, layout.size)
        answers.scales[which] = scales.reshape(len(which), layout.blocks)
        answers.tensor[which] = tensor
        answers.status[which] = ANSWERED
        self.answered = True


def _tensor(answer: Ok, name: str, count: int, dtype: str) -> Array:
    found: Any = answer.tensors.get(name)
    if not isinstance(found, Tensor):
        raise Malformed(f"the answer has no {name}")
    if found.dtype != dtype or int(np.prod(found.shape, dtype=np.int64)) != count:
        raise Malformed(f"{name} is {found.dtype}{list(found.shape)}; allowed: {count} of {dtype}")
    return np.asarray(found.unsigned if isinstance(found, Bits) else np.array(found.patterns, np.uint64)).reshape(-1)


def _reason(answer: Answer) -> str:
    if isinstance(answer, Rejected):
        return f"rejected {answer.kind} {answer.rule}".strip()
    if isinstance(answer, Known):
        return f"known {answer.url}"
    if not isinstance(answer, Failed):
        return "no answer"
    first, *more = answer.message.splitlines() or [""]  # the last of the others is the last word on stderr
    return f"failed: {first[:120]}{f'; its last words: {more[-1].strip()[:120]}' if more else ''}"

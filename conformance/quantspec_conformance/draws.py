"""Random numbers that are the same on every machine: integer arithmetic on the raw words of a bit generator, nothing else.

Only the words of a bit generator are promised to stay. Everything numpy makes of them may change from version to version, and
what passes through logarithms from one maths library to another; so all of it is made here.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Draws", "Source"]

Shape = tuple[int, ...]
_FIELD = 21  #: bits of one of the integers that are summed to something like a Gaussian number


class Draws:
    """Numbers drawn from one stream of words."""

    def __init__(self, bits: np.random.BitGenerator) -> None:
        self._bits = bits
        self._kept: npt.NDArray[np.uint32] = np.empty(0, np.uint32)

    @classmethod
    def of(cls, source: "Source") -> "Draws":
        """The draws of a source; a generator's go on where it stands."""
        return source if isinstance(source, Draws) else cls(source.bit_generator)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """So many words of 64 bits."""
        return np.asarray(self._bits.random_raw(count), np.uint64)

    def _halves(self, count: int) -> npt.NDArray[np.uint32]:
        """So many words of 32 bits: the lower half of a word, then the upper, which is kept where it is not needed yet."""
        kept = self._kept[:count]
        missing = count - kept.size
        words = self.words(-(-missing // 2))
        fresh = np.stack([words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)], 1).astype(np.uint32).reshape(-1)
        self._kept = fresh[missing:] if missing else self._kept[count:]
        return np.concatenate([kept, fresh[:missing]])

    def integers(self, low: int, high: int, shape: Shape = (), dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        """Integers from low up to, not including, high; each equally often. At most 2^32 of them."""
        size = high - low
        if not 1 <= size <= 1 << 32:
            raise ValueError(f"{size} integers from {low} to {high}; allowed: 1 to 2^32")
        count = int(np.prod(shape, dtype=np.int64))
        drawn = self._below(size, count) if size > 1 else np.zeros(count, np.uint64)
        return (drawn.astype(np.int64) + low).astype(dtype).reshape(shape)

    def _below(self, size: int, count: int) -> npt.NDArray[np.uint64]:
        """Lemire's way: the upper half of a product; words whose lower half falls below a threshold are drawn again."""
        threshold = (1 << 32) % size
        found: list[npt.NDArray[np.uint64]] = []
        missing = count
        while missing:
            product = self._halves(missing).astype(np.uint64) * np.uint64(size)
            found.append((product >> np.uint64(32))[(product & np.uint64(0xFFFFFFFF)) >= threshold])
            missing -= found[-1].size
        return np.concatenate(found) if found else np.empty(0, np.uint64)

    def random(self, shape: Shape = ()) -> npt.NDArray[np.float64]:
        """Multiples of 2^-53 in [0, 1): exact, as is their product with a power of two."""
        words = self.words(int(np.prod(shape, dtype=np.int64))) >> np.uint64(11)
        return (words.astype(np.float64) * float.fromhex("0x1p-53")).reshape(shape)

    def choice(self, among: npt.ArrayLike, shape: Shape = ()) -> npt.NDArray[Any]:
        """Entries of a list, each equally often."""
        entries = np.asarray(among)
        return np.asarray(entries[self.integers(0, entries.size, shape)])

    def sums(self, shape: Shape) -> npt.NDArray[np.int64]:
        """Something like a Gaussian number: sums of six integers of 21 bits, about 0, of deviation 2^20.5, below 3 * 2^21."""
        words = self.words(2 * int(np.prod(shape, dtype=np.int64))).reshape(-1, 2)
        mask = np.uint64((1 << _FIELD) - 1)
        fields = np.stack([(words >> np.uint64(_FIELD * place)) & mask for place in range(3)])
        total = fields.astype(np.int64).sum(axis=(0, 2), dtype=np.int64)
        return np.asarray(total - 3 * ((1 << _FIELD) - 1), np.int64).reshape(shape)

    def normal(self, shape: Shape) -> npt.NDArray[np.float32]:
        """Those sums as multiples of 2^-20, which binary32 holds exactly."""
        return np.asarray(self.sums(shape).astype(np.float32) * np.float32(float.fromhex("0x1p-20")), np.float32)


#: What families and codes are drawn from.
Source = Draws | np.random.Generator

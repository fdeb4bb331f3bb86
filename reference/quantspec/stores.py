"""Stores: how many bytes a word has and how many codes it holds. Rules SCH-3, PAK-1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import SchemeError
from .tracing import rule

__all__ = ["STORES", "Store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """One way to store codes: the word for each width of a field."""

    name: str
    packed: bool  #: the store has a packed axis
    words: dict[int, tuple[int, int, int]]  #: field width -> word bytes, codes a word, bits a stored field takes


_ROWS = (
    StoreKind(name="native", packed=False, words={8: (1, 1, 8), 6: (1, 1, 8), 4: (1, 1, 8), 2: (1, 1, 8)}),
    StoreKind(name="packed_native", packed=True, words={8: (1, 1, 8), 6: (3, 4, 6), 4: (1, 2, 4), 2: (1, 4, 2)}),
    StoreKind(name="packed_u32", packed=True, words={8: (4, 4, 8), 6: (4, 5, 6), 4: (4, 8, 4), 2: (4, 16, 2)}),
)

#: Every kind of store by name, in the order of the rules.
STORES = {row.name: row for row in _ROWS}


@dataclass(frozen=True, slots=True)
class Store:
    """A store of a scheme: its kind and its packed axis, counted from the innermost (0 for `native`)."""

    kind: str
    d: int = 0

    @classmethod
    @rule("SCH-3")
    def of(cls, store: "str | Store") -> "Store":
        """`native`, `packed_native_d` or `packed_u32_d`, d a decimal number without leading zeros. Rule SCH-3."""
        text = store.text if isinstance(store, Store) else store
        if isinstance(text, str):
            kind, _, d = text.rpartition("_")
            canonical = d.isascii() and d.isdecimal() and len(d) <= 10 and (d == "0" or d[0] != "0")
            if canonical and kind in STORES and STORES[kind].packed and int(d) < 2**31:
                return cls(kind, int(d))
            if text in STORES and not STORES[text].packed:
                return cls(text)
        allowed = ", ".join(f"{row.name}_d" if row.packed else row.name for row in _ROWS)
        raise SchemeError(
            "SCH-3", f"store={store!r} is not a store; allowed: {allowed} (d counts the packed axis from the innermost)"
        )

    @property
    def text(self) -> str:
        """The store as a scheme's text spells it."""
        return f"{self.kind}_{self.d}" if self.packed else self.kind

    @property
    def packed(self) -> bool:
        """True where the store has a packed axis."""
        kind = STORES.get(self.kind)
        return kind is not None and kind.packed

    def word_bytes(self, bits: int) -> int:
        """Bytes of a word for fields of `bits` bits. Rule PAK-1."""
        return STORES[self.kind].words[bits][0]

    def codes_per_word(self, bits: int) -> int:
        """Codes that a word holds. Rule PAK-1."""
        return STORES[self.kind].words[bits][1]

    def field_bits(self, bits: int) -> int:
        """Bits that a stored field takes: the whole byte in `native`. Rules PAK-1, PAK-4."""
        return STORES[self.kind].words[bits][2]

    def word_dtype(self, bits: int) -> np.dtype[Any]:
        """dtype of an array of words; words of three bytes are held in uint32."""
        return np.dtype(np.uint8 if self.word_bytes(bits) == 1 else np.uint32)

"""The reference for tests of others, as the fixture `spec` hands it out."""

from collections.abc import Callable, Mapping
from typing import Any

import quantspec

from ..spec import Rule, rules

__all__ = ["VERBS", "Spec"]

#: What `spec` has of the reference: its verbs, and what they take and give.
VERBS = (
    "encode", "decode", "encode_scale", "decode_scale", "quantize", "dequantize", "pack", "unpack", "pack_codes",
    "unpack_words", "words_shape", "to_bytes", "from_bytes", "split", "byte_count", "permute", "transpose", "slice_axis",
    "take", "select", "flip", "expand", "concatenate", "reshape", "requantize", "trace", "Scheme", "Quantized", "Packed",
    "Table", "VALUES", "SCALES", "STORES", "TABLES",
)  # fmt: skip


class Spec:
    """The verbs of the reference as attributes (VERBS), and the rules by id."""

    __slots__ = ()

    encode = staticmethod(quantspec.encode)
    decode = staticmethod(quantspec.decode)
    encode_scale = staticmethod(quantspec.encode_scale)
    decode_scale = staticmethod(quantspec.decode_scale)
    quantize = staticmethod(quantspec.quantize)
    dequantize = staticmethod(quantspec.dequantize)
    pack = staticmethod(quantspec.pack)
    unpack = staticmethod(quantspec.unpack)
    to_bytes = staticmethod(quantspec.to_bytes)
    from_bytes = staticmethod(quantspec.from_bytes)
    split = staticmethod(quantspec.split)

    @property
    def rules(self) -> Mapping[str, Rule]:
        """Every rule by id, in reading order."""
        return rules()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The rest of VERBS. AttributeError for another name."""
        if name in VERBS:
            found: Callable[..., Any] = getattr(quantspec, name)
            return found
        raise AttributeError(f"spec.{name}: allowed: rules, {', '.join(VERBS)}")

    def __dir__(self) -> list[str]:
        return [*VERBS, "rules"]

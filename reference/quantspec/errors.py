"""Refusals: one base class, one subclass a kind of fault, each naming the rule that refuses.

A message says which argument, what value it had, what is allowed and where; the rule id closes it in brackets.
"""

__all__ = [
    "DtypeError",
    "EncodingError",
    "HostError",
    "LayoutError",
    "QuantspecError",
    "ScaleError",
    "SchemeError",
    "ShapeError",
    "UnsupportedError",
]


class QuantspecError(ValueError):
    """Base of every refusal; `rule` is the id of the rule that refuses."""

    def __init__(self, rule: str, message: str) -> None:
        self.rule = rule
        self.message = message
        super().__init__(rule, message)

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class SchemeError(QuantspecError):
    """A scheme, or its text or JSON form, that no rule gives a meaning. `position` is an index into the text, if any."""

    def __init__(self, rule: str, message: str, position: int | None = None) -> None:
        super().__init__(rule, message)
        self.position = position


class ShapeError(QuantspecError):
    """Extents, ranks, axes or counts that do not fit together."""


class DtypeError(QuantspecError):
    """An array of a dtype that the operation does not take."""


class EncodingError(QuantspecError):
    """Codes, words or bytes that are not the encoding of anything under the scheme."""


class ScaleError(QuantspecError):
    """Given scales that the scheme cannot hold."""


class LayoutError(QuantspecError):
    """A layout operation whose result is not a tensor of the same codes and scales; use `requantize`."""


class UnsupportedError(QuantspecError):
    """A recipe, codec, container or option that is named but not defined."""


class HostError(QuantspecError):
    """The host's floating point is not IEEE 754 binary32 with subnormals: no result would be trustworthy."""

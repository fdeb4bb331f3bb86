"""What an example has made so far: what is given, by the names that examples use, and the tensors made of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Packed, Quantized, Scheme, Table
from quantspec.recipes import CODECS, CONTAINERS, RECIPES

from .examples import Example, ExampleError

__all__ = ["State"]


@dataclass(slots=True)
class State:
    """What is given, and what has been made."""

    example: Example
    verbs: Any = quantspec
    made: dict[str, Any] = field(default_factory=dict)
    tensor: Quantized | None = None
    packed: Packed | None = None

    def word(self, name: str, default: str | None = None) -> str:
        """A given entry of words."""
        entry = self.example.given.get(name)
        if entry is None:
            if default is None:
                raise ExampleError(f"{self.example.place}: {self.example.id}: needs a line `{name}`")
            return default
        return entry.text

    def array(self, name: str) -> npt.NDArray[Any] | None:
        """A given tensor, or one made before; None where there is none."""
        entry = self.example.given.get(name)
        if entry is None or name in self.made:
            made = self.made.get(name)
            return None if made is None else np.asarray(made)
        if isinstance(entry.content, str):
            raise ExampleError(f"{self.example.place}: {self.example.id}: {name} is no tensor")
        return entry.content.array()

    def need(self, name: str) -> npt.NDArray[Any]:
        """A tensor that must be there."""
        array = self.array(name)
        if array is None:
            raise ExampleError(f"{self.example.place}: {self.example.id}: needs a line `{name}`")
        return array

    def numbers(self, name: str) -> tuple[int, ...]:
        """A given list of whole numbers, `2,3`; `()` is the empty one."""
        text = self.word(name)
        return () if text == "()" else tuple(int(part) for part in text.split(","))

    @property
    def table(self) -> Table | None:
        """The given table, if any."""
        entries = self.array("table")
        return None if entries is None else Table.of(entries)

    @property
    def scheme(self) -> Scheme:
        """The given scheme."""
        table = self.table
        return Scheme.parse(self.word("scheme"), tables=[] if table is None else [table])

    def policies(self, *names: str) -> dict[str, Any]:
        """Given recipe, codec and container, as arguments of a verb; a name without a row is handed on, to be refused."""
        kinds: dict[str, Mapping[str, Any]] = {"recipe": RECIPES, "codec": CODECS, "container": CONTAINERS}
        given = {name: self.word(name) for name in names if name in self.example.given}
        return {name: kinds[name].get(text, text) for name, text in given.items()}

    def take(self, tensor: Quantized) -> None:
        """Make a quantized tensor the current one."""
        self.tensor = tensor
        self.packed = None
        self.made |= {"codes": tensor.codes, "scheme": tensor.scheme, "shape": tensor.shape}
        for name in ("scale_codes", "tensor_scale_code"):
            code = getattr(tensor, name)
            self.made.pop(name, None)
            if code is not None:
                self.made[name] = code

    def quantized(self, suffix: str = "") -> Quantized:
        """The current quantized tensor, or the one whose codes are given."""
        if self.tensor is None or suffix:
            other = f"scheme{suffix}"
            scheme = Scheme.parse(self.word(other)) if suffix and other in self.example.given else self.scheme
            return Quantized(
                scheme,
                self.need(f"codes{suffix}"),
                self.array(f"scale_codes{suffix}"),
                self.array(f"tensor_scale_code{suffix}"),
                **self.policies("recipe"),
            )
        return self.tensor

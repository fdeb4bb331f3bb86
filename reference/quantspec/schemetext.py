"""The text form of a scheme: value.store[.lut-name][.bE(xE)*-type][.t-type], exactly one spelling. Rules SCH-15, SCH-16.

First the form, part by part from the left; then the checks of the scheme that it names, in the order of the rules (SCH-18).
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from .blocks import LARGEST_EXTENT, normal_block
from .errors import SchemeError
from .scales import SCALES
from .stores import STORES, Store
from .tables import TABLES, Table
from .tracing import note, rule
from .values import VALUES, ValueFormat, require_indexed, table_for

__all__ = ["SchemeText"]

T = TypeVar("T")
_NUMBER = r"(?:0|[1-9][0-9]*)"
_STORE = re.compile(
    "|".join(f"{kind}_{_NUMBER}" if row.packed else kind for kind, row in STORES.items()), flags=re.ASCII
)
_TABLE = re.compile(r"lut-[0-9a-z_]+", flags=re.ASCII)
_BLOCK = re.compile(rf"b({_NUMBER}(?:x{_NUMBER})*)-(.*)", flags=re.ASCII)
_FORM = "a text is value.store[.lut-name][.bE(xE)*-type][.t-type]"


class SchemeText:
    """Reads a scheme's text; every failure has the position of its part. Rules SCH-15, SCH-16, SCH-18."""

    def __init__(self, text: str, tables: Sequence[Table]) -> None:
        if not isinstance(text, str):
            raise SchemeError("SCH-15", f"scheme text is {text!r}; allowed: a string")
        self.text = text
        self.written = text.split(".")
        self.next = 0
        self.places: dict[str, int] = {}  #: where each part begins, once its form is right
        self.known = TABLES | {table.name: table for table in tables}

    @property
    def position(self) -> int:
        """Of the next part; the text's length where none is left."""
        return min(sum(len(part) + 1 for part in self.written[: self.next]), len(self.text))

    def fail(self, message: str, *, rule_id: str = "SCH-15", position: int | None = None) -> NoReturn:
        """Refuse at a position, that of the next part if none is given."""
        place = self.position if position is None else position
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        raise SchemeError(rule_id, f"scheme {shown!r}, position {place}: {message}", place)

    def part(self, name: str, prefix: str = "") -> str | None:
        """The next part if it has the prefix, its place noted under the name."""
        if self.next == len(self.written) or not self.written[self.next].startswith(prefix):
            return None
        self.places[name] = self.position
        return self.written[self.next]

    def parts(self) -> dict[str, Any]:
        """The parts of the scheme, by the names of its arguments."""
        value, store, table, block, tensor = self.form()
        row = VALUES[value]
        chosen = self.checked("store", lambda: Store.of(store))
        if block is not None:
            extents, scale = block
            self.checked("block", lambda: normal_block((extents, scale)))
        found = None if table is None else self.checked("table", lambda: self.table(table, row))
        mode = "symmetric" if table is None else "lookup"
        return {"value": value, "store": chosen, "mode": mode, "tensor": tensor, "block": block, "table": found}

    @rule("SCH-15")
    def form(self) -> tuple[str, str, str | None, tuple[tuple[int, ...], str] | None, str | None]:
        """Value, store, table name, block and tensor scale as written; refused where a part has not its form. Rule SCH-15."""
        value = self.part("value") or ""
        if value not in VALUES:
            self.fail(f"{value!r} is not a value format; allowed: {', '.join(VALUES)}")
        self.next += 1
        store = self.part("store")
        if store is None or not _STORE.fullmatch(store):
            what = "the store is missing" if store is None else f"{store!r} is not a store"
            self.fail(f"{what}; allowed: {', '.join(f'{r.name}_d' if r.packed else r.name for r in STORES.values())}")
        self.next += 1
        table = self.part("table", "lut-")
        if table is not None:
            if not _TABLE.fullmatch(table):
                self.fail(f"{table!r} is not lut- and a name in lower-case letters, digits and _")
            self.next += 1
        block = self.block_form()
        tensor = self.part("tensor", "t-")
        if tensor is not None:
            self.scale_form(tensor.removeprefix("t-"))
            self.next += 1
        if self.next < len(self.written):
            self.fail(f"{self.written[self.next]!r} may not stand here; {_FORM}")
        if block is None and tensor is None:
            self.fail("a scale level is missing; write .bE-type, .t-type or both, for example .t-f32")
        return value, store, table, block, None if tensor is None else tensor.removeprefix("t-")

    def scale_form(self, name: str) -> None:
        if name not in SCALES:
            self.fail(f"{name!r} is not a scale type; allowed: {', '.join(SCALES)}")

    def block_form(self) -> tuple[tuple[int, ...], str] | None:
        """Extents and scale type as written."""
        part = self.part("block", "b")
        if part is None:
            return None
        match = _BLOCK.fullmatch(part)
        if match is None:
            self.fail(f"{part!r} is not a block; write bE(xE)*-type, extents without leading zeros")
        self.scale_form(match[2])
        # a number of more digits than any legal extent has stands for one too large: int() of it could take for ever
        extents = tuple(int(extent) if len(extent) <= 10 else LARGEST_EXTENT + 1 for extent in match[1].split("x"))
        if extents[0] == 1 and len(extents) > 1:
            self.fail(f"{part!r} has leading extents of 1; the one spelling drops them")
        self.next += 1
        return extents, match[2]

    def checked(self, name: str, check: Callable[[], T]) -> T:
        """What a check of the scheme gives; its refusal at the position of the part. Rule SCH-18."""
        try:
            return check()
        except SchemeError as error:
            self.fail(error.message, rule_id=error.rule, position=self.places[name])

    def table(self, part: str, value: ValueFormat) -> Table:
        """The table that a part names. Rules SCH-8, SCH-16, SCH-11."""
        name = part.removeprefix("lut-")
        require_indexed(value)
        note("SCH-16")
        if name not in self.known:
            raise SchemeError(
                "SCH-16",
                f"no table is named {name!r}; known here: {', '.join(self.known)} (pass tables= for one named by its digest)",
            )
        return table_for(self.known[name], value)

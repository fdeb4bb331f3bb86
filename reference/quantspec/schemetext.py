"""The text form of a scheme: value.store[.lut-name][.bE(xE)*-type][.t-type], exactly one spelling. Rules SCH-15, SCH-16."""

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from .blocks import LARGEST_EXTENT, normal_block
from .errors import SchemeError
from .scales import SCALES
from .stores import Store
from .tables import TABLES, Table
from .values import VALUES, ValueFormat, table_for

__all__ = ["SchemeText"]


class SchemeText:
    """Reads a scheme's text part by part; every failure has the position of its part. Rules SCH-15, SCH-16."""

    def __init__(self, text: str, tables: Sequence[Table]) -> None:
        if not isinstance(text, str):
            raise SchemeError("SCH-15", f"scheme text is {text!r}; allowed: a string")
        self.text = text
        self.tables = tables
        self.written = text.split(".")
        self.next = 0

    @property
    def position(self) -> int:
        return min(sum(len(part) + 1 for part in self.written[: self.next]), len(self.text))

    def fail(self, message: str, *, rule_id: str = "SCH-15") -> NoReturn:
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        raise SchemeError(rule_id, f"scheme {shown!r}, position {self.position}: {message}", self.position)

    def take(self, prefix: str) -> str | None:
        """The next part without its prefix, if it has that prefix."""
        if self.next < len(self.written) and self.written[self.next].startswith(prefix):
            return self.written[self.next].removeprefix(prefix)
        return None

    def parts(self) -> dict[str, Any]:
        """The parts of the scheme, by the names of its arguments."""
        value = self.take("")
        if value not in VALUES:
            self.fail(f"{value!r} is not a value format; allowed: {', '.join(VALUES)}")
        self.next += 1
        store = self.take("")
        if store is None:
            self.fail("the store is missing; allowed: native, packed_native_d, packed_u32_d")
        try:
            chosen = Store.of(store)
        except SchemeError as error:
            formed = re.fullmatch(r"packed_(?:native|u32)_(?:0|[1-9][0-9]*)", store, flags=re.ASCII)
            self.fail(error.message, rule_id=error.rule if formed else "SCH-15")
        self.next += 1
        table = self.table(VALUES[value])
        block = self.block()
        tensor = self.take("t-")
        if tensor is not None:
            self.scale(tensor)
            self.next += 1
        if self.next < len(self.written):
            self.fail(
                f"{self.written[self.next]!r} may not stand here; a text is value.store[.lut-name][.bE(xE)*-type][.t-type]"
            )
        if block is None and tensor is None:
            self.fail("a scale level is missing; write .bE-type, .t-type or both, for example .t-f32")
        mode = "symmetric" if table is None else "lookup"
        return {"value": value, "store": chosen, "mode": mode, "tensor": tensor, "block": block, "table": table}

    def scale(self, name: str) -> None:
        if name not in SCALES:
            self.fail(f"{name!r} is not a scale type; allowed: {', '.join(SCALES)}")

    def block(self) -> tuple[tuple[int, ...], str] | None:
        part = self.take("b")
        if part is None:
            return None
        number = r"(?:0|[1-9][0-9]*)"
        match = re.fullmatch(rf"({number}(?:x{number})*)-(.*)", part, flags=re.ASCII)
        if match is None:
            self.fail(f"{'b' + part!r} is not a block; write bE(xE)*-type, extents without leading zeros")
        # a number of more digits than any legal extent has stands for one too large: int() of it could take for ever
        extents = tuple(int(extent) if len(extent) <= 10 else LARGEST_EXTENT + 1 for extent in match[1].split("x"))
        self.scale(match[2])
        if extents[0] == 1 and len(extents) > 1:
            self.fail(f"{'b' + part!r} has leading extents of 1; the one spelling drops them")
        try:
            normal_block((extents, match[2]))
        except SchemeError as error:
            self.fail(error.message, rule_id=error.rule)
        self.next += 1
        return extents, match[2]

    def table(self, value: ValueFormat) -> Table | None:
        name = self.take("lut-")
        if name is None:
            return None
        known = TABLES | {table.name: table for table in self.tables}
        if name not in known:
            self.fail(
                f"no table is named {name!r}; known here: {', '.join(known)} (pass tables= for one named by its digest)",
                rule_id="SCH-16",
            )
        try:
            found = table_for(known[name], value)
        except SchemeError as error:
            self.fail(error.message, rule_id=error.rule)
        self.next += 1
        return found

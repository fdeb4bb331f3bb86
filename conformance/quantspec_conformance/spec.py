"""The rules as data: where spec/ lies, and the records of its rules."""

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .errors import DamagedError

__all__ = ["AREAS", "CHAPTERS", "RULE_ID", "Rule", "rule_key", "rule_line", "rules", "spec_root"]

#: Chapter of the rules -> the area its ids begin with, in the order in which they are read.
CHAPTERS = {
    "scheme": "SCH",
    "values": "VAL",
    "scales": "SCL",
    "blocks": "BLK",
    "quantize": "QNT",
    "packing": "PAK",
    "layout": "LAY",
    "operations": "OPS",
    "products": "PRD",
    "policies": "POL",
    "conformance": "CNF",
}
AREAS = tuple(CHAPTERS.values())
#: What the id of a rule looks like in a text.
RULE_ID = re.compile(rf"\b(?:{'|'.join(AREAS)})-[1-9][0-9]*\b")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a record of spec/rules/*.toml (schemas/rule.schema.json says what each member means)."""

    id: str
    title: str
    level: str
    text: str
    formula: str
    steps: tuple[str, ...]
    axis: str
    testable: str
    since: str
    changed: tuple[str, ...]
    chapter: str
    retired: str = ""

    @property
    def binding(self) -> bool:
        """True where an implementation has no choice, or a choice that must be named: MUST and POLICY."""
        return self.level in ("MUST", "POLICY") and not self.retired

    @property
    def digest(self) -> str:
        """12 hexadecimal digits of the SHA-256 of what binds: level, text and formula, white space squeezed."""
        words = "\n".join(" ".join(part.split()) for part in (self.level, self.text, self.formula, self.retired))
        return hashlib.sha256(words.encode()).hexdigest()[:12]


def spec_root(package: Path | None = None) -> Path:
    """The folder spec/: that of the checkout if this package lies in one, else the wheel's copy. DamagedError if neither.

    `package` is the folder of this package (for tests).
    """
    package = Path(__file__).resolve().parent if package is None else package
    candidates = [package.parent.parent / "spec", package / "spec"]
    if package.parent.name != "conformance":  # not a checkout: two folders up is somebody else's
        candidates = candidates[1:]
    for candidate in candidates:
        if (candidate / "rules").is_dir():
            return candidate
    looked = " and ".join(str(candidate) for candidate in candidates)
    raise DamagedError(f"the spec is missing: no folder rules/ in {looked}; reinstall quantspec")


def rule_key(rule_id: str) -> tuple[int, int]:
    """Sorts ids in reading order: by area, then by number."""
    area, _, number = rule_id.partition("-")
    return AREAS.index(area), int(number)


@cache
def rules(root: Path | None = None) -> dict[str, Rule]:
    """Every rule by id, in reading order, read from spec/rules/*.toml.

    DamagedError where a file cannot be read or an id occurs twice.
    """
    found: dict[str, Rule] = {}
    for path in sorted(((spec_root() if root is None else root) / "rules").glob("*.toml")):
        try:
            for row in tomllib.loads(path.read_text("utf-8"))["rule"]:
                record = _record(row, path.stem)
                if record.id in found:
                    raise DamagedError(f"{path}: rule {record.id} occurs twice")
                found[record.id] = record
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(f"{path}: not a file of rules ({type(error).__name__}: {error})") from None
    return dict(sorted(found.items(), key=lambda item: rule_key(item[0])))


def _record(row: dict[str, Any], chapter: str) -> Rule:
    texts = ("id", "title", "level", "text", "formula", "axis", "testable", "since")
    if not RULE_ID.fullmatch(row["id"]):
        raise TypeError(f"{row['id']!r} is not the id of a rule")
    return Rule(
        **{key: row[key].strip() for key in texts},
        steps=tuple(row["steps"]),
        changed=tuple(row["changed"]),
        chapter=chapter,
        retired=row.get("retired", ""),
    )


def rule_line(rule_id: str) -> str:
    """The id and the title of a rule on one line; the id alone where the spec has no such rule."""
    known = rules().get(rule_id)
    return rule_id if known is None else f"{known.id} {known.title}"

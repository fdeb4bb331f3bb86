"""The rules as data: where spec/ lies, and the texts of its rules."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import DamagedError

__all__ = ["Rule", "rule_line", "rules", "spec_root"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One normative rule: its id, its level (MUST, MAY, POLICY), a title and the text."""

    id: str
    title: str
    level: str
    text: str
    formula: str


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


@cache
def rules(root: Path | None = None) -> dict[str, Rule]:
    """Every rule by id, read from spec/rules/*.toml. DamagedError where a file cannot be read or an id occurs twice."""
    found: dict[str, Rule] = {}
    for path in sorted(((spec_root() if root is None else root) / "rules").glob("*.toml")):
        try:
            rows = tomllib.loads(path.read_text("utf-8"))["rule"]
            for row in rows:
                if row["id"] in found:
                    raise DamagedError(f"{path}: rule {row['id']} occurs twice")
                texts = {key: str(row[key]).strip() for key in ("id", "title", "level", "text", "formula")}
                found[texts["id"]] = Rule(**texts)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            raise DamagedError(f"{path}: not a file of rules ({type(error).__name__}: {error})") from None
    return found


def rule_line(rule_id: str) -> str:
    """The id and the title of a rule on one line; the id alone where the spec has no such rule."""
    known = rules().get(rule_id)
    return rule_id if known is None else f"{known.id} {known.title}"

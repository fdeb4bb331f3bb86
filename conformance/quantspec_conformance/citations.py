"""Where the rules are executed: the source lines of the reference, the kernels and the harness that cite a rule."""

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .spec import RULE_ID

__all__ = ["PACKAGES", "Citation", "citations", "package_folder"]

#: Package -> its folder in a checkout.
PACKAGES = {"quantspec": "reference", "quantspec_cl": "kernels_cl", "quantspec_conformance": "conformance"}


@dataclass(frozen=True, slots=True)
class Citation:
    """One line that cites a rule: as a string of its own (executed), or in a docstring or remark."""

    rule: str
    package: str
    file: str  #: below the package's folder
    line: int
    function: str  #: the innermost function or class around it; "" at the top of a file
    executed: bool  #: `@rule("X-1")`, `note("X-1")`, `Error("X-1", ...)`: the code runs it

    @property
    def place(self) -> str:
        """Path in a checkout and line."""
        return f"{PACKAGES[self.package]}/{self.package}/{self.file}:{self.line}"


def package_folder(package: str) -> Path | None:
    """The folder of an installed package, without importing it; None where it is not installed."""
    found = importlib.util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _names(tree: ast.Module) -> list[tuple[int, int, str]]:
    """First line, last line and name of every function and class."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]


def _python(text: str) -> Iterator[tuple[str, int, str, bool]]:
    """Rule, line, function, executed."""
    tree = ast.parse(text)
    names = _names(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        executed = RULE_ID.fullmatch(node.value) is not None
        around = [(last - first, name) for first, last, name in names if first <= node.lineno <= last]
        for rule_id in [node.value] if executed else RULE_ID.findall(node.value):
            yield rule_id, node.lineno, min(around)[1] if around else "", executed


def _kernel(text: str) -> Iterator[tuple[str, int, str, bool]]:
    for number, line in enumerate(text.splitlines(), 1):
        for rule_id in RULE_ID.findall(line):
            yield rule_id, number, "", False


@cache
def citations() -> dict[str, tuple[Citation, ...]]:
    """Every citation by rule id: executed ones first, then by package, file and line."""
    found: dict[str, list[Citation]] = {}
    for package in PACKAGES:
        folder = package_folder(package)
        if folder is None:
            continue
        sources = [*folder.rglob("*.py"), *folder.rglob("*.cl")]
        for path in sorted(
            path for path in sources if path.relative_to(folder).parts[0] != "site"
        ):  # pages execute nothing
            read = _python if path.suffix == ".py" else _kernel
            for rule_id, line, function, executed in read(path.read_text("utf-8")):
                where = path.relative_to(folder).as_posix()
                found.setdefault(rule_id, []).append(Citation(rule_id, package, where, line, function, executed))
    order = list(PACKAGES)
    return {
        rule_id: tuple(sorted(rows, key=lambda row: (not row.executed, order.index(row.package), row.file, row.line)))
        for rule_id, rows in found.items()
    }

"""What is released: suite files and the ledger of ids, written anew or compared with what lies there.

vectors/ids.json holds every id that was ever released, with its level; an id that falls away needs a reason and never comes back.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DamagedError, UsageError
from .. import blob
from ..store import Suite, files_of, suite_files
from . import Place, plans

__all__ = ["LEDGER", "ledger_of", "load_ledger", "stale", "write_suites"]

LEDGER = "ids.json"
SCHEMA = "ids-1"
SHIPPED = (0, 1)


def load_ledger(root: Path) -> dict[str, Any]:
    """The ids released so far; none where there is no ledger yet. DamagedError for a file that is none."""
    path = root / LEDGER
    if not path.exists():
        return {"schema": SCHEMA, "ids": {}, "retired": {}}
    try:
        content: dict[str, Any] = json.loads(path.read_text("ascii"))
        whole = content["schema"] == SCHEMA and all(level in (*SHIPPED, 2) for level in content["ids"].values())
        whole = whole and all(isinstance(reason, str) and reason for reason in content["retired"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path}: no ledger of ids ({type(error).__name__}: {error})") from None
    if not whole or set(content) != {"schema", "ids", "retired"}:
        raise DamagedError(
            f"{path}: no ledger of ids; allowed: schema {SCHEMA}, ids with their levels, retired with reasons"
        )
    return content


def _text(content: Mapping[str, Any]) -> bytes:
    """The ledger, an id a line."""
    parts = []
    for name in ("ids", "retired"):
        rows = ",\n  ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(content[name].items()))
        parts.append(f' "{name}": {{\n  {rows}\n }}' if rows else f' "{name}": {{}}')
    return f'{{\n "schema": "{SCHEMA}",\n{parts[0]},\n{parts[1]}\n}}\n'.encode("ascii")


def ledger_of(
    known: Mapping[str, Any], ids: Mapping[str, int], levels: Sequence[int], *, retire: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The ledger after a release of these ids at these levels.

    UsageError for an id that vanished without a reason, one that came back, and a reason for one that is still there.
    """
    before: dict[str, int] = dict(known["ids"])
    retired: dict[str, str] = dict(known["retired"])
    for case_id, reason in (retire or {}).items():
        if case_id not in before or case_id in ids or not reason:
            raise UsageError(f"--retire {case_id}: allowed: a case that is no longer generated, and a reason")
        retired[case_id] = reason
        del before[case_id]
    vanished = [case_id for case_id, level in before.items() if level in levels and case_id not in ids]
    if vanished:
        more = f" (and {len(vanished) - 1} more)" if len(vanished) > 1 else ""
        raise UsageError(f"{vanished[0]}{more} is no longer generated; ids are for ever: retire it with a reason")
    back = [case_id for case_id in ids if case_id in retired]
    if back:
        raise UsageError(f"{back[0]} was retired ({retired[back[0]]}); take a new id")
    return {"schema": SCHEMA, "ids": {**before, **ids}, "retired": retired}


def _made(levels: Sequence[int], chosen: Callable[[Place], bool]) -> Iterator[Suite]:
    for level in levels:
        for plan in plans(level):
            if chosen(plan.place):
                suite = plan.suite()
                if suite.cases:
                    yield suite


def write_suites(
    root: Path,
    levels: Sequence[int] = SHIPPED,
    *,
    retire: Mapping[str, str] | None = None,
    chosen: Callable[[Place], bool] | None = None,
) -> list[str]:
    """Write every suite of these levels and the ledger; files of suites that are no more go. Returns the paths that changed.

    `chosen` takes a part of the suites, for a folder that is to hold no more. Nothing is written where the ledger refuses.
    """
    files: dict[str, bytes] = {}
    ids: dict[str, int] = {}
    for suite in _made(levels, chosen or (lambda place: True)):
        twice = [case.id for case in suite.cases if case.id in ids]
        if twice:
            raise DamagedError(f"{twice[0]}: two suites have it, one of them {suite.place}")
        ids |= {case.id: case.level for case in suite.cases}
        files |= files_of(suite)
    files[LEDGER] = _text(ledger_of(load_ledger(root), ids, levels, retire=retire))
    gone = [name for name in _on_disk(root, levels) if name not in files]
    changed = [name for name, content in files.items() if not _same(root / name, content)]
    for name in changed:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.new")
        beside.write_bytes(files[name])
        os.replace(beside, path)
    for name in gone:
        (root / name).unlink()
    return changed + gone


def _same(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() == content


def _on_disk(root: Path, levels: Sequence[int]) -> list[str]:
    """The files of suites of these levels, and data files that no suite file stands beside."""
    found = []
    for path in suite_files(root):
        try:
            level = json.loads(path.read_text("ascii"))["level"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            level = levels[0]  # not a suite: nothing that the generator wrote
        if level in levels:
            found += [path, path.with_suffix(".safetensors")]
    found += [path for path in root.glob("*/*/*.safetensors") if not path.with_suffix(".json").exists()]
    return sorted({path.relative_to(root).as_posix() for path in found if path.exists()})


def stale(root: Path, *, levels: Sequence[int] = SHIPPED, chosen: Callable[[Place], bool] | None = None) -> list[str]:
    """What keeps the files from being those of the generator, a line each: the file, and the first case that differs.

    `chosen` looks at a part of the suites only; then nothing is said of files that should not be there, nor of the ledger.
    """
    found: list[str] = []
    expected: set[str] = set()
    ids: dict[str, int] = {}
    for suite in _made(levels, chosen or (lambda place: True)):
        ids |= {case.id: case.level for case in suite.cases}
        for name, content in files_of(suite).items():
            expected.add(name)
            found += _difference(root / name, name, content)
    if chosen is None:
        found += [f"{name}: no suite of the generator" for name in _on_disk(root, levels) if name not in expected]
        try:
            known = load_ledger(root)
            if _text(ledger_of(known, ids, levels)) != _text(known):
                found.append(f"{LEDGER}: ids are missing: write the suites anew")
        except (UsageError, DamagedError) as error:
            found.append(f"{LEDGER}: {error}")
    return found


def _difference(path: Path, name: str, expected: bytes) -> list[str]:
    if not path.is_file():
        return [f"{name}: missing"]
    actual = path.read_bytes()
    if actual == expected:
        return []
    where = _first_key(actual, expected) if path.suffix == ".safetensors" else _first_line(actual, expected)
    return [f"{name}: not what the generator writes: {where}"]


def _first_line(actual: bytes, expected: bytes) -> str:
    """The id of the case, or the line, that differs first."""
    ours, theirs = expected.splitlines(), actual.splitlines()
    number = next(
        (n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
    )
    line = ours[number] if number < len(ours) else b""
    head, _, rest = line.strip().partition(b'{"id": "')
    case_id = rest.partition(b'"')[0].decode()
    return f"case {case_id}" if rest and not head else f"line {number + 1}"


def _first_key(actual: bytes, expected: bytes) -> str:
    """The case and entry whose tensor differs first."""
    try:
        theirs = blob.read(actual)
    except ValueError as error:
        return str(error)
    wrong = [key for key, row in blob.read(expected).items() if theirs.get(key) != row]
    return f"case {wrong[0].replace(':', ', ')}" if wrong else "tensors that no case uses"

"""Suite files: vectors/<format>/<op>/<suite>.json, and a .safetensors beside it for tensors above 256 bytes.

What is read is hostile: sizes are bounded, digests checked, no key unknown, no path leaves the folder, nothing is lost.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import quantspec

from .. import doccases
from ..errors import DamagedError
from ..examples import DTYPES, Tensor
from ..outside import kind_of, printable
from . import blob
from .case import LEVELS, Case
from .doc import doc_cases
from .entry import Entries, case_of, names_of

__all__ = [
    "GENERATOR", "INLINE", "SCHEMA", "SUITE_VERSION", "Suite", "files_of", "load_all", "load_suite", "suite_digest",
    "suite_files", "vectors_root",
]  # fmt: skip

SCHEMA = "suite-1"
#: Of the cases: major: their format, minor: more of them, patch: a corrected one.
SUITE_VERSION = "1.4.0"
GENERATOR = {"name": "quantspec_conformance.suite.generate", "version": "1"}
#: Bytes of a tensor that stays in the JSON.
INLINE = 256
LARGEST_FILE = 64 << 20
MOST_CASES = 100_000
HEAD = (
    "schema", "suite", "format", "op", "level", "suite_version", "spec_version", "generator", "data", "count", "cases",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Cases of one operation, format and level: one file."""

    format: str
    op: str
    name: str
    level: int
    cases: tuple[Case, ...]

    @property
    def place(self) -> str:
        """format/op/name: where it lies below the root, without the ending."""
        return f"{self.format}/{self.op}/{self.name}"


def vectors_root() -> Path:
    """The folder of the shipped suites."""
    return doccases.case_file().parent


def files_of(suite: Suite) -> dict[str, bytes]:
    """The bytes of a suite's files by path below the root: the same wherever they are made; cases in the order of their ids."""
    large: dict[str, Tensor] = {}
    keys: dict[Tensor, str] = {}

    def entry(key: str, tensor: Tensor) -> dict[str, Any]:
        digits, _ = DTYPES[tensor.dtype]
        kept: dict[str, Any] = {"dtype": tensor.dtype, "shape": list(tensor.shape)}
        if len(tensor.patterns) * digits // 2 <= INLINE:
            return {**kept, "bits": " ".join(f"{pattern:0{digits}X}" for pattern in tensor.patterns)}
        found = keys.setdefault(tensor, key)
        large.setdefault(found, tensor)
        return {**kept, "key": found}

    rows = [_row(case, entry) for case in sorted(suite.cases, key=lambda case: case.id)]
    data = blob.write(large) if large else None
    name = f"{suite.name}.safetensors"
    head = {
        "schema": SCHEMA,
        "suite": suite.name,
        "format": suite.format,
        "op": suite.op,
        "level": suite.level,
        "suite_version": SUITE_VERSION,
        "spec_version": quantspec.__version__,
        "generator": GENERATOR,
        "data": None
        if data is None
        else {"file": name, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)},
        "count": len(rows),
    }
    lines = "".join(f' "{key}": {_json(value)},\n' for key, value in head.items())
    cases = ",\n  ".join(map(_json, rows))
    found = {f"{suite.place}.json": f'{{\n{lines} "cases": [\n  {cases}\n ]\n}}\n'.encode("ascii")}
    return found if data is None else {**found, f"{suite.format}/{suite.op}/{name}": data}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(", ", ": "))


def _row(case: Case, entry: Any) -> dict[str, Any]:
    """A case as its line says it, keys in canonical order."""

    def entries(section: str, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        return {name: entry(f"{case.id}:{section}:{name}", tensor) for name, tensor in tensors.items()}

    refusal = case.refusal
    return {
        "id": case.id,
        "title": case.title,
        "op": case.op,
        "level": case.level,
        "kind": case.kind,
        "strength": case.strength,
        "words": dict(case.words),
        "in": entries("in", case.inputs),
        "out": entries("out", case.outputs),
        "told": dict(case.told),
        "equal": dict(case.equal),
        "intermediates": entries("between", case.intermediates),
        "refusal": None
        if refusal is None
        else {"kind": refusal.kind, "rule": refusal.rule, "argument": refusal.argument},
        "control": case.control,
        "rules": list(case.rules),
        "features": list(case.features),
        **({"policies": case.policies} if case.policies else {}),
        "bugs": list(case.bugs),
        "provenance": case.provenance,
    }


def load_suite(path: Path) -> tuple[Case, ...]:
    """The cases of a suite file. DamagedError, with the file and the reason, where it or its data is not what it must be."""
    content = _parse(_read(path), path)
    _check_head(content, path)
    place = f"{content['format']}/{content['op']}/{content['suite']}"
    entries = Entries(_data(content["data"], path))
    try:
        cases = tuple(case_of(row, entries, place) for row in content["cases"])
        entries.require_all_used()
        _check_together(cases, content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from None
    return cases


def _check_together(cases: Sequence[Case], content: Mapping[str, Any]) -> None:
    """What holds between the cases of a file and its head."""
    by_id: dict[str, Case] = {}
    for case in cases:
        if case.id in by_id:
            raise ValueError(f"{case.id} stands twice")
        by_id[case.id] = case
    for case in cases:
        if (case.op, case.level) != (content["op"], content["level"]):
            raise ValueError(
                f"{case.id}: op {case.op}, level {case.level}; the file is of {content['op']}, {content['level']}"
            )
        if case.control and (case.control not in by_id or by_id[case.control].refusal is not None):
            raise ValueError(f"{case.id}: its control {case.control} is no accepted case of the file")


def _check_head(content: Any, path: Path) -> None:
    """The members of the head, each of its kind."""
    if not isinstance(content, dict) or tuple(content) != HEAD:
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise _damaged(path, f"members {str(found)[:200]}; allowed: exactly {', '.join(HEAD)}, in this order")
    if content["schema"] != SCHEMA:
        raise _damaged(path, f"schema {content['schema']!r}; allowed: {SCHEMA}")
    cases, count, generator = content["cases"], content["count"], content["generator"]
    if not isinstance(cases, list) or isinstance(count, bool) or count != len(cases):
        raise _damaged(path, f"count {count!r} is not the number of cases")
    if len(cases) > MOST_CASES:
        raise _damaged(path, f"{len(cases)} cases; allowed: at most {MOST_CASES}")
    if not isinstance(content["level"], int) or content["level"] not in LEVELS:
        raise _damaged(path, f"level {content['level']!r}; allowed: {LEVELS}")
    texts = [content["suite_version"], content["spec_version"]]
    texts += (
        list(generator.values()) if isinstance(generator, dict) and list(generator) == ["name", "version"] else [None]
    )
    if not all(isinstance(text, str) and text for text in texts):
        raise _damaged(path, "suite_version, spec_version and generator {name, version} are texts")
    try:
        names_of(content["suite"], content["format"], content["op"])
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    parts = path.absolute().parts[-3:]
    if parts != (content["format"], content["op"], f"{content['suite']}.json"):
        raise _damaged(path, f"is the suite {content['format']}/{content['op']}/{content['suite']}: not at its place")


def _data(row: Any, path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """The tensors of the data file that the head names."""
    if row is None:
        return {}
    if (
        not isinstance(row, dict)
        or list(row) != ["file", "sha256", "bytes"]
        or row["file"] != f"{path.stem}.safetensors"
    ):
        raise _damaged(
            path, f"data {str(row)[:120]!r}; allowed: null, or file {path.stem}.safetensors, sha256 and bytes"
        )
    beside = path.parent / f"{path.stem}.safetensors"
    if beside.resolve().parent != path.resolve().parent:
        raise _damaged(path, f"{beside.name} leads out of the folder")
    data = _read(beside)
    if len(data) != row["bytes"] or hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise _damaged(beside, f"{len(data)} bytes, not those whose SHA-256 {path.name} holds")
    try:
        return blob.read(data)
    except ValueError as error:
        raise _damaged(beside, str(error)) from None


def _damaged(path: Path, reason: str) -> DamagedError:
    return DamagedError(printable(f"{path}: {reason}"))


def _read(path: Path) -> bytes:
    """The bytes of a regular file of bounded size."""
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            kind = kind_of(status.st_mode)
            if kind is not None:
                raise _damaged(path, f"is {kind}")
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise _damaged(path, error.strerror or type(error).__name__) from None
    if len(data) > LARGEST_FILE:
        raise _damaged(path, f"more than {LARGEST_FILE >> 20} MiB")
    return data


def _parse(data: bytes, path: Path) -> Any:
    """JSON without anything that suites have not: doubled members, fractions, NaN, depth."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a member stands twice")
        return found

    def fraction(text: str) -> Any:
        raise ValueError(f"the number {text[:20]}")

    try:
        return json.loads(
            data.decode("ascii"), object_pairs_hook=members, parse_float=fraction, parse_constant=fraction
        )
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"not JSON of a suite ({type(error).__name__}: {str(error)[:120]})") from None


def suite_files(root: Path) -> Iterator[Path]:
    """Every suite file below a root, in order. DamagedError for one that lies outside of it by a link."""
    return (_inside(path, root) for path in sorted(root.glob("*/*/*.json")))


def _inside(path: Path, root: Path) -> Path:
    """The path, where no link leads out of the root."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise _damaged(path, f"leads out of {root}")
    return path


def load_all(root: Path) -> tuple[Case, ...]:
    """Every case that is shipped below a root, the worked examples of the spec first. DamagedError."""
    found: dict[str, Case] = {}
    doc = root / "doc.json"
    if doc.exists():
        _parse(_read(_inside(doc, root)), doc)
        found |= {case.id: case for case in doc_cases(doccases.load(doc))}
    for path in suite_files(root):
        for case in load_suite(path):
            if case.id in found:
                raise _damaged(path, f"{case.id} stands in {found[case.id].suite} too")
            found[case.id] = case
    return tuple(found.values())


def suite_digest(root: Path) -> str:
    """SHA-256 over path and SHA-256 of every file that holds cases, in the order of their paths."""
    total = hashlib.sha256()
    files = [path for path in [root / "doc.json"] if path.exists()]
    for path in suite_files(root):
        files += [path, *(p for p in [path.with_suffix(".safetensors")] if p.exists())]
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        total.update(
            f"{path.relative_to(root).as_posix()} {hashlib.sha256(_read(_inside(path, root))).hexdigest()}\n".encode()
        )
    return total.hexdigest()

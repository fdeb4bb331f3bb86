"""A second verifier of result files, written from the published schemas alone: it imports nothing of this project.

    python independent_verify.py RESULT SCHEMAS [SUITES]

SCHEMAS: folder of the JSON schemas. SUITES: folder of suite files, which a result made with that very suite is held against.
"""

import hashlib
import json
import math
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import jsonschema

LIMIT, LINE = 1 << 28, 1 << 20  # bytes of a file and of a line
RECORDS = ("header", "case", "footer")
COUNTED = ("bits", "padding", "unwritten")
REASONED = ("unsupported", "skipped", "notrun", "nondeterministic")
ANSWERED = ("fail", "reject-missing", "wrong-error", "nondeterministic", "known")
LETTERS = {"f32": "<I", "f16": "<H", "bf16": "<H", "u8": "<B", "u16": "<H", "u32": "<I", "f64": "<Q", "i32": "<I"}


def loads(raw: bytes) -> Any:
    """JSON without doubled keys and without NaN. ValueError."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) != len(found):
            raise ValueError("a key stands twice")
        return dict(found)

    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=pairs, parse_constant=int)  # NaN is no int
    except RecursionError:
        raise ValueError("nested too deep") from None


def against(validator: Any, content: Any) -> str:
    """The first thing that a schema refuses; empty where it takes all."""
    try:
        error = next(validator.iter_errors(content), None)
    except RecursionError:
        return "nested too deep"
    return "" if error is None else ascii(f"{list(error.absolute_path)} {error.message[:120]}")


def suites(root: Path, schemas: dict[str, Any]) -> tuple[str, dict[str, Any], list[str]]:
    """Digest of a folder of suites, its cases by id, and the faults of its files."""
    cases, faults, total = dict[str, Any](), list[str](), hashlib.sha256()
    found = [root / "doc.json", *root.glob("*/*/*.json"), *root.glob("*/*/*.safetensors")]
    files = [path for path in found if path.is_file()]
    for path in sorted(files, key=lambda p: p.relative_to(root).as_posix()):
        raw = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()} {hashlib.sha256(raw).hexdigest()}\n".encode())
        if path.suffix == ".json":
            content = loads(raw)
            fault = against(jsonschema.Draft202012Validator(schemas[content["schema"]]), content)
            faults += [f"{path}: {fault}"] if fault else []
            for case in content["cases"]:
                cases[case["id"]] = {**case, "data": path.with_suffix(".safetensors")}
    return total.hexdigest(), cases, faults


def wanted(case: Any, part: str) -> tuple[list[int], list[int]] | None:
    """Shape and patterns of an output of a case; None where the suite does not say them."""
    entry = case.get("out", case.get("gives", {})).get(part)
    if not isinstance(entry, dict):
        return None
    if "bits" in entry:
        return entry["shape"], [int(bits, 16) for bits in entry["bits"].split()]
    raw = case["data"].read_bytes()
    size = int.from_bytes(raw[:8], "little")
    start, end = json.loads(raw[8 : 8 + size])[entry["key"]]["data_offsets"]
    patterns = struct.iter_unpack(LETTERS[entry["dtype"]], raw[8 + size + start : 8 + size + end])
    return entry["shape"], [row[0] for row in patterns]


def case_faults(row: Any, case: Any | None) -> Iterator[str]:
    """What the record of a case contradicts in itself and in the suite."""
    outcome, expected, found = row["outcome"], row["expected"], row["mismatch"]
    if (outcome == "fail") != (found is not None):
        yield f"{outcome} and mismatch do not go together"
    if (outcome in REASONED and not row["reason"]) or (
        outcome == "pass" and (row["reason"] or row["rules"] or row["rule"])
    ):
        yield f"reason {row['reason'][:80]!r} and rules of {outcome}"
    if outcome in ("fail", "reject-missing") and row["rule"] not in row["rules"]:
        yield f"rule {row['rule']!r} is not among its rules"
    if outcome != "error" and bool(row["digest"]) != (outcome in ANSWERED):
        yield f"digest {row['digest']!r} of {outcome}"
    agreed = {
        "": expected == "pass" or outcome in ("pass", "notrun", "skipped"),
        "xpass": outcome == "pass" != expected,
        "changed": "pass" not in (outcome, expected),
    }.get(row["comparison"], outcome == expected != "pass")
    if not agreed:
        yield f"comparison {row['comparison']!r} of {outcome} with {expected} expected"
    if found is not None:
        yield from mismatch_faults(found, case)


def mismatch_faults(found: Any, case: Any | None) -> Iterator[str]:
    """What a mismatch contradicts."""
    first, count, total = found["first"], found["count"], found["total"]
    if found["kind"] not in COUNTED:
        if first or count or total or found["buckets"] or not found["message"]:
            yield f"entries in, or no message of, a mismatch of kind {found['kind']}"
        return
    if not (len(first) <= count <= total and count > 0) or sum(found["buckets"].values()) > count:
        yield f"{len(first)} entries of {count} of {total}"
    flats = [entry["flat"] for entry in first if entry["expected"] != entry["actual"]]
    if flats != sorted(set(flats)) or len(flats) < len(first) or max(flats, default=0) >= total:
        yield "entries out of order, out of range, or without a difference"
    tensor = None if case is None else wanted(case, found["part"])
    if tensor is None:
        return
    shape, patterns = tensor
    if len(patterns) != total:
        yield f"{total} entries; the suite has {len(patterns)}"
        return
    for entry in first:
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        place = sum(i * stride for i, stride in zip(entry["index"], strides, strict=False))
        if len(entry["index"]) != len(shape) or place != entry["flat"]:
            yield f"entry {entry['flat']} is not at {entry['index']}"
        elif int(entry["expected"], 16) != patterns[place]:
            yield f"entry {place}: the suite expects 0x{patterns[place]:X}"


def read(result: Path, parts: Any) -> tuple[list[bytes], list[Any], list[str]]:
    """The lines of a file, what they hold, and which of them follow no schema."""
    kinds = {kind: jsonschema.Draft202012Validator({**parts[kind], "$defs": parts}) for kind in RECORDS}
    lines = BytesIO(result.read_bytes()).readlines()
    faults, rows = list[str](), list[Any]()
    for number, raw in enumerate(lines, 1):
        try:
            if not raw.endswith(b"\n") or len(raw) > LINE:
                raise ValueError("cut off, or too long")
            rows.append(loads(raw))
            kind = rows[-1].get("record") if isinstance(rows[-1], dict) else None
            fault = against(kinds[kind], rows[-1]) if isinstance(kind, str) and kind in kinds else "no record"
        except ValueError as error:
            fault = str(error)
        faults += [f"line {number}: {fault}"] if fault else []
    if not faults and [row["record"] for row in rows] != ["header", *["case"] * (len(rows) - 2), "footer"]:
        faults = ["not a header, cases, and a footer"]
    return lines, rows, faults


def footer_faults(header: Any, cases: list[Any], footer: Any) -> Iterator[str]:
    """What the footer says that the cases do not."""
    totals = Counter(row["outcome"] for row in cases)
    if dict(totals) != footer["totals"] or footer["notrun"] != totals["notrun"]:
        yield f"totals {footer['totals']}; counted {dict(totals)}"
    if footer["complete"] and (footer["interrupted"] or totals["notrun"]):
        yield "complete, and interrupted or with cases not run"
    try:
        if datetime.fromisoformat(footer["ended"]) < datetime.fromisoformat(header["started"]):
            yield "ended before it started"
    except ValueError as error:
        yield str(error)
    yield from (f"{i} stands twice" for i, count in Counter(row["id"] for row in cases).items() if count > 1)


def check(result: Path, schema_folder: Path, suite_folder: Path | None = None) -> list[str]:
    """Everything that is wrong with a result file."""
    published = [json.loads(path.read_text("utf-8")) for path in schema_folder.glob("*.schema.json")]
    by_name = {s.get("properties", {}).get("schema", {}).get("const", s["title"]): s for s in published}
    if result.stat().st_size > LIMIT:
        return [f"larger than {LIMIT} bytes"]
    lines, rows, faults = read(result, next(s for s in published if s["$id"].endswith("/result-1.json"))["$defs"])
    if faults:
        return faults
    header, cases, footer = rows[0], rows[1:-1], rows[-1]
    if footer["digest"] != hashlib.sha256(b"".join(lines[:-1])).hexdigest():
        faults.append("the lines are not those of the digest")
    faults += footer_faults(header, cases, footer)
    digest, known, wrong = ("", {}, []) if suite_folder is None else suites(suite_folder, by_name)
    same = suite_folder is not None and digest == header["suite"]["digest"]
    for row in cases:
        faults += [f"{row['id']}: the suite has no such case"] if same and row["id"] not in known else []
        faults += [f"{row['id']}: {fault}" for fault in case_faults(row, known.get(row["id"]) if same else None)]
    selection, done = header["selection"], {row["id"] for row in cases}
    if same and not selection["expression"] and not selection["profile"]:
        levels = selection["levels"] or [0, 1, 2]
        faults += [f"{i} has no result" for i, case in known.items() if case.get("level") in levels and i not in done]
    return faults + wrong


if __name__ == "__main__":
    found = check(*map(Path, sys.argv[1:4]))
    print("\n".join(found) or "nothing is wrong")
    raise SystemExit(1 if found else 0)

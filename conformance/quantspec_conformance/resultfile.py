"""The result file of a run: one JSON object after schemas/run.schema.json, written whole or not at all."""

import json
import os
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from .compare import OUTCOMES
from .errors import DamagedError, UsageError
from .outside import kind_of, reason_of
from .results import DeviceResult

__all__ = ["check_writable", "device_json", "run_schema", "write_json"]


def run_schema() -> dict[str, Any]:
    """The JSON schema of a result file. DamagedError where it is missing."""
    try:
        text = (resources.files("quantspec_conformance") / "schemas" / "run.schema.json").read_text("utf-8")
        schema: dict[str, Any] = json.loads(text)
    except (OSError, ValueError) as error:
        raise DamagedError(f"schemas/run.schema.json cannot be read: {error}") from None
    return schema


def device_json(device: DeviceResult) -> dict[str, Any]:
    """The outcomes of one device for the result file."""
    return {
        "label": device.label,
        "identity": device.identity,
        "as_expected": device.as_expected,
        "restarts": device.restarts,
        "ended": device.ended,
        "unusable": device.unusable,
        "totals": device.totals,
        "refusal_rules": dict(sorted(device.refusal_rules.items())),
        "schemes": {
            text: {outcome: row[outcome] for outcome in OUTCOMES if row[outcome]}
            for text, row in device.schemes.items()
        },
        "failed": dict(device.failed.most_common()),
        "failures": [failure.as_json() for failure in device.failures],
    }


def check_writable(path: Path) -> Path:
    """The file to write, behind symbolic links. UsageError for what cannot be written, before the run and not after it."""
    shown = f"--json {str(path)!r}"
    if str(path) == "-":  # elsewhere that is stdout; here the report goes there
        raise UsageError(f"{shown} is no file: stdout has the report; allowed: a regular file, or a new one")
    try:
        kind = kind_of(path.stat().st_mode)  # of the path as given: behind /dev/stdout lies a name that no file has
    except FileNotFoundError:
        kind = None
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown} cannot be written: {reason_of(error)}") from None
    if kind is not None:
        raise UsageError(f"{shown} is {kind}; allowed: a regular file, or a new one")
    try:
        target = path.resolve()
        if not target.parent.is_dir():
            raise UsageError(f"{shown}: no folder {str(target.parent)!r}")
        handle, name = _temporary(target)
        os.close(handle)
        Path(name).unlink()
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError
        raise UsageError(f"{shown}: the folder cannot be written: {reason_of(error)}") from None
    return target


def _temporary(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=".quantspec-", suffix=".tmp", dir=path.parent)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file beside `path`, then rename: a reader sees all of it or what was there before.

    `path` is what `check_writable` returned. UsageError where the system refuses.
    """
    try:
        _write(path, content)
    except OSError as error:
        raise UsageError(f"--json: {str(path)!r} cannot be written: {reason_of(error)}") from None


def _write(path: Path, content: dict[str, Any]) -> None:
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""The result file of a run: one JSON object after schemas/run.schema.json, written whole or not at all."""

import json
import os
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from .compare import OUTCOMES
from .errors import DamagedError, UsageError
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


def check_writable(path: Path) -> None:
    """Refuse a path that cannot be written, before the run and not after it. UsageError."""
    if path.is_dir():
        raise UsageError(f"--json {str(path)!r} is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"--json {str(path)!r}: no folder {str(path.parent)!r}")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"--json {str(path)!r}: the folder cannot be written")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write through a temporary file beside `path`, then rename: a reader sees all of it or what was there before."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
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

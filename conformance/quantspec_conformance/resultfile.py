"""The result file of a run: one JSON object after schemas/run.schema.json, written whole or not at all."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from .compare import OUTCOMES
from .errors import DamagedError
from .results import DeviceResult
from .wholefile import check_target, write_whole

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
    return check_target(path, f"--json {str(path)!r}")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write whole or not at all. `path` is what `check_writable` returned. UsageError where the system refuses."""
    write_whole(path, (json.dumps(content, indent=1) + "\n").encode(), f"--json: {str(path)!r}")

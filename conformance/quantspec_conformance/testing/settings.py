"""The options of the plugin, checked: every fault is one line."""

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..outside import printable

__all__ = ["LEVELS", "TIMEOUT", "Settings"]

LEVELS = ("0", "1", "2")
#: Seconds that a request may take.
TIMEOUT = 10.0
_LONGEST = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the options say."""

    impl: str
    select: str = ""
    level: int = 0
    profile: str = ""
    expect: Path | None = None
    timeout: float = TIMEOUT

    @classmethod
    def of(cls, config: pytest.Config) -> "Settings":
        """The settings of a run. pytest.UsageError for a value that means nothing."""
        impl: str | None = config.getoption("qs_impl")
        if impl is None or not impl.strip():
            raise pytest.UsageError(
                "--qs-impl: needs the address of an implementation; the other --qs options go with it"
            )
        expect: str | None = config.getoption("qs_expect")
        return cls(
            impl=impl,
            select=config.getoption("qs_select") or "",
            level=_level(config.getoption("qs_level")),
            profile=config.getoption("qs_profile") or "",
            expect=None if expect is None else _file(config, expect),
            timeout=_seconds(config.getoption("qs_timeout")),
        )


def _level(text: str | None) -> int:
    if text is not None and text not in LEVELS:
        raise pytest.UsageError(f"--qs-level: {_shown(text)}; allowed: {', '.join(LEVELS)}")
    return int(text or 0)


def _seconds(text: str | None) -> float:
    try:
        seconds = TIMEOUT if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST:
        raise pytest.UsageError(f"--qs-timeout: {_shown(text)}; allowed: seconds above 0, at most {_LONGEST:.0f}")
    return seconds


def _file(config: pytest.Config, text: str) -> Path:
    path = config.invocation_params.dir / text
    if not path.is_file():
        raise pytest.UsageError(f"--qs-expect: {_shown(text)} is no file")
    return path


def _shown(text: str | None) -> str:
    return repr(printable(text or "")[:120])

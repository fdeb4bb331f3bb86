"""Expectations of an implementation: what it is known to get wrong, strict both ways. Schema expect-1."""

from .apply import PROBLEMS, Applied, Compared, Problem, apply
from .check import RunLike, check, check_command, run_info, script_command, unfinished, update_command
from .edit import script, update
from .records import ALLOWED_OUTCOMES, KINDS, SCHEMA, Entry, Expectations, parse, read
from .verdict import ResultLike, signature
from .when import When, WhenError

__all__ = [
    "ALLOWED_OUTCOMES", "KINDS", "PROBLEMS", "SCHEMA", "Applied", "Compared", "Entry", "Expectations", "Problem", "ResultLike",
    "RunLike", "When", "WhenError", "apply", "check", "check_command", "parse", "read", "run_info", "script",
    "script_command", "signature", "unfinished", "update", "update_command",
]  # fmt: skip

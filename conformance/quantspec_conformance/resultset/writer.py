"""A result file while it is written: every case is with the system as soon as it is known, and an end is always written.

The file grows under the name `<name>.partial` beside its target and takes the target's name at the end. A run that is killed
leaves the partial file, every line of it whole but perhaps the last; one that is there already is left alone.
"""

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import DamagedError, UsageError
from ..outside import printable, reason_of
from ..resultfile import check_writable
from ..suite.case import CASE_ID
from ..suite.outcome import OUTCOMES, CaseResult
from .header import now
from .record import CaseRecord, RunRecord, clip
from .schema import fault_of

__all__ = ["LINE", "ResultWriter", "line_of", "target_of"]

#: Bytes of a line, its line feed included.
LINE = 1 << 20
#: Partial files of earlier runs that are kept beside one target.
PARTIALS = 100
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL


def line_of(content: Mapping[str, Any]) -> bytes:
    """A record as a line of the file: ASCII, whatever its texts hold."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def target_of(path: Path) -> Path:
    """The file that a result will be written to, checked before the run. UsageError where that cannot be done."""
    try:
        return check_writable(path)
    except UsageError as error:
        raise UsageError(f"result file {str(error).removeprefix('--json ').removeprefix(': ')}") from None


def _open_partial(target: Path) -> tuple[int, Path]:
    """A new partial file, under the first name that is free: two runs never write to one file."""
    for number in range(1, PARTIALS + 1):
        path = target.with_name(f"{target.name}.partial" + (f".{number}" if number > 1 else ""))
        try:
            return os.open(path, _FLAGS, 0o666), path
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"result file {str(path)!r} cannot be written: {reason_of(error)}") from None
    raise UsageError(f"result file {str(target)!r}: {PARTIALS} partial files lie beside it; remove those nobody needs")


class ResultWriter:
    """Writes a run to `path`, or only keeps it where that is None. A context manager; `close` may be called again.

    `planned` are the ids of the run: those without a result when it ends are written down as not run. UsageError for what
    cannot be written, ValueError for a header that does not follow the schema.
    """

    def __init__(self, path: Path | None, header: dict[str, Any], *, planned: Sequence[str] = ()) -> None:
        fault = fault_of(header)
        if fault or header["record"] != "header":
            raise ValueError(f"no header of a result file: {fault or header['record']}")
        unnamed = [case_id for case_id in planned if not CASE_ID.fullmatch(case_id)]
        if unnamed:
            raise ValueError(f"{unnamed[0]!r} is not the id of a case")
        self._header = header
        self._planned = tuple(dict.fromkeys(planned))
        self._cases: dict[str, CaseRecord] = {}
        self._lines: list[bytes] = []
        self._footer: dict[str, Any] | None = None
        self._target = None if path is None else target_of(path)
        self._file: int | None = None
        self._partial: Path | None = None
        self.unwritten = ""  #: why the file is not what the run is; empty where it is
        if self._target is not None:
            self._file, self._partial = _open_partial(self._target)
        self._put(line_of(header))
        if self.unwritten:
            self._let_go()
            if self._partial is not None:
                self._partial.unlink(missing_ok=True)
            raise UsageError(self.unwritten)

    @property
    def run(self) -> RunRecord:
        """What is known so far; with its footer after `close`."""
        return RunRecord(self._header, tuple(self._cases.values()), self._footer)

    @property
    def partial(self) -> Path | None:
        """The partial file, while there is one."""
        return self._partial

    def write(self, record: CaseRecord) -> None:
        """Write down a case. A system that takes no more is reported at the end, so that the run goes on.

        DamagedError for a case that was written before: the suite holds it twice.
        """
        if self._footer is not None:
            raise ValueError("the result file is closed")
        if record.id in self._cases:
            raise DamagedError(f"{record.id} has a result already: the suite holds it twice")
        line = line_of(record.as_json())
        if len(line) > LINE:
            raise ValueError(f"{record.id}: a line of {len(line)} bytes; make records with CaseRecord.of")
        self._put(line)
        self._cases[record.id] = record

    def _put(self, line: bytes) -> None:
        """A line to the system in one call, then into the list: what an interrupt leaves between the two is cut off at the end."""
        if self._file is not None and not self.unwritten:
            try:
                rest = memoryview(line)
                while rest:  # a disk that is nearly full takes a part, and the next call says so
                    rest = rest[os.write(self._file, rest) :]
            except OSError as error:
                self.unwritten = self._refused(error)
        self._lines.append(line)

    def _refused(self, error: OSError) -> str:
        kept = f"; what was written lies in {str(self._partial)!r}" if self._partial is not None and self._lines else ""
        return f"result file {str(self._target)!r} cannot be written: {reason_of(error)}{kept}"

    def close(self, *, interrupted: bool = False, reason: str = "") -> None:
        """Write the end and give the file its name. `reason` says why the run ended early.

        UsageError where the file could not be written; `run` has everything all the same.
        """
        if self._footer is None:
            self._end(interrupted, reason)
        if self.unwritten:
            raise UsageError(self.unwritten)

    def _end(self, interrupted: bool, reason: str) -> None:
        early = "interrupted" if interrupted else clip(f"ended early: {printable(reason)}") if reason else ""
        # an interrupt may have come between a line and its case: the line goes
        del self._lines[1 + len(self._cases) :]
        self._cut()
        for case_id in self._planned:
            if case_id not in self._cases:
                why = f"the run was {early}" if interrupted else f"the run {early or 'ended before it'}"
                self.write(CaseRecord.of(CaseResult(case_id, "notrun", why)))
        totals = Counter(record.outcome for record in self._cases.values())
        footer = {
            "record": "footer",
            "ended": now(),
            "complete": not early and not totals["notrun"],
            "interrupted": interrupted,
            "totals": {outcome: totals[outcome] for outcome in OUTCOMES if totals[outcome]},
            "notrun": totals["notrun"],
            "digest": hashlib.sha256(b"".join(self._lines)).hexdigest(),
        }
        self._put(line_of(footer))
        self._footer = footer
        self._name()

    def _cut(self) -> None:
        """Cut off what no list knows of."""
        if self._file is not None and not self.unwritten:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, sum(map(len, self._lines)))

    def _name(self) -> None:
        """The whole file to the disk, and its name."""
        if self._file is None or self._partial is None or self._target is None:
            return
        try:
            if not self.unwritten:
                os.fsync(self._file)
                self._let_go()
                self._partial.replace(self._target)
                self._partial = None
        except OSError as error:
            self.unwritten = self._refused(error)
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def __enter__(self) -> "ResultWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        interrupted = issubclass(kind, KeyboardInterrupt)
        with contextlib.suppress(UsageError):  # the error on its way says more; `unwritten` keeps this one
            self.close(interrupted=interrupted, reason=f"{kind.__name__}: {error}")

"""`files:FOLDER`, the offline lab: requests as files, answers that somebody made of them elsewhere.

    FOLDER/hello.txt                 the line that begins every conversation
    FOLDER/manifest.json             the number, case id and digest of each request
    FOLDER/requests/000001.frame     a request as on the frames wire, its length before it
    FOLDER/answers/000001.frame      the answer to it, made elsewhere, id 1
    FOLDER/answers/identity.frame    who made them, if they say so

Nothing is read through a link, and only names that the harness makes itself.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..outside import kind_of, printable
from ..protocol.frames import read_answer, read_identity, request_frame
from ..protocol.limits import BLOB, excerpt
from ..protocol.messages import Answer, Hello, Identity, ProtocolError, Request, Unsupported
from ..protocol.text import hello_line
from .errors import ImplementationError

if TYPE_CHECKING:
    from ..suite.case import Case

__all__ = ["NOTRUN", "SCHEMA", "FilesImplementation", "export_requests"]

SCHEMA = "lab-requests-1"
#: The feature that an answer which is not there lacks.
NOTRUN = "notrun"
_MOST = 999_999
_MANIFEST = 2**27


def _digest(request: Request) -> str:
    """The digest of a request, whatever its number."""
    return hashlib.sha256(request_frame(0, request)).hexdigest()


def _name(number: int) -> str:
    return f"{number:06d}.frame"


def export_requests(cases: Iterable["Case"], folder: Path, *, hello: Hello | None = None) -> int:
    """Write the request of each case, the manifest and the hello line; how many requests there are.

    UsageError for a folder that is not empty or cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{printable(str(folder))} is not empty; allowed: a new or empty folder")
        (folder / "requests").mkdir()
        (folder / "answers").mkdir()
        (folder / "hello.txt").write_bytes(hello_line(hello or Hello()))
        rows: list[dict[str, Any]] = []
        for number, case in enumerate(cases, 1):
            if number > _MOST:
                raise UsageError(f"more than {_MOST} cases; export fewer at once")
            (folder / "requests" / _name(number)).write_bytes(request_frame(number, case.request))
            rows.append({"number": number, "case": case.id, "digest": _digest(case.request)})
        content = {"schema": SCHEMA, "suite": (hello or Hello()).suite, "requests": rows}
        (folder / "manifest.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise UsageError(f"{printable(str(folder))} cannot be written to: {error.strerror}") from None
    return len(rows)


class FilesImplementation:
    """Answers from a folder that export_requests made. UsageError where it is none, or hostile.

    A request without an answer is Unsupported, feature `notrun`; an answer that is none raises ImplementationError.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = _numbers(_read(folder, ("manifest.json",), _MANIFEST), folder)

    def hello(self, hello: Hello) -> Identity:
        """Who made the answers."""
        raw = _read(self._folder, ("answers", "identity.frame"), 2**20)
        if raw is None:
            return Identity(name="files", language="unknown", max_in_flight=1)
        try:
            return read_identity(raw)
        except ProtocolError as error:
            raise ImplementationError("error", f"answers/identity.frame: {error}") from None

    def handle(self, request: Request) -> Answer:
        """The answer that lies in the folder."""
        number = self._numbers.get(_digest(request))
        if number is None:
            return Unsupported(NOTRUN, "the request was not exported")
        place = f"answers/{_name(number)}"
        raw = _read(self._folder, ("answers", _name(number)), BLOB + 8)
        if raw is None:
            return Unsupported(NOTRUN, f"there is no {place}")
        try:
            answered, answer = read_answer(raw)
        except ProtocolError as error:
            raise ImplementationError("crash", f"{place}: {error}") from None
        if answered != number:
            raise ImplementationError("crash", f"{place} answers request {answered}; allowed: {number}")
        return answer

    def close(self) -> None:
        """Nothing to let go of."""


def _numbers(raw: bytes | None, folder: Path) -> Mapping[str, int]:
    """Digest of a request -> its number, from the manifest."""
    where = f"{printable(str(folder))}/manifest.json"
    if raw is None:
        raise UsageError(f"{where} is missing; allowed: a folder that the harness exported requests to")
    try:
        content = json.loads(raw)
        if content["schema"] != SCHEMA:
            raise UsageError(f"{where}: schema {str(content['schema'])[:40]!r}; allowed: {SCHEMA}")
        found = {str(row["digest"]): row["number"] for row in content["requests"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{where} is no manifest: {excerpt(raw)}") from None
    if any(type(number) is not int or not 1 <= number <= _MOST for number in found.values()):
        raise UsageError(f"{where}: a number is none; allowed: 1 to {_MOST}")
    return found


def _read(folder: Path, parts: tuple[str, ...], limit: int) -> bytes | None:
    """A file below the folder; None where it is missing. UsageError for links, other kinds of file and large ones."""
    shown = printable("/".join((str(folder), *parts)))
    held: list[int] = []
    try:
        held.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
        for part in parts[:-1]:
            held.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held[-1]))
        held.append(os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=held[-1]))
        status = os.fstat(held[-1])
        kind = kind_of(status.st_mode)
        if kind is not None or status.st_size > limit:
            wrong = f"is {kind}" if kind is not None else f"has {status.st_size} bytes"
            raise UsageError(f"{shown} {wrong}; allowed: a regular file of at most {limit} bytes")
        with os.fdopen(held.pop(), "rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}; links are not followed") from None
    finally:
        for descriptor in held:
            os.close(descriptor)

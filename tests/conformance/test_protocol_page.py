"""spec/protocol.md and spec/adapters.md: every example is replayed, every table of theirs is compared with the code.

Fences whose info begins with `text wire` hold examples; the word after that says what they are: nothing, a conversation
with the served reference; `python`, with the Python template; `broken`, the same with requests that cannot be read;
`frames`, messages with the dump of their frames; `answers`, answers that are read and written again; `bad`, answers to
the request above them that do not count.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from quantspec_conformance import adapter_talk
from quantspec_conformance.adapter_bits import CHECKS
from quantspec_conformance.adapter_check import check_adapter, finding_lines
from quantspec_conformance.adapter_new import LANGUAGES
from quantspec_conformance.examples import DTYPES
from quantspec_conformance.implementations import child, process
from quantspec_conformance.implementations.law import tell
from quantspec_conformance.protocol import limits
from quantspec_conformance.protocol.control import Ping
from quantspec_conformance.protocol.envelope import FIELDS
from quantspec_conformance.protocol.identity import identity_of
from quantspec_conformance.protocol.messages import KINDS, OPERATIONS, PROTOCOL, ProtocolError, Request
from quantspec_conformance.protocol.text import (
    answer_line,
    identity_line,
    read_answer,
    read_hello,
    read_identity,
    read_request,
)  # fmt: skip
from quantspec_conformance.protocol.wires import FRAMES
from quantspec_conformance.spec import spec_root
from quantspec_conformance.suite.store import load_all, vectors_root

from .conftest import environment

PAGES = ("protocol.md", "adapters.md")
_FENCE = re.compile(r"^```text wire ?(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DUMP = re.compile(r"[0-9A-F]{4}  ((?:[0-9A-F]{2} ){0,15}[0-9A-F]{2})\b.*")


@dataclass(frozen=True, slots=True)
class Block:
    """A fence: its kind, its lines, and where it is."""

    kind: str
    lines: tuple[str, ...]
    place: str

    def of(self, mark: str) -> list[str]:
        """The lines of one side."""
        return [line[2:] for line in self.lines if line.startswith(f"{mark} ")]


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = (spec_root() / page).read_text()
        for match in _FENCE.finditer(text):
            line = text[: match.start()].count("\n") + 1
            found.append(Block(match[1], tuple(match[2].splitlines()), f"{page}:{line}"))
    return found


BLOCKS = blocks()


def of_kind(*kinds: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind in kinds]


def table(page: str, *header: str) -> list[list[str]]:
    """The rows of the one table of a page with this header."""
    text = (spec_root() / page).read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    (start,) = [n for n, row in enumerate(rows) if row == [*header]]
    end = next(
        (n for n in range(start + 2, len(rows)) if n + 1 < len(rows) and set("".join(rows[n + 1])) == {"-"}), len(rows)
    )
    return rows[start + 2 : end]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def served(wire: str, sent: bytes) -> bytes:
    module = "quantspec_conformance.implementations.serve"
    command = [sys.executable, "-m", module, "reference", "--wire", wire]
    done = subprocess.run(command, input=sent, capture_output=True, env=environment(), timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(sent: bytes) -> bytes:
    path = Path(str(sys.modules["quantspec_conformance"].__file__)).parent / "templates" / "python" / "adapter.py"
    command = [sys.executable, str(path)]
    done = subprocess.run(command, input=sent, capture_output=True, env=dict(os.environ), timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples_of_every_kind_and_every_line_has_a_side() -> None:
    assert {block.kind for block in BLOCKS} == {"", "python", "broken", "answers", "bad", "frames"}
    assert len(BLOCKS) >= 14
    for block in BLOCKS:
        for line in block.lines:
            assert line[:2] in ("> ", "< ") or (block.kind == "frames" and _DUMP.fullmatch(line)), (block.place, line)


@pytest.mark.parametrize("block", of_kind("broken"), ids=lambda block: block.place)
def test_what_is_shown_as_unreadable_cannot_be_read(block: Block) -> None:
    _, *requests, stop = block.of(">")
    assert stop == "stop"
    for line in requests:
        with pytest.raises(ProtocolError):
            read_request(f"{line}\n".encode())


@pytest.mark.parametrize("block", of_kind("", "python", "broken"), ids=lambda block: block.place)
def test_a_conversation_goes_as_it_is_shown(block: Block) -> None:
    sent = "".join(f"{line}\n" for line in block.of(">")).encode()
    got = (served("text", sent) if block.kind == "" else template(sent)).decode().splitlines()
    shown = block.of("<")
    assert len(got) == len(shown), got
    for actual, expected in zip(got, shown, strict=True):
        if expected.endswith("..."):
            assert actual.startswith(expected.removesuffix("...").rstrip()), actual
        else:
            assert actual == expected
    assert [line.split()[0] for line in block.lines if line.startswith(">")][-1:] == [">"]
    assert block.lines[-1] == "> stop"


@pytest.mark.parametrize("block", of_kind("", "python"), ids=lambda block: block.place)
def test_every_line_of_a_conversation_can_be_read(block: Block) -> None:
    hello, *requests = block.of(">")
    assert read_hello(f"{hello}\n".encode()).protocol == PROTOCOL
    for line in requests:
        read_request(f"{line}\n".encode())
    for line in block.of("<"):
        if not line.endswith("..."):
            raw = f"{line}\n".encode()
            assert read_answer(raw) if "id=" in line else read_identity(raw)


@pytest.mark.parametrize("block", of_kind("answers"), ids=lambda block: block.place)
def test_an_answer_is_read_and_written_again(block: Block) -> None:
    assert block.of("<")
    for line in block.of("<"):
        raw = f"{line}\n".encode()
        if " id=" in line:
            number, answer = read_answer(raw)
            assert answer_line(number, answer) == raw
        else:
            identity = read_identity(raw)
            assert read_identity(identity_line(identity)) == identity
            assert {*line.split()} - {*identity_line(identity).decode().split()} == set()


@pytest.mark.parametrize("block", of_kind("bad"), ids=lambda block: block.place)
def test_a_bad_answer_is_bad(block: Block) -> None:
    """It cannot be read, has another id, or is not what the law says."""
    (line,) = block.of(">")
    number, request = read_request(f"{line}\n".encode())
    assert isinstance(request, Request)
    right = tell(request).answer
    assert block.of("<")
    for shown in block.of("<"):
        try:
            assert read_answer(f"{shown}\n".encode()) != (number, right), shown
        except ProtocolError:
            continue


@pytest.mark.parametrize("block", of_kind("frames"), ids=lambda block: block.place)
def test_the_dumps_of_frames_are_those_of_the_messages(block: Block) -> None:
    messages: list[tuple[str, bytes]] = []
    for line in block.lines:
        match = _DUMP.fullmatch(line)
        if match is None:
            messages.append((line, b""))
        else:
            messages[-1] = (messages[-1][0], messages[-1][1] + bytes.fromhex(match[1]))
    asked = b""
    answered = b""
    for line, dump in messages:
        raw = f"{line[2:]}\n".encode()
        if line.startswith(">"):
            assert FRAMES.write_request(*read_request(raw)) == dump
            asked += dump
        else:
            assert FRAMES.write_answer(*read_answer(raw)) == dump
            answered += dump
    got = served("frames", b"hello protocol=1.0 suite=0\n" + asked)
    assert got.endswith(answered)
    assert len(got) > len(answered)
    assert got[0] % 8 == 0


def test_the_table_of_messages_is_whole() -> None:
    rows = table("protocol.md", "message", "who", "fields", "answer")
    assert [name for row in rows for name in names(row[0])] == ["hello", "run", "ping", "stop"]
    rows = table("protocol.md", "verb", "fields", "it says")
    assert {row[0].strip("`") for row in rows} == {*FIELDS} - {"run", "ping", "stop"}
    for row in rows[1:]:
        must, may = FIELDS[row[0].strip("`")]
        assert tuple(names(row[1])) == (*must, *may)
    text = (spec_root() / "protocol.md").read_text().replace("\n", " ")
    assert f"one of {', '.join(KINDS[:-1])} and {KINDS[-1]}," in text


def test_the_table_of_identity_has_every_field() -> None:
    rows = table("protocol.md", "field", "content", "if missing")
    known = {name for row in rows for name in names(row[0])}
    with pytest.raises(ProtocolError) as caught:
        identity_of({"protocol": "1.0", "name": "x", "strange": "1"})
    allowed = str(caught.value).split("allowed: ")[1].split(", ")
    assert known == {*allowed, "policy."}


def test_the_table_of_operations_has_every_name_that_a_case_uses() -> None:
    rows = table("protocol.md", "op", "words", "tensors", "answer")
    assert {row[0].strip("`") for row in rows} == {*OPERATIONS}
    cells = {row[0].strip("`"): row[1:] for row in rows}
    for case in load_all(vectors_root()):
        words, tensors, answer = cells[case.op]
        operands = {*re.findall(r"\w+", case.words.get("steps", ""))}
        given = {re.sub(r"_[23]$", "", name) for name in case.inputs if name not in operands}
        if case.op != "echo":
            assert given <= {*re.findall(r"\w+", tensors)} | (
                {"scale_codes", "tensor_scale_code"} if "so on" in tensors else set()
            )
            assert {*case.words} <= {*re.findall(r"\w+", words)}, (case.id, [*case.words])
            due = answer.replace("the same three", "codes scale_codes tensor_scale_code")
            assert {*case.outputs, *case.told} <= {*re.findall(r"\w+", due)}, case.id


def test_the_table_of_dtypes_is_that_of_the_code() -> None:
    rows = table("protocol.md", "dtype", "pattern", "digits in text", "safetensors dtype in frames")
    found = {name: (int(row[2]), row[3]) for row in rows for name in names(row[0])}
    assert found == {name: (digits, f"U{4 * digits}") for name, (digits, _) in DTYPES.items()}


def test_the_limits_are_those_of_the_code() -> None:
    rows = table("protocol.md", "what", "at most")
    values = [int(row[1].split()[0]) for row in rows]
    assert values == [
        limits.LINE, limits.BLOB, limits.HEADER, limits.ELEMENTS, limits.AXES, limits.TENSORS, limits.COUNT_OF_WORDS,
        limits.WORD, limits.DEPTH,
    ]  # fmt: skip
    for row in rows:
        power = re.search(r"2\^(\d+)", row[1])
        assert power is None or int(row[1].split()[0]) == 2 ** int(power[1])


def test_times_and_restarts_are_those_of_the_code() -> None:
    text = (spec_root() / "protocol.md").read_text()
    made = process.ProcessImplementation(["true"])
    assert f"no answer for {made._timeout:g} s" in text
    assert f"{made._hello_timeout:g} s without an answer to hello" in text
    assert f"up to {process.RESTARTS} times" in text
    assert child.GRACE == 2.0
    assert "within two seconds" in text
    assert f"This is version {PROTOCOL[0]}.{PROTOCOL[1]}." in text


def test_the_first_byte_of_ok_is_no_frame() -> None:
    assert b"ok"[0] == 0x6F
    assert all(verb[0].encode()[0] % 8 for verb in FIELDS if verb not in ("run", "ping", "stop"))
    assert FRAMES.write_request(1, Ping())[0] % 8 == 0


def test_the_languages_of_the_templates_are_listed() -> None:
    rows = table("adapters.md", "language", "build", "command")
    assert {row[0].strip("`"): (row[1].strip("`"), row[2].strip("`")) for row in rows} == {
        language: (template.build, template.command) for language, template in LANGUAGES.items()
    }


def test_the_check_of_a_template_prints_what_is_shown() -> None:
    """Numbers apart: they are those of the language and of the suite of the day."""
    text = (spec_root() / "adapters.md").read_text()
    (shown,) = re.findall(r"^```\n(ok   start.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = Path(str(sys.modules["quantspec_conformance"].__file__)).parent / "templates" / "python" / "adapter.py"
    cases = [case for case in load_all(vectors_root()) if case.level == 0]
    printed = "\n".join(finding_lines(check_adapter([sys.executable, str(path)], cases)))
    assert re.sub(r"\d+", "0", printed) == re.sub(r"\d+", "0", shown.rstrip())


def test_the_checks_are_explained() -> None:
    rows = table("adapters.md", "check", "what it looks at", "a bad line, for example")
    listed = [name for row in rows for name in row[0].split(", ")]
    assert listed == [
        *dict.fromkeys(finding.check for finding in check_adapter("exec:true", [])),
        *adapter_talk.CHECKS,
        *CHECKS,
    ]

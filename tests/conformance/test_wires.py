"""Both wires: every message comes back as it was sent, and nothing but ProtocolError escapes a parser."""

import io
import json
import struct
import time
import tracemalloc
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from quantspec_conformance.examples import DTYPES, Tensor
from quantspec_conformance.protocol import frames, text
from quantspec_conformance.protocol.bits import Bits
from quantspec_conformance.protocol.control import Ping, Stop, Unknown
from quantspec_conformance.protocol.limits import ELEMENTS, HEADER, WORD, StrayError
from quantspec_conformance.protocol.messages import (
    KINDS,
    Answer,
    Failed,
    Hello,
    Identity,
    Known,
    Ok,
    ProtocolError,
    Rejected,
    Request,
    Unsupported,
)  # fmt: skip
from quantspec_conformance.protocol.wires import FRAMES, TEXT, WIRES, Wire, find_wire

EVERY_WIRE = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
QUICK = settings(max_examples=80, deadline=None)

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True).filter(lambda name: name not in ("id", "op"))
TEXTS = st.text(max_size=40) | st.sampled_from(["", "%", "a=b", "f32:2:3F", "f32::", "é %41", "\n", "\0", "u8:1:AG x"])


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    """A small tensor of any dtype and shape."""
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    count = int(np.prod(shape, dtype=int))
    largest = 2 ** (4 * DTYPES[dtype][0]) - 1
    return Tensor(dtype, shape, tuple(draw(st.lists(st.integers(0, largest), min_size=count, max_size=count))))


CONTENTS = st.tuples(
    st.dictionaries(NAMES.map(lambda name: ("w" + name)[:32]), TEXTS, max_size=5),
    st.dictionaries(NAMES.map(lambda name: ("t" + name)[:32]), tensors(), max_size=4),
)
REQUESTS = st.builds(lambda op, content: Request(op, *content), NAMES, CONTENTS)
ANSWERS: st.SearchStrategy[Answer] = st.one_of(
    CONTENTS.map(lambda content: Ok(content[1], content[0])),
    st.builds(Unsupported, TEXTS, TEXTS),
    st.builds(Rejected, st.sampled_from(KINDS), TEXTS, TEXTS, TEXTS),
    st.builds(Known, TEXTS, TEXTS),
    st.builds(Failed, TEXTS),
)
ITEMS = st.lists(st.from_regex(r"[a-z0-9_.]{1,12}", fullmatch=True), max_size=4).map(tuple)
IDENTITIES = st.builds(
    Identity,
    name=TEXTS.filter(bool),
    version=TEXTS,
    language=TEXTS,
    build=TEXTS,
    ops=ITEMS,
    values=ITEMS,
    stores=ITEMS,
    max_rank=st.integers(0, 99),
    max_elements=st.integers(0, 2**40),
    max_in_flight=st.integers(1, 9),
    deterministic=st.booleans(),
    policies=st.dictionaries(st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True), TEXTS, max_size=3),
)
IDS = st.integers(0, 2**53 - 1)


def schema() -> dict[str, Any]:
    """The schema of a frame's msg."""
    path = Path(str(resources.files("quantspec_conformance") / "schemas" / "protocol.schema.json"))
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


VALIDATOR = jsonschema.Draft202012Validator(schema())


def msg(frame: bytes) -> dict[str, Any]:
    """The message of a frame."""
    size = struct.unpack("<Q", frame[8:16])[0]
    content: dict[str, Any] = json.loads(json.loads(frame[16 : 16 + size])["__metadata__"]["msg"])
    return content


@EVERY_WIRE
@QUICK
@given(IDS, REQUESTS)
def test_requests_come_back(wire: Wire, number: int, request: Request) -> None:
    assert wire.read_request(io.BytesIO(wire.write_request(number, request))) == (number, request)


@EVERY_WIRE
@QUICK
@given(IDS, ANSWERS)
def test_answers_come_back(wire: Wire, number: int, answer: Answer) -> None:
    assert wire.read_answer(io.BytesIO(wire.write_answer(number, answer))) == (number, answer)


@EVERY_WIRE
@QUICK
@given(IDENTITIES)
def test_identities_come_back_and_their_first_byte_tells_the_wire(wire: Wire, identity: Identity) -> None:
    written = wire.write_identity(identity)
    assert wire.read_identity(io.BytesIO(written)) == identity
    assert find_wire(io.BufferedReader(io.BytesIO(written))) is wire


@QUICK
@given(st.text(max_size=20), st.dictionaries(NAMES.filter(lambda n: n not in ("protocol", "suite")), TEXTS, max_size=3))
def test_hellos_come_back(suite: str, options: dict[str, str]) -> None:
    hello = Hello(suite=suite, options=options)
    assert text.read_hello(text.hello_line(hello)) == hello


@EVERY_WIRE
def test_pings_stops_and_the_end(wire: Wire) -> None:
    stream = io.BytesIO(wire.write_request(3, Ping()) + wire.write_request(0, Stop()))
    assert wire.read_request(stream) == (3, Ping())
    assert wire.read_request(stream) == (0, Stop())
    assert wire.read_request(stream) is None
    assert wire.read_answer(io.BytesIO()) is None
    assert wire.read_identity(io.BytesIO()) is None
    assert find_wire(io.BufferedReader(io.BytesIO())) is None


def test_the_text_wire_is_written_as_decided() -> None:
    x = Tensor("f32", (2,), (0x3FE00000, 0xBFA00000))
    request = Request("encode", {"value": "e2m1"}, {"x": x})
    assert text.request_line(17, request) == b"run id=17 op=encode value=e2m1 x=f32:2:3FE00000BFA00000\n"
    assert text.request_line(18, Ping()) == b"ping id=18\n"
    assert text.request_line(0, Stop()) == b"stop\n"
    several = Ok({"s": Tensor("u8", (), (10,)), "e": Tensor("u16", (2, 0), ()), "m": Tensor("u8", (1, 2), (1, 255))})
    assert text.answer_line(1, several) == b"ok id=1 s=u8::0A e=u16:2x0: m=u8:1x2:01FF\n"
    assert text.answer_line(1, Ok({}, {"w": "f32:2:AA", "v": "a b%"})) == b"ok id=1 w=f32%3A2:AA v=a%20b%25\n"
    refusal = Rejected("scale", "SCL-20", "scales", "no")
    assert text.answer_line(17, refusal) == b"rejected id=17 kind=scale rule=SCL-20 argument=scales message=no\n"


@QUICK
@given(REQUESTS)
def test_frames_are_safetensors_that_the_library_reads(request: Request) -> None:
    frame = FRAMES.write_request(1, request)
    assert len(frame) % 8 == 0 and struct.unpack("<Q", frame[:8])[0] == len(frame) - 8
    found = safetensors.numpy.load(frame[8:])
    assert set(found) == set(request.tensors)
    for name, tensor in request.tensors.items():
        assert found[name].shape == tensor.shape
        assert tuple(found[name].reshape(-1).tolist()) == tensor.patterns


def test_metadata_are_exactly_msg(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(FRAMES.write_answer(5, Ok({"x": Tensor("bf16", (3,), (1, 2, 3))}))[8:])
    with safetensors.safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["msg"]) == {"verb": "ok", "id": 5, "types": {"x": "bf16"}}
        assert file.get_tensor("x").dtype == np.uint16


@QUICK
@given(IDS, REQUESTS, ANSWERS, IDENTITIES)
def test_every_msg_follows_the_schema(number: int, request: Request, answer: Answer, identity: Identity) -> None:
    VALIDATOR.validate(msg(FRAMES.write_request(number, request)))
    VALIDATOR.validate(msg(FRAMES.write_answer(number, answer)))
    VALIDATOR.validate(msg(FRAMES.write_identity(identity)))
    VALIDATOR.validate(msg(FRAMES.write_request(number, Ping())))
    VALIDATOR.validate(msg(FRAMES.write_request(number, Stop())))


#: Messages that the schema and the reader both refuse.
REFUSED: list[dict[str, Any]] = [
    {},
    {"verb": "ok"},
    {"verb": "ok", "id": -1},
    {"verb": "ok", "id": 2**53},
    {"verb": "ok", "id": 1, "mood": "good"},
    {"verb": "ok", "id": 1, "words": {"a": 1}},
    {"verb": "ok", "id": 1, "words": {"id": "1"}},
    {"verb": "ok", "id": 1, "words": {"A": "1"}},
    {"verb": "ok", "id": 1, "words": []},
    {"verb": "ok", "id": 1, "words": {f"w{n}": "" for n in range(65)}},
    {"verb": "ok", "identity": {"protocol": "1.0"}},
    {"verb": "ok", "identity": {"protocol": "1.0", "name": "a", "colour": "red"}},
    {"verb": "ok", "identity": {"protocol": "1.0", "name": "a", "max_rank": "-1"}},
    {"verb": "ok", "identity": {"protocol": "1.0", "name": "a", "max_in_flight": "0"}},
    {"verb": "ok", "identity": {"protocol": "1.0", "name": "a", "deterministic": "maybe"}},
    {"verb": "ok", "identity": {"protocol": "1", "name": "a"}},
    {"verb": "ok", "identity": {"protocol": "1.0", "name": "a", **{f"policy.p{n}": "" for n in range(63)}}},
    {"verb": "ok", "identity": {"protocol": "1.0", "name": "a", "ops": "a,,b"}},
    {"verb": "unsupported", "id": 1},
    {"verb": "rejected", "id": 1, "kind": "mood"},
    {"verb": "rejected", "id": 1, "kind": "scale", "words": {}, "url": ""},
    {"verb": "known", "id": 1, "message": "a"},
    {"verb": "failed", "id": "1", "message": "a"},
    {"verb": "failed", "id": 1, "message": "x" * (WORD + 1)},
    {"verb": "maybe", "id": 1},
]


@pytest.mark.parametrize("message", REFUSED, ids=lambda message: json.dumps(message)[:60])
def test_what_the_schema_refuses_the_reader_refuses(message: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(message)
    frame = framed({"__metadata__": {"msg": json.dumps(message)}})
    for read in (frames.read_answer, frames.read_identity):
        with pytest.raises(ProtocolError):
            read(frame)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$defs"]["rejected"]["properties"]["kind"]["enum"] == list(KINDS)
    assert schema()["$defs"]["types"]["additionalProperties"]["enum"] == list(DTYPES)


def framed(header: dict[str, Any] | bytes, data: bytes = b"") -> bytes:
    """A frame of a header that need not be one."""
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    written += b" " * (-(len(written) + len(data)) % 8)
    blob = struct.pack("<Q", len(written)) + written + data
    return struct.pack("<Q", len(blob)) + blob


def with_tensor(entry: Any, data: bytes = b"", types: Any = None) -> bytes:
    """A frame of one tensor x whose entry is given."""
    message = {"verb": "ok", "id": 1, "types": {"x": "u8"} if types is None else types}
    return framed({"__metadata__": {"msg": json.dumps(message)}, "x": entry}, data)


U8 = {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}
BAD_FRAMES = {
    "short": b"\x10\0\0",
    "empty": struct.pack("<Q", 0),
    "odd": struct.pack("<Q", 17) + bytes(17),
    "huge": struct.pack("<Q", 10 * 2**30),
    "cut": framed({"__metadata__": {"msg": "{}"}})[:-8],
    "header beyond the frame": struct.pack("<QQ", 16, 2**40) + bytes(8),
    "header beyond its limit": struct.pack("<QQ", 2**21, HEADER + 1) + bytes(2**21 - 8),
    "no UTF-8": framed(b'{"a\xff":1}'),
    "no object": framed(b"[1]"),
    "deep": framed(b"[" * 60000),
    "deep msg": framed({"__metadata__": {"msg": '{"verb":' * 60000}}),
    "float": framed({"__metadata__": {"msg": '{"verb":"ok","id":1.0}'}}),
    "NaN": framed({"__metadata__": {"msg": '{"verb":"ok","id":NaN}'}}),
    "many digits": framed({"__metadata__": {"msg": '{"verb":"ok","id":' + "9" * 5000 + "}"}}),
    "surrogate": framed({"__metadata__": {"msg": '{"verb":"failed","id":1,"message":"\\ud800"}'}}),
    "twice": framed({"__metadata__": {"msg": '{"verb":"ok","id":1,"id":2}'}}),
    "no metadata": framed({}),
    "metadata of another": framed({"__metadata__": {"msg": "{}", "format": "pt"}}),
    "F32": with_tensor({**U8, "dtype": "F32", "shape": [2]}, bytes(8)),
    "unknown dtype": with_tensor({**U8, "dtype": "F4"}, bytes(8)),
    "dtype that is no text": with_tensor({**U8, "dtype": ["U8"]}, bytes(8)),
    "shape that wraps": with_tensor({**U8, "shape": [2**32, 2**32, 8]}, bytes(8)),
    "negative size": with_tensor({**U8, "shape": [-8]}, bytes(8)),
    "nine axes": with_tensor({**U8, "shape": [1] * 8 + [8]}, bytes(8)),
    "too many elements": with_tensor({**U8, "shape": [ELEMENTS + 1], "data_offsets": [0, ELEMENTS + 1]}),
    "sizes that no array has": with_tensor({**U8, "shape": [0, 2**40, 2**40], "data_offsets": [0, 0]}),
    "offsets beyond": with_tensor({**U8, "data_offsets": [8, 16]}, bytes(8)),
    "offsets backwards": with_tensor({**U8, "data_offsets": [8, 0]}, bytes(8)),
    "true as an offset": with_tensor({**U8, "shape": [1], "data_offsets": [0, True]}, bytes(1)),
    "more in the entry": with_tensor({**U8, "more": 1}, bytes(8)),
    "entry that is none": with_tensor(7, bytes(8)),
    "not in types": with_tensor(U8, bytes(8), {}),
    "types of another": with_tensor(U8, bytes(8), {"y": "u8"}),
    "wider type": with_tensor(U8, bytes(8), {"x": "f32"}),
    "unknown type": with_tensor(U8, bytes(8), {"x": "f8"}),
    "data missing": with_tensor(U8),
    "data too long": with_tensor(U8, bytes(16)),
}


def with_two(first: list[int], second: list[int], held: int) -> bytes:
    """A frame of the bytes a and the words b at given offsets, over so many bytes."""
    message = {"verb": "ok", "id": 1, "types": {"a": "u8", "b": "u32"}}
    entries = {
        "a": {"dtype": "U8", "shape": [first[1] - first[0]], "data_offsets": first},
        "b": {"dtype": "U32", "shape": [(second[1] - second[0]) // 4], "data_offsets": second},
    }
    data = bytes(range(1, held + 1))
    return framed({"__metadata__": {"msg": json.dumps(message)}, **entries}, data)


BAD_FRAMES |= {
    "two over the same bytes": with_two([0, 4], [0, 4], 8),
    "two that overlap": with_two([0, 8], [4, 12], 20),
    "a gap between two": with_two([0, 4], [8, 16], 12),
    "a gap before the first": with_two([4, 8], [8, 16], 12),
    "an empty one in the middle of another": with_two([2, 2], [0, 4], 4),
    "an empty one beyond the end": with_two([8, 8], [0, 4], 4),
    "bytes after the last": with_two([0, 4], [4, 8], 16),
}


@pytest.mark.parametrize("before", range(9))
def test_tensors_that_lie_askew_are_read_right(before: int) -> None:
    frame = with_two([0, before], [before, before + 8], before + 8)
    data = bytes(range(1, before + 9))
    words = struct.unpack("<2I", data[before:])
    due = Ok({"a": Tensor("u8", (before,), tuple(data[:before])), "b": Tensor("u32", (2,), words)})
    assert frames.read_answer(frame) == FRAMES.read_answer(io.BytesIO(frame)) == (1, due)


def test_a_tensor_is_a_view_of_what_was_received() -> None:
    big = np.arange(2**20, dtype=np.uint32)
    frame = FRAMES.write_answer(1, Ok({"x": Bits("f32", big.shape, big)}))
    tracemalloc.start()
    try:
        assert frames.read_whole(frame[8:]).tensors.keys() == {"x"}
        assert tracemalloc.get_traced_memory()[1] < 1.1 * len(frame), "the bytes were copied beside the slice"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_bad_frames(frame: bytes) -> None:
    for read in (frames.read_answer, frames.read_request, frames.read_identity):
        with pytest.raises(ProtocolError):
            read(frame)
    with pytest.raises(ProtocolError):
        FRAMES.read_answer(io.BytesIO(frame))


BAD_LINES = {
    "no LF": b"ok id=1",
    "empty": b"\n",
    "two spaces": b"ok  id=1\n",
    "space at the end": b"ok id=1 \n",
    "CR": b"ok id=1\r\n",
    "tab": b"ok\tid=1\n",
    "high byte": b"ok id=1 a=\xe9\n",
    "NUL": b"ok id=1 a=\0\n",
    "no value": b"ok id=1 codes\n",
    "upper-case name": b"ok id=1 Codes=a\n",
    "reserved": b"ok id=1 op=a\n",
    "twice": b"ok id=1 a=1 a=2\n",
    "id twice": b"ok id=1 id=1\n",
    "id with sign": b"ok id=+1\n",
    "id with zeros": b"ok id=01\n",
    "large id": b"ok id=9007199254740992\n",
    "endless id": b"ok id=" + b"9" * 10000 + b"\n",
    "no id": b"failed message=a\n",
    "percent": b"ok id=1 a=%4\n",
    "lower percent": b"ok id=1 a=%c3%a9\n",
    "no UTF-8": b"ok id=1 a=%FF\n",
    "surrogate": b"ok id=1 a=%ED%A0%80\n",
    "long word": b"ok id=1 a=" + b"x" * (WORD + 1) + b"\n",
    "many words": b"ok id=1" + b"".join(b" a%d=" % n for n in range(200)) + b"\n",
    "lower hex": b"ok id=1 a=u8:1:0a\n",
    "no hex": b"ok id=1 a=u8:1:0G\n",
    "few digits": b"ok id=1 a=u16:2:0001000\n",
    "many digits": b"ok id=1 a=u8:1:0001\n",
    "shape": b"ok id=1 a=u8:1,2:0001\n",
    "shape with sign": b"ok id=1 a=u8:-1:00\n",
    "shape with zeros": b"ok id=1 a=u8:01:00\n",
    "shape that wraps": b"ok id=1 a=u8:4294967296x4294967296:\n",
    "nine axes": b"ok id=1 a=u8:1x1x1x1x1x1x1x1x1:00\n",
    "too many elements": b"ok id=1 a=u8:67108865:00\n",
    "sizes that no array has": b"ok id=1 a=u8:0x999999999999x999999999999:\n",
    "unknown verb": b"maybe id=1\n",
    "unknown field": b"failed id=1 message=a mood=b\n",
    "no such kind": b"rejected id=1 kind=mood\n",
    "no feature": b"unsupported id=1\n",
    "tensor where none may be": b"failed id=1 message=a x=u8:1:00\n",
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_bad_lines(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        text.read_answer(line)


HOSTILE = {
    "quotes": (FRAMES, framed(b'{"a":"' + b'\\"' * 500_000)),
    "open strings": (FRAMES, framed(b'"' * 1_000_000)),
    "a long string": (FRAMES, framed(b'{"__metadata__":{"msg":"' + b"\\n" * 500_000 + b'"}}')),
    "brackets in strings": (FRAMES, framed(b'{"' + b"[" * 1_000_000 + b'":1}')),
    "many keys": (FRAMES, framed(b"{" + b",".join(b'"k%d":1' % n for n in range(80_000)) + b"}")),
    "spaces": (TEXT, b"ok id=1" + b" " * 50_000_000 + b"\n"),
    "axes": (TEXT, b"ok id=1 x=u8:" + b"1x" * 20_000_000 + b"1:00\n"),
    "colons": (TEXT, b"ok id=1 x=" + b":" * 40_000_000 + b"\n"),
    "percents": (TEXT, b"ok id=1 x=" + b"%" * 40_000_000 + b"\n"),
}


@pytest.mark.parametrize(("wire", "raw"), HOSTILE.values(), ids=HOSTILE)
def test_long_nonsense_costs_no_more_than_its_length(wire: Wire, raw: bytes) -> None:
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            (text if wire is TEXT else frames).read_answer(raw)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(raw) + 200 * 2**20
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 5


@pytest.mark.parametrize("line", [b"hello protocol=1\n", b"hello suite=a\n", b"run id=1 op=a\n", b"hello\n"])
def test_bad_hellos(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        text.read_hello(line)


def test_a_later_minor_protocol_may_add_fields_and_a_later_major_may_not_speak() -> None:
    assert text.read_identity(b"ok protocol=1.9 name=a colour=red\n").protocol == (1, 9)
    with pytest.raises(ProtocolError, match="colour"):
        text.read_identity(b"ok protocol=1.0 name=a colour=red\n")
    with pytest.raises(ProtocolError, match=r"2\.0"):
        text.read_identity(b"ok protocol=2.0 name=a colour=red\n")
    assert text.read_answer(b"ok id=1 _micros=17 a=b\n") == (1, Ok({}, {"a": "b"}))
    assert frames.read_answer(framed({"__metadata__": {"msg": '{"verb":"ok","id":1,"_micros":17}'}})) == (1, Ok())


def test_an_adapter_hears_unknown_verbs() -> None:
    assert text.read_request(b"describe id=4 x=f99:what\n") == (4, Unknown("describe"))
    assert frames.read_request(framed({"__metadata__": {"msg": '{"verb":"describe","id":4,"x":[]}'}})) == (
        4,
        Unknown("describe"),
    )


@pytest.mark.parametrize(
    "request_",
    [
        Request("encode", {"id": "1"}),
        Request("encode", {"op": "1"}),
        Request("Encode"),
        Request("encode", {"a b": "1"}),
        Request("encode", {"a": "\ud800"}),
        Request("encode", {"a": "x" * (WORD + 1)}),
        Request("encode", {"a": "1"}, {"a": Tensor("u8", (1,), (1,))}),
        Request("encode", {}, {"x": Tensor("u8", (2,), (1,))}),
        Request("encode", {}, {"x": Tensor("u8", (1,), (256,))}),
        Request("encode", {}, {"x": Tensor("u8", (1,), (-1,))}),
        Request("encode", {}, {"x": Tensor("f8", (1,), (1,))}),
        Request("encode", {}, {"x": Tensor("u8", (-1,), ())}),
        Request("encode", {}, {f"x{n}": Tensor("u8", (), (1,)) for n in range(65)}),
    ],
    ids=lambda request: repr(request)[:60],
)
@EVERY_WIRE
def test_what_no_wire_carries_is_not_written(wire: Wire, request_: Request) -> None:
    with pytest.raises(ProtocolError):
        wire.write_request(1, request_)


def test_stray_text_is_told_from_a_damaged_message() -> None:
    with pytest.raises(StrayError, match="compiling"):
        text.read_answer(b"compiling kernels\n")
    with pytest.raises(StrayError, match="Building"):
        frames.read_length(b"Building")
    with pytest.raises(ProtocolError) as caught:
        text.read_answer(b"ok id=x\n")
    assert not isinstance(caught.value, StrayError)


@pytest.mark.parametrize("said", [b"hi\n", b"x", b"hello\n"])
def test_text_that_is_shorter_than_the_length_of_a_frame_is_no_damaged_frame(said: bytes) -> None:
    """Its first byte may be one that a frame begins with: 68 is a multiple of 8."""
    with pytest.raises(StrayError, match="is no answer"):
        frames.read_length(said)
    with pytest.raises(ProtocolError, match="ends within its length") as damaged:
        frames.read_length(b"\xc8\x00\x00")
    assert not isinstance(damaged.value, StrayError)


def test_bits_are_tensors() -> None:
    plain = Tensor("f16", (2, 2), (1, 0x7D00, 3, 0x8000))
    lazy = Bits("f16", (2, 2), plain.patterns)
    assert lazy == plain and plain == lazy and hash(lazy) == hash(plain) and lazy.text == plain.text
    assert lazy != Tensor("f16", (4,), plain.patterns) and lazy != Tensor("bf16", (2, 2), plain.patterns)
    assert lazy.array().dtype == np.float16 and Tensor.of(lazy.array()) == plain
    assert lazy != Bits("f16", (2, 2), (1, 0x7D00, 3, 0)) and lazy != 7
    with pytest.raises(ValueError, match="read-only"):
        lazy.array()[0, 0] = 1
    mine = np.array([1, 2], np.uint8)
    kept = Bits("u8", (2,), mine)
    mine[0] = 7
    assert kept.patterns == (1, 2)
    assert kept == Bits.over("u8", (2,), np.array([1, 2], np.uint8))


@EVERY_WIRE
@QUICK
@given(REQUESTS)
def test_parts_are_the_message(wire: Wire, request: Request) -> None:
    assert b"".join(wire.parts(9, request)) == wire.write_request(9, request)


SEEDS = st.builds(lambda wire, answer: (wire, wire.write_answer(7, answer)), st.sampled_from([TEXT, FRAMES]), ANSWERS)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Wire, bytes]:
    """A good message with a few bytes changed, cut out or put in."""
    wire, message = draw(SEEDS)
    raw = bytearray(message)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(raw) - 1, 0)))
        match draw(st.integers(0, 2)):
            case 0:
                raw[place : place + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                del raw[place : place + draw(st.integers(1, 9))]
            case _:
                raw[place:place] = draw(
                    st.binary(max_size=9) | st.sampled_from([b" ", b"=", b":", b"\n", b"%", b"{", b"["])
                )
    return wire, bytes(raw)


def outcome(wire: Wire, raw: bytes) -> None:
    """Read in every way; whatever is no message is a ProtocolError."""
    for read in (wire.read_answer, wire.read_request, wire.read_identity):
        try:
            read(io.BytesIO(raw))
        except ProtocolError as error:
            assert str(error)


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_mutations_of_good_messages(case: tuple[Wire, bytes]) -> None:
    outcome(*case)


@EVERY_WIRE
@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(wire: Wire, raw: bytes) -> None:
    outcome(wire, raw)
    outcome(FRAMES, struct.pack("<Q", len(raw) + 8 - len(raw) % 8) + raw + bytes(8 - len(raw) % 8))
    outcome(TEXT, b"ok id=1 " + raw + b"\n")


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["verb", "id", "words", "types", "identity", "x", "message"]), inner, max_size=4
            )
        ),
    )
)
def test_random_json(value: Any) -> None:
    outcome(FRAMES, framed({"__metadata__": {"msg": json.dumps(value)}}))
    outcome(FRAMES, framed({"__metadata__": value}))
    outcome(FRAMES, framed({"__metadata__": {"msg": '{"verb":"ok","id":1,"types":{"x":"u8"}}'}, "x": value}))

"""Suite files: written in one way, read without trust; every way of damaging one is named with the file and the reason."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import safetensors.numpy

import quantspec_conformance
from quantspec_conformance.errors import DamagedError
from quantspec_conformance.suite import store
from quantspec_conformance.suite.case import CASE_ID
from quantspec_conformance.suite.generate import Place
from quantspec_conformance.suite.generate.release import write_suites
from quantspec_conformance.suite.store import load_all, load_suite, suite_digest, suite_files, vectors_root

from .suites import shipped

SCHEMA = json.loads((Path(quantspec_conformance.__file__).parent / "schemas" / "suite.schema.json").read_text("utf-8"))
PLACES = (Place("e2m1", "encode", "boundary", 1), Place("e2m1", "encode", "first", 0))
WHERE = "e2m1/encode/boundary"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    write_suites(root, chosen=lambda place: place in PLACES)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy of two suites that a test may damage."""
    for path in made.rglob("*"):
        if path.is_file():
            copy = tmp_path / path.relative_to(made)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return tmp_path


def test_what_is_written_is_read_back(root: Path) -> None:
    cases = load_all(root)
    assert {case.suite for case in cases} == {WHERE, "e2m1/encode/first"}
    for case in cases:
        assert CASE_ID.fullmatch(case.id)
        assert case.refusal is not None or case.outputs


def test_the_data_file_is_one_that_the_library_reads(root: Path) -> None:
    tensors = safetensors.numpy.load((root / f"{WHERE}.safetensors").read_bytes())
    for case in load_suite(root / f"{WHERE}.json"):
        for section, found in (("in", case.inputs), ("out", case.outputs)):
            for name, tensor in found.items():
                array = tensors.get(f"{case.id}:{section}:{name}")
                if array is not None:
                    assert tuple(array.reshape(-1).tolist()) == tensor.patterns
                    assert array.shape == tensor.shape
    assert tensors


def test_every_shipped_file_follows_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for number, path in enumerate(suite_files(vectors_root())):
        content = json.loads(path.read_text("ascii"))
        assert list(content) == list(store.HEAD)
        if content["level"] == 0 or number % 7 == 0:
            validator.validate(content)


def test_a_case_is_one_line_and_cases_are_in_order() -> None:
    for path in suite_files(vectors_root()):
        text = path.read_text("ascii")
        ids = [json.loads(line.strip().rstrip(","))["id"] for line in text.splitlines() if line.startswith('  {"id"')]
        assert ids == sorted(ids)
        assert len(ids) == json.loads(text)["count"]


def test_tensors_above_256_bytes_are_in_the_data_file_and_smaller_ones_are_not() -> None:
    width = {"f32": 4, "u8": 1, "u16": 2, "u32": 4, "f16": 2, "bf16": 2, "f64": 8, "i32": 4}
    for path in suite_files(vectors_root()):
        for case in json.loads(path.read_text("ascii"))["cases"]:
            for entry in [*case["in"].values(), *case["out"].values(), *case["intermediates"].values()]:
                size = width[entry["dtype"]]
                for extent in entry["shape"]:
                    size *= extent
                assert ("key" in entry) == (size > 256)


def test_the_worked_examples_of_one_operation_come_along() -> None:
    doc = [case for case in load_all(vectors_root()) if case.suite == "doc"]
    assert len(doc) > 300
    assert all(case.level == 0 and case.id.startswith("doc.") for case in doc)
    assert any(case.refusal is not None for case in doc)


def test_the_digest_is_of_every_file_that_holds_cases(root: Path) -> None:
    before = suite_digest(root)
    (root / "ids.json").write_text("{}")
    assert suite_digest(root) == before
    path = root / f"{WHERE}.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    assert suite_digest(root) != before


Edit = Callable[[dict[str, Any]], object]


def edited(root: Path, edit: Edit) -> Path:
    path = root / f"{WHERE}.json"
    content = json.loads(path.read_text("ascii"))
    edit(content)
    path.write_text(json.dumps(content))
    return path


def first(content: dict[str, Any], **changes: Any) -> None:
    content["cases"][0].update(changes)


def orphan(content: dict[str, Any]) -> None:
    """A case without large tensors becomes a negative one whose control does not exist."""
    case = next(case for case in content["cases"] if all("bits" in entry for entry in case["out"].values()))
    refusal = {"kind": "dtype", "rule": "QNT-1", "argument": "x"}
    case.update(kind="negative", control="encode.x.y.z", out={}, equal={}, refusal=refusal)


def entry(content: dict[str, Any], **changes: Any) -> None:
    """Change the entry of x of the first case, or put another in its place where all of it is given."""
    row = content["cases"][0]["in"]
    row["x"] = changes if len(changes) == 3 else {**row["x"], **changes}


def wrong_shape(content: dict[str, Any]) -> None:
    next(row for case in content["cases"] for row in case["in"].values() if "key" in row).update(shape=[3])


#: What is done to the manifest -> what the refusal says.
HOSTILE: dict[str, tuple[Edit, str]] = {
    "schema": (lambda c: c.update(schema="suite-2"), "schema 'suite-2'; allowed: suite-1"),
    "unknown member of the head": (lambda c: c.update(extra=1), "allowed: exactly schema, suite"),
    "count": (lambda c: c.update(count=c["count"] + 1), "is not the number of cases"),
    "count that is no number": (lambda c: c.update(count=True), "is not the number of cases"),
    "level": (lambda c: c.update(level=7), "level 7; allowed"),
    "op of the head": (lambda c: c.update(op="format"), "op 'format'"),
    "another place": (lambda c: c.update(format="e4m3"), "not at its place"),
    "a name that leads out": (lambda c: c.update(suite="../../x"), "suite '../../x'"),
    "data that leads out": (lambda c: c["data"].update(file="../../../etc/passwd"), "data "),
    "digest": (lambda c: c["data"].update(sha256="0" * 64), "not those whose SHA-256"),
    "no data": (lambda c: c.update(data=None), "no tensor "),
    "unknown member of a case": (lambda c: first(c, secret=1), "['secret']"),
    "missing member of a case": (lambda c: c["cases"][0].pop("bugs"), "['bugs']"),
    "id": (lambda c: first(c, id="Encode E2M1"), "a case is an object with an id"),
    "id twice": (lambda c: c["cases"].append(c["cases"][0]) or c.update(count=c["count"] + 1), "stands twice"),
    "op of a case": (lambda c: first(c, op="decode"), "the file is of encode"),
    "kind": (lambda c: first(c, kind="maybe"), "kind 'maybe'; allowed: positive, negative, control"),
    "a refusal and outputs": (lambda c: first(c, refusal={"kind": "dtype", "rule": "QNT-1", "argument": "x"}), "outputs only"),
    "no answer": (lambda c: first(c, out={}, told={}, equal={}), "outputs only"),
    "control that is not there": (orphan, "is no accepted case"),
    "relation": (lambda c: first(c, equal={"codes": "close"}), "equal has a relation (bits)"),
    "rule": (lambda c: first(c, rules=["VAL-0"]), "rules ['VAL-0']"),
    "bug": (lambda c: first(c, bugs=["gremlin"]), "bugs ['gremlin']"),
    "name": (lambda c: first(c, words={"../x": "1"}), "words is no object of named entries"),
    "word that is none": (lambda c: first(c, words={"value": 1}), "words holds texts"),
    "dtype": (lambda c: entry(c, dtype="f8"), "dtype 'f8'"),
    "shape": (lambda c: entry(c, shape=[-1]), "shape [-1]"),
    "shape that is vast": (lambda c: entry(c, shape=[2**40]), "elements; allowed: at most"),
    "key that is not there": (lambda c: entry(c, dtype="f32", shape=[1], key="no"), "no tensor 'no'"),
    "key of another shape": (wrong_shape, "the data file has"),
    "patterns": (lambda c: entry(c, dtype="f32", shape=[2], bits="3F800000"), "bits are not 2 patterns"),
    "lower case": (lambda c: entry(c, dtype="f32", shape=[1], bits="3f800000"), "upper-case"),
    "a tensor of no case": (lambda c: c["cases"].__delitem__(slice(0, len(c["cases"]))) or c.update(count=0), "no case uses"),
}  # fmt: skip


@pytest.mark.parametrize("damage", HOSTILE)
def test_a_damaged_manifest_is_refused_with_file_and_reason(root: Path, damage: str) -> None:
    edit, message = HOSTILE[damage]
    path = edited(root, edit)
    with pytest.raises(DamagedError) as refused:
        load_all(root)
    assert str(path) in str(refused.value) or "boundary.safetensors" in str(refused.value)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


TEXTS = {
    "not JSON": b'{"schema": ',
    "not ASCII": "{\u00e9}".encode(),
    "a member twice": b'{"schema": "suite-1", "schema": "suite-1"}',
    "a fraction": b'{"schema": 1.5}',
    "NaN": b'{"schema": NaN}',
    "deep": b"[" * 200_000,
    "deep objects": b'{"a":' * 100_000,
    "a list": b"[]",
    "empty": b"",
    "a vast number": b'{"schema": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_suite_is_refused(root: Path, text: str) -> None:
    (root / f"{WHERE}.json").write_bytes(TEXTS[text])
    with pytest.raises(DamagedError, match=r"boundary\.json: "):
        load_suite(root / f"{WHERE}.json")


def blob_of(header: bytes, body: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + body


ONE = b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
BLOBS = {
    "short": b"\x01",
    "header beyond the end": b"\xff" * 16,
    "header no JSON": blob_of(b"{x", b""),
    "header a list": blob_of(b"[]", b""),
    "header deep": blob_of(b"[" * 100_000, b""),
    "float dtype": blob_of(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"\0" * 4),
    "offsets overlap": blob_of(b'{"a":%b,"b":%b}' % (ONE, ONE), b"\0"),
    "offsets beyond": blob_of(b'{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}}', b"\0"),
    "shape lies": blob_of(b'{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}', b"\0"),
    "bytes after": blob_of(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\0\0"),
    "negative": blob_of(b'{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,-1]}}', b""),
    "unknown member": blob_of(b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}}', b""),
}  # fmt: skip


@pytest.mark.parametrize("blob", BLOBS)
def test_a_damaged_data_file_is_refused_even_with_the_right_digest(root: Path, blob: str) -> None:
    data = BLOBS[blob]
    (root / f"{WHERE}.safetensors").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    path = edited(root, lambda c: c["data"].update(sha256=digest, bytes=len(data)))
    with pytest.raises(DamagedError, match=r"boundary\.(safetensors|json): "):
        load_suite(path)


def test_a_flipped_bit_of_the_data_is_found(root: Path) -> None:
    path = root / f"{WHERE}.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="not those whose SHA-256"):
        load_all(root)


def test_links_folders_and_pipes_are_refused(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    data, json_file = root / f"{WHERE}.safetensors", root / f"{WHERE}.json"
    (outside / data.name).write_bytes(data.read_bytes())
    (outside / json_file.name).write_bytes(json_file.read_bytes())
    data.unlink()
    data.symlink_to(outside / data.name)
    with pytest.raises(DamagedError, match="leads out of the folder"):
        load_suite(json_file)
    with pytest.raises(DamagedError, match="leads out of"):
        suite_digest(root)
    (root / "doc.json").symlink_to(vectors_root() / "doc.json")
    with pytest.raises(DamagedError, match=r"doc\.json: leads out of"):
        load_all(root)
    (root / "doc.json").unlink()
    json_file.unlink()
    json_file.symlink_to(outside / json_file.name)
    with pytest.raises(DamagedError, match="leads out of"):
        load_all(root)
    json_file.unlink()
    os.mkfifo(json_file)
    with pytest.raises(DamagedError, match="is a FIFO"):
        load_suite(json_file)
    json_file.unlink()
    with pytest.raises(DamagedError, match="No such file"):
        load_suite(json_file)
    json_file.mkdir()
    with pytest.raises(DamagedError, match=r"(is a folder|Is a directory)"):
        load_suite(json_file)


def test_a_large_file_and_many_cases_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_CASES", 3)
    with pytest.raises(DamagedError, match="cases; allowed: at most 3"):
        load_suite(root / f"{WHERE}.json")
    monkeypatch.setattr(store, "LARGEST_FILE", 100)
    with pytest.raises(DamagedError, match="more than"):
        load_suite(root / f"{WHERE}.json")


def test_one_id_in_two_suites_is_refused(root: Path) -> None:
    other = root / "e2m1" / "encode" / "again.json"
    content = json.loads((root / "e2m1/encode/first.json").read_text("ascii"))
    other.write_text(json.dumps({**content, "suite": "again"}))
    with pytest.raises(DamagedError, match="stands in e2m1/encode/"):
        load_all(root)


def test_the_schema_refuses_what_the_reader_refuses(root: Path) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    content = json.loads((root / f"{WHERE}.json").read_text("ascii"))
    validator.validate(content)
    for name in (
        "schema",
        "unknown member of the head",
        "unknown member of a case",
        "kind",
        "bug",
        "dtype",
        "relation",
        "id",
    ):
        spoiled = json.loads(json.dumps(content))
        HOSTILE[name][0](spoiled)
        assert not validator.is_valid(spoiled), name


def test_shipped_ids_are_unique_and_say_where_they_belong() -> None:
    cases = shipped()
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        assert case.id.split(".")[0] == case.op
        assert case.id.split(".")[2] == case.suite.split("/")[2]

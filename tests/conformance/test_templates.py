"""The adapter templates: copied, built and run as a team would. Rules VAL-5 to VAL-12; the limits are those of the design."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from quantspec_conformance.adapter_check import check_adapter
from quantspec_conformance.adapter_new import LANGUAGES, new_adapter, next_steps
from quantspec_conformance.errors import UsageError
from quantspec_conformance.implementations.law import tell
from quantspec_conformance.implementations.process import ProcessImplementation
from quantspec_conformance.protocol.bits import Bits
from quantspec_conformance.protocol.messages import Hello, Ok, Request, Unsupported
from quantspec_conformance.suite.case import Case, lacking
from quantspec_conformance.suite.run import RunOptions, run_suite
from quantspec_conformance.suite.store import load_all, vectors_root

TEMPLATES = Path(str(sys.modules["quantspec_conformance"].__file__)).parent / "templates"
LIMITS = {"python": 60, "c": 150, "rust": 150, "js": 150}
TOOLS = {"python": (), "c": ("make", "cc"), "rust": ("cargo",), "js": ("node",)}
FORMATS = {"python": ("e2m1",), "c": ("e2m1", "e4m3"), "rust": ("e2m1", "e4m3"), "js": ("e2m1", "e4m3")}


@cache
def unusable(tool: str) -> str:
    """Why a tool cannot be used, "" where it can: a launcher may be there without what it launches (rustup)."""
    if shutil.which(tool) is None:
        return f"{tool} is not installed"
    told = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "" if told.returncode == 0 else f"{tool} does not start: {(told.stderr or told.stdout).strip()[:120]}"


def build(language: str, folder: Path) -> list[str]:
    """Build a copied template; its command. Skips where the tools are missing."""
    missing = [reason for tool in TOOLS[language] if (reason := unusable(tool))]
    if missing:
        pytest.skip("; ".join(missing))
    template = LANGUAGES[language]
    if template.build:
        done = subprocess.run(
            template.build.split(), cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr
    program, *arguments = template.command.split()
    if language == "python":
        program = sys.executable
    if "/" in program and not Path(program).is_absolute():
        return [str(folder / program)]
    return [program, *(str(folder / argument) for argument in arguments)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The command of a language's template, copied and built once."""
    made: dict[str, list[str]] = {}

    def command(language: str) -> list[str]:
        if language not in made:
            folder = tmp_path_factory.mktemp(language) / "mine"
            new_adapter(language, folder)
            made[language] = build(language, folder)
        return made[language]

    return command


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Level 0: the worked examples, and the suites that are shipped."""
    shipped = load_all(vectors_root())
    return [case for case in shipped if case.level == 0]


@pytest.mark.parametrize("language", LIMITS)
def test_a_template_is_short(language: str) -> None:
    """The file with the code, comments and blank lines counted."""
    text = (TEMPLATES / language / LANGUAGES[language].own).read_text()
    assert len(text.splitlines()) <= LIMITS[language]
    assert all(len(line) <= 132 for line in text.splitlines())
    assert "HERE" in text


def test_every_template_has_a_language() -> None:
    assert {path.name for path in TEMPLATES.iterdir() if path.name != "__pycache__"} == set(LANGUAGES) == set(LIMITS)
    for language, template in LANGUAGES.items():
        there = {
            str(path.relative_to(TEMPLATES / language)) for path in (TEMPLATES / language).rglob("*") if path.is_file()
        }
        assert there == set(template.files)


@pytest.mark.parametrize("language", LIMITS)
def test_what_a_template_claims_it_passes(language: str, built: Callable[[str], list[str]], cases: list[Case]) -> None:
    """Claimed cases pass; each of the others is answered unsupported when it is asked all the same."""
    with ProcessImplementation(built(language)) as adapter:
        identity = adapter.hello(Hello())
        claimed = [case for case in cases if not lacking(case, identity)]
        results = {result.id: result for result in run_suite(claimed, adapter, RunOptions(repeat=1))}
        assert {result.id: result.outcome for result in results.values() if result.outcome != "pass"} == {}
        formats = {case.words["value"] for case in claimed if case.op in ("encode", "decode")}
        assert formats == set(FORMATS[language]) == set(identity.values)
        assert len(results) >= 13
        for case in cases:
            if lacking(case, identity):
                answer = adapter.handle(case.request)
                assert isinstance(answer, Unsupported), case.id
                assert not answer.feature.endswith(":"), f"{case.id}: {answer.feature} names nothing that is lacking"


@pytest.mark.parametrize("language", LIMITS)
def test_a_template_agrees_with_the_law_everywhere(language: str, built: Callable[[str], list[str]]) -> None:
    """Every upper half of a binary32 with lower halves around the ties, every f16, bf16 and byte."""
    every = np.arange(2**16, dtype=np.uint16)
    upper = every.astype(np.uint32) << 16
    patterns = np.concatenate([upper, upper | 1, upper | 0xFFFF])
    inputs = [Bits("f32", patterns.shape, patterns), Bits("f16", every.shape, every), Bits("bf16", every.shape, every)]
    with ProcessImplementation(built(language), timeout=60) as adapter:
        for value in FORMATS[language]:
            for x in inputs:
                encode = Request("encode", {"value": value}, {"x": x})
                assert adapter.handle(encode) == tell(encode).answer
            for byte in range(256):
                decode = Request("decode", {"value": value}, {"codes": Bits("u8", (), np.array(byte, np.uint8))})
                answer, law = adapter.handle(decode), tell(decode).answer
                assert type(answer) is type(law)
                assert not isinstance(law, Ok) or answer == law


@pytest.mark.parametrize("language", LIMITS)
def test_check_finds_nothing_in_a_template(language: str, built: Callable[[str], list[str]], cases: list[Case]) -> None:
    found = check_adapter(built(language), cases)
    assert [finding for finding in found if finding.verdict != "ok"] == []


ROWS = {
    "c": ('    {"e4m3",', '    {"e5m2", 2, 15, 0x7B, 0x7C, 0x7E, 0x80},\n'),
    "rust": ('    ("e4m3",', '    ("e5m2", (2, 15, 0x7B, 0x7C, 0x7E, 0x80)),\n'),
    "js": ("  e4m3: {", "  e5m2: { m: 2, bias: 15, largest: 0x7b, infinity: 0x7c, nan: 0x7e, sign: 0x80 },\n"),
}


@pytest.mark.parametrize("language", ROWS)
def test_a_format_more_is_one_row(language: str, tmp_path: Path, cases: list[Case]) -> None:
    """And its name among those that it claims; in the middle of the table or at its end."""
    new_adapter(language, tmp_path)
    file = tmp_path / LANGUAGES[language].own
    text = file.read_text()
    place, row = ROWS[language]
    assert text.count(place) == text.count("values=e2m1,e4m3") == 1
    file.write_text(text.replace(place, row + place).replace("values=e2m1,e4m3", "values=e2m1,e4m3,e5m2"))
    with ProcessImplementation(build(language, tmp_path)) as adapter:
        identity = adapter.hello(Hello())
        claimed = [case for case in cases if not lacking(case, identity)]
        assert {case.op for case in claimed if case.words.get("value") == "e5m2"} == {"encode", "decode"}
        results = list(run_suite(claimed, adapter, RunOptions()))
        assert [result for result in results if result.outcome != "pass"] == []
        for byte in range(256):
            decode = Request("decode", {"value": "e5m2"}, {"codes": Bits("u8", (), np.array(byte, np.uint8))})
            assert adapter.handle(decode) == tell(decode).answer
        every = np.arange(2**16, dtype=np.uint16)
        for dtype in ("f16", "bf16"):
            encode = Request("encode", {"value": "e5m2"}, {"x": Bits(dtype, every.shape, every)})
            assert adapter.handle(encode) == tell(encode).answer


@pytest.mark.parametrize("language", LIMITS)
@pytest.mark.parametrize(
    "tensor", ["f32:2:3F800000", "f32:1:3f800000", "f32:1:3F80000G", "f32:1:3F80", "f32:0:00000000", "f32:xx:3F800000"]
)
def test_what_cannot_be_read_is_answered_failed(language: str, tensor: str, built: Callable[[str], list[str]]) -> None:
    asked = "".join(f"run id={n} op={op} x={tensor}\n" for n, op in enumerate(("encode value=e2m1", "echo"), 1))
    sent = f"hello protocol=1.0\n{asked}ping id=3\n".encode()
    done = subprocess.run(built(language), input=sent, capture_output=True, timeout=60, check=False)
    answers = done.stdout.decode().splitlines()[1:]
    assert [answer.split()[0] for answer in answers] == ["failed", "failed", "ok"]
    assert [f"id={n}" in answer.split() for n, answer in enumerate(answers, 1)] == [True] * 3


def garbage(count: int, seed: int) -> Iterator[bytes]:
    """Lines that are no messages, and messages with something broken in them."""
    chosen = random.Random(seed)
    good = [
        b"run id=7 op=encode value=e2m1 x=f32:2:3FE00000BFA00000",
        b"run id=8 op=decode value=e4m3 codes=u8:2x1:070F",
        b"run id=9 op=echo a=f64::7FF0000000000001 b=u16:0:",
        b"ping id=10",
        b"hello protocol=1.0 suite=0",
    ]
    for _ in range(count):
        if chosen.random() < 0.3:
            line = bytes(chosen.randrange(256) for _ in range(chosen.randrange(60)))
        else:
            line = chosen.choice(good)
            for _ in range(chosen.randrange(1, 4)):
                at = chosen.randrange(len(line))
                piece = chosen.choice(
                    [b"", b" ", b"=", b":", b"x", b"%", b"\0", b"\xff", b"q9", b"99999999999999999999", line]
                )
                line = line[:at] + piece + line[at + chosen.randrange(8) :] or b" "
        yield line.replace(b"\n", b"").replace(b"stop", b"go")


@pytest.mark.parametrize("language", LIMITS)
def test_garbage_is_answered_and_never_ends_it(language: str, built: Callable[[str], list[str]]) -> None:
    lines = [b"hello protocol=1.0 suite=0", *garbage(200, 1), *garbage(200, 2), b"ping id=424242"]
    sent = b"\n".join(lines) + b"\nstop\nping id=424243\n"
    done = subprocess.run(built(language), input=sent, capture_output=True, timeout=60, check=False)
    answers = done.stdout.split(b"\n")
    assert done.returncode == 0
    assert answers[-1] == b""
    assert answers[-2] == b"ok id=424242"  # and nothing after stop
    assert len(answers) == len(lines) + 1
    assert {answer.split(b" ")[0] for answer in answers[:-1]} <= {
        b"ok",
        b"unsupported",
        b"rejected",
        b"known",
        b"failed",
    }


@pytest.mark.parametrize("language", LIMITS)
def test_the_end_of_input_ends_it(language: str, built: Callable[[str], list[str]]) -> None:
    done = subprocess.run(built(language), input=b"hello protocol=1.0\n", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout[:3]) == (0, b"ok ")


@pytest.mark.parametrize(
    ("language", "place", "noise"),
    [
        ("python", "    bias, shift, infinity =", '    os.write(1, b"noise\\n")\n'),
        ("c", "    uint32_t sign = x >> 31", '    printf("noise\\n"); fflush(stdout);\n'),
        ("rust", "    let sign = if x >> 31", '    println!("noise");\n'),
        ("js", "  const negative = x >>> 31", '  console.log("noise");\n'),
    ],
)
def test_what_a_library_prints_goes_to_stderr(language: str, place: str, noise: str, tmp_path: Path) -> None:
    new_adapter(language, tmp_path)
    file = tmp_path / LANGUAGES[language].own
    text = file.read_text()
    assert text.count(place) == 1
    file.write_text(text.replace(place, noise + place))
    request = b"hello protocol=1.0\nrun id=1 op=encode value=e2m1 x=f32:1:3F800000\nstop\n"
    done = subprocess.run(build(language, tmp_path), input=request, capture_output=True, timeout=60, check=False)
    assert done.stdout.splitlines()[1].split()[0] == b"ok"
    assert b"codes=u8:1:02" in done.stdout
    assert b"noise" not in done.stdout
    assert b"noise" in done.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("mine")
    with pytest.raises(UsageError, match="Makefile is there already"):
        new_adapter("c", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
    (tmp_path / "adapter.mjs").symlink_to("/nowhere")
    with pytest.raises(UsageError, match="is there already"):
        new_adapter("js", tmp_path)
    with pytest.raises(UsageError, match="Makefile"):
        new_adapter("js", tmp_path / "Makefile")


def test_languages_that_have_no_template() -> None:
    with pytest.raises(UsageError, match="'cobol' is no language of a template; allowed: python, c, rust, js"):
        new_adapter("cobol", Path())


def test_files_and_steps_of_a_new_adapter(tmp_path: Path) -> None:
    files = new_adapter("rust", tmp_path / "deep" / "mine")
    assert [path.relative_to(tmp_path / "deep" / "mine").as_posix() for path in files] == ["Cargo.toml", "src/main.rs"]
    steps = next_steps("rust", tmp_path)
    assert steps[:2] == [f"cd {tmp_path}", "cargo build --release --offline"]
    assert "quantspec adapter check 'exec:target/release/adapter'" in steps[2]
    assert next_steps("python", Path())[0].startswith("quantspec adapter check")

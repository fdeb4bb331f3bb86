"""An offline row: every program of the package through another vendor's compiler, up to a checked binary.

The programs are those that `quantspec_cl.program.all_programs` lists, so a new one is compiled here without a change.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from quantspec_cl.program import BUILD_OPTIONS, Program, all_programs

from .child import Ended, environment, run_child
from .outcome import Outcome, Status
from .places import PREPARE, libraries, prepared

__all__ = ["TARGETS", "Target", "programs", "run_offline"]

QUICK_PROGRAMS = 12
PROGRAM_SECONDS = 120.0
VERSIONS = ("19", "18", "17", "16", "15", "14")
LIBCLC = Path("/usr/lib/clc")
APT = "apt-get install -y --no-install-recommends"

#: The programs that measure a device: built beside those of the rules.
PROBES = (
    Program(("prelude.cl", "probe.cl")),
    Program(("probe.cl",)),
    Program(("prelude.cl", "probe_pairs.cl")),
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of a tool set and what it needs to run; `path` is None where it is not installed."""

    name: str
    path: Path | None
    variables: Mapping[str, str] = field(default_factory=dict)


Stage = tuple[Tool, list[str]]


@dataclass(frozen=True, slots=True)
class Target:
    """What is compiled for: its tools, and the command lines from a source to a checked binary."""

    name: str
    tools: Callable[[], list[Tool]]
    stages: Callable[[Sequence[Tool], Path, Program], list[Stage]]
    install: tuple[str, ...]


def _tool(sets: Sequence[str], *names: str) -> Tool:
    """A tool by any of its names, in a prepared set or on the path."""
    for unpacked in sets:
        root = prepared(unpacked)
        places = [root / "usr" / "bin", *root.glob("usr/lib/llvm-*/bin"), root / "nvidia" / "cuda_nvcc" / "bin"]
        for name in names:
            found = shutil.which(name, path=os.pathsep.join(map(str, places)))
            if found:
                search = os.pathsep.join(map(str, libraries(unpacked)))
                return Tool(name, Path(found), {"LD_LIBRARY_PATH": search} if search else {})
    for name in names:
        found = shutil.which(name)
        if found:
            return Tool(name, Path(found))
    return Tool(names[0], None)


def _numbered(name: str) -> tuple[str, ...]:
    return tuple(f"{name}-{version}" for version in VERSIONS)


def _spirv_tools() -> list[Tool]:
    """clang and the translator of one version, and the validator."""
    pairs = [[_tool(["spirv"], f"{name}-{version}") for name in ("clang", "llvm-spirv")] for version in VERSIONS]
    whole = [pair for pair in pairs if all(tool.path for tool in pair)]
    pair = whole[0] if whole else [_tool(["spirv"], *_numbered(name)) for name in ("clang", "llvm-spirv")]
    return [*pair, _tool(["spirv"], "spirv-val")]


def _library(file: str) -> Tool:
    """A file of libclc."""
    for folder in (prepared("gpu") / "usr" / "lib" / "clc", LIBCLC):
        if (folder / file).is_file():
            return Tool(f"libclc's {file}", folder / file)
    return Tool(f"libclc's {file}", None)


def _gpu_clang() -> Tool:
    return _tool(["gpu"], *_numbered("clang"), "clang")


def _common(program: Program) -> list[str]:
    options = [*BUILD_OPTIONS, *program.definitions]
    return ["-x", "cl", *options, "-Xclang", "-finclude-default-header", "program.cl"]


def _spirv(tools: Sequence[Tool], work: Path, program: Program) -> list[Stage]:
    clang, translate, validate = tools
    plain = ["-O1", "-Xclang", "-disable-llvm-passes", "-target", "spir64", "-emit-llvm", "-c", "-o", "program.bc"]
    return [
        (clang, [*plain, *_common(program)]),
        (translate, ["--spirv-max-version=1.2", "program.bc", "-o", "program.spv"]),
        (validate, ["--target-env", "opencl2.1", "program.spv"]),
    ]


def _linked(library: Tool) -> list[str]:
    return ["-O2", "-nogpulib", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(library.path), "-S"]


def _amd(chip: str) -> Target:
    def tools() -> list[Tool]:
        return [_gpu_clang(), _library(f"{chip}-amdgcn-mesa-mesa3d.bc")]

    def stages(tools: Sequence[Tool], work: Path, program: Program) -> list[Stage]:
        clang, library = tools
        target = ["-target", "amdgcn-mesa-mesa3d", f"-mcpu={chip}", "-o", "program.s"]
        return [(clang, [*_linked(library), *target, *_common(program)])]

    return Target(chip, tools, stages, (PREPARE, f"{APT} clang-19 libclc-19"))


def _nvidia(chip: str) -> Target:
    def tools() -> list[Tool]:
        return [_gpu_clang(), _library("nvptx64--nvidiacl.bc"), _tool(["ptxas"], "ptxas")]

    def stages(tools: Sequence[Tool], work: Path, program: Program) -> list[Stage]:
        clang, library, assemble = tools
        # libclc's triple is nvidiacl's, clang's is cuda's: they go together, and clang warns
        target = ["-target", "nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", chip, "-Wno-linker-warnings"]
        return [
            (clang, [*_linked(library), *target, "-o", "program.ptx", *_common(program)]),
            (assemble, [f"-arch={chip}", "-v", "program.ptx", "-o", "program.cubin"]),
        ]

    install = (PREPARE, f"{APT} clang-19 libclc-19, and ptxas: pip install nvidia-cuda-nvcc-cu12 or NVIDIA's toolkit")
    return Target(chip, tools, stages, install)


#: What can be compiled for.
TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("spirv", _spirv_tools, _spirv, (PREPARE, f"{APT} clang-15 llvm-spirv-15 spirv-tools")),
        *map(_amd, ("gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201")),
        *map(_nvidia, ("sm_60", "sm_75", "sm_86", "sm_90")),
    )
}


def programs() -> list[Program]:
    """Every program of the package, and those that measure."""
    return [*all_programs(), *PROBES]


def _chosen(found: Sequence[Program], *, quick: bool) -> list[Program]:
    """All programs, or on a quick check one of each set of files and some more, evenly spread."""
    if not quick or len(found) <= QUICK_PROGRAMS:
        return list(found)
    kinds = {program.files: program for program in reversed(found)}
    step = len(found) / QUICK_PROGRAMS
    spread = (found[int(i * step)] for i in range(QUICK_PROGRAMS))
    return list(dict.fromkeys(chain(kinds.values(), spread)))


def run_offline(target: Target, *, quick: bool) -> Outcome:
    """Compile the programs; the first message of a compiler that refuses one is kept."""
    tools = target.tools()
    absent = [tool.name for tool in tools if tool.path is None]
    if absent:
        return Outcome(status="missing", detail=f"not installed: {', '.join(absent)}", install=target.install)
    found = programs()
    chosen = _chosen(found, quick=quick)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(lambda program: _compiled(target, tools, program), chosen))
    wrong = [(program, ended) for program, ended in zip(chosen, results, strict=True) if ended.code != 0]
    seconds = sum(ended.seconds for ended in results)
    device = ", ".join(str(tool.path) for tool in tools)
    part = "" if len(chosen) == len(found) else f" of {len(found)} (a quick check)"
    if not wrong:
        detail = f"{len(chosen)} programs{part}{_registers(results)}"
        return Outcome(status="ok", detail=detail, count=len(chosen), device=device, seconds=seconds)
    program, ended = wrong[0]
    status: Status = "timeout" if ended.code is None else "crash" if ended.signal else "mismatch"
    return Outcome(
        status=status,
        detail=f"{len(wrong)} of {len(chosen)} programs{part} do not compile",
        count=len(wrong),
        first=f"{' '.join(program.files)} with {' '.join(program.definitions) or 'no definitions'}\n{ended.said()}",
        repro=f"quantspec devices --check --full --only '*{target.name}'",
        device=device,
        seconds=seconds,
    )


def _compiled(target: Target, tools: Sequence[Tool], program: Program) -> Ended:
    """The stages of one program, up to the first that fails; the output of all of them."""
    out, seconds, code = "", 0.0, None
    with tempfile.TemporaryDirectory(prefix="quantspec-check-") as name:
        work = Path(name)
        (work / "program.cl").write_text(program.source, encoding="utf-8")
        for tool, words in target.stages(tools, work, program):
            env = environment(tool.variables, work)
            ended = run_child([str(tool.path), *words], env=env, seconds=PROGRAM_SECONDS, folder=work)
            out, seconds, code = f"{out}{ended.out}{ended.err}", seconds + ended.seconds, ended.code
            if code != 0:
                break
    return Ended(code, out, out, seconds)


def _registers(results: Sequence[Ended]) -> str:
    """What ptxas says of registers and spills; nothing for other targets."""
    text = "\n".join(ended.out for ended in results)
    used = [int(number) for number in re.findall(r"Used (\d+) registers", text)]
    spilled = sum(int(number) for number in re.findall(r"(\d+) bytes spill stores", text))
    return f", up to {max(used)} registers, {spilled} bytes spilled" if used else ""

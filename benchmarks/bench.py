"""Every benchmark, on every OpenCL device that is installed, into one folder: a page, files of numbers, pictures.

    make bench                      # or: python benchmarks/bench.py [--quick] [--only peers,growth] [--resume] [--out build/bench]

Devices: the default one, and Intel's runtime where it is installed, in processes of their own. Without --quick the environments
of the peers are first installed where they are missing (5 GB); with it a missing peer is a row that says so. Ctrl-C keeps what
is measured and still writes the page; --resume goes on from there. README.md beside this file says how to read it.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_report import SECTIONS, page
from pictures import PICTURES, draw
from quantspec_cl.runtimes import find_runtimes
from quantspec_conformance.implementations.served import environment
from store import INTERRUPTED, read, run

HERE = Path(__file__).resolve().parent
DONE = ".done"


@dataclass(frozen=True, slots=True)
class Step:
    """A benchmark: its script and its arguments."""

    name: str
    script: str
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    device: bool = True  #: it takes --json, and runs on each device; otherwise once, its text kept


SMALL = ("--elements", "2^22", "--repeats", "3")
STEPS = (
    Step("kernels", "bench_kernels.py", quick=SMALL),
    Step("peers", "bench_peers.py", full=("--prepare",), quick=SMALL),
    Step("roofline", "bench_roofline.py", quick=SMALL),
    Step("growth", "bench_growth.py", quick=("--largest", "2^20", "--blocks-at", "2^20", "--repeats", "3")),
    Step("products", "bench_products.py", quick=("--size", "2048", "--repeats", "3")),
    Step("layout", "bench_layout.py", quick=SMALL),
    Step("reference", "bench_reference.py", quick=("--elements", "2^20", "--repeats", "2"), device=False),
    Step("wires", "bench_wires.py", quick=("--rounds", "10"), device=False),
)


def devices() -> dict[str, dict[str, str]]:
    """The devices by name, and the variables of the processes that see them."""
    found: dict[str, dict[str, str]] = {"default": {}}
    for runtime in find_runtimes():
        if not runtime.listed:
            found[runtime.name] = runtime.variables
    return found


def perform(step: Step, folder: Path, variables: Mapping[str, str], arguments: Sequence[str]) -> int:
    """Run a step, its output shown and kept; the exit code. KeyboardInterrupt once its process ended."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(HERE / step.script), *arguments]
    command += ["--json", str(folder / f"{step.name}.json")] if step.device else []
    quiet = {"PYTHONUNBUFFERED": "1", "COLUMNS": "160", "PYTHONWARNINGS": "ignore:Non-empty compiler output"}
    env = environment({**variables, **quiet})
    with (
        (folder / f"{step.name}.txt").open("w", encoding="utf-8") as kept,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=env
        ) as process,  # Ctrl-C ends it too: waited for
    ):
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            kept.write(line)
        code = process.wait()
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    (folder / f"{step.name}{DONE}").write_text(f"{code}\n", "utf-8")
    return code


def write(out: Path) -> tuple[Path, list[str]]:
    """The page and pictures from the files in a folder; what is amiss with a file or a picture."""
    steps: dict[str, dict[str, dict[str, Any]]] = {}
    pictures, problems = {}, []
    for file in sorted(out.glob("*/*.json")):
        device, step = file.parent.name, file.stem
        if step not in SECTIONS:
            continue
        try:
            steps.setdefault(device, {})[step] = read(file)
        except (OSError, ValueError) as error:
            problems.append(str(error))
            continue
        if step in PICTURES:
            picture = file.with_suffix(".svg")
            reason = draw(step, steps[device][step], picture)
            if reason:
                problems.append(f"no picture of {step} on {device}: {reason}")
            else:
                pictures[device, step] = f"{device}/{picture.name}"
    path = out / "report.md"
    path.write_text(page({device: each for device, each in steps.items() if each}, pictures), "utf-8")
    return path, problems


def chosen_steps(text: str) -> tuple[Step, ...]:
    """Steps by name. ValueError for a name that is none."""
    names = [name for name in text.split(",") if name]
    unknown = sorted(set(names) - {step.name for step in STEPS})
    if unknown:
        raise ValueError(f"--only: no step is named {unknown[0]}; there are {', '.join(step.name for step in STEPS)}")
    return tuple(step for step in STEPS if not names or step.name in names)


def main() -> int:
    """Run the steps, write the page; 1 where a step failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, few repetitions, nothing installed")
    parser.add_argument("--only", default="", help=f"steps, with commas: {', '.join(step.name for step in STEPS)}")
    parser.add_argument("--resume", action="store_true", help="leave out what an earlier run into this folder finished")
    parser.add_argument("--report", action="store_true", help="measure nothing: page and pictures from the files alone")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="the folder (default build/bench)")
    options = parser.parse_args()
    steps = () if options.report else chosen_steps(options.only)
    failed, interrupted, first = [], False, True
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        for device, variables in devices().items():
            for step in steps:
                folder = options.out / device
                done = folder / f"{step.name}{DONE}"
                if (options.resume and done.exists() and done.read_text("utf-8") == "0\n") or not (
                    step.device or first
                ):
                    continue
                done.unlink(missing_ok=True)
                print(f"\n== {step.name} on {device}", flush=True)
                more = step.quick if options.quick else step.full
                more = (*more, "--resume") if options.resume and step.name == "peers" else more
                if perform(step, folder, variables, more):
                    failed.append(f"{step.name} on {device}")
            first = False
    except KeyboardInterrupt:
        interrupted = True
    path, problems = write(options.out)
    for problem in (*problems, *(f"failed: {each}; its last lines are above" for each in failed)):
        print(f"bench: {problem}", file=sys.stderr)
    if interrupted:
        print("bench: interrupted; --resume goes on from here", file=sys.stderr)
    print(f"bench: {os.path.relpath(path)}")
    return INTERRUPTED if interrupted else int(bool(failed))


if __name__ == "__main__":
    raise SystemExit(run(main))

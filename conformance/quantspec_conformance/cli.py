"""The command `quantspec`: run, devices, explain, rules, vectors; the commands about the suite are in `suitecli`.

Exit codes: 0 as expected, 1 an unexpected outcome, 2 usage, 3 no usable device or adapter, 4 the suite or a result file is
damaged, 130 interrupted, 141 the reader of the report left, 143 terminated.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

try:
    import click
    from rich.text import Text
except ModuleNotFoundError as missing:
    print(f'quantspec: {missing.name} is not installed; pip install "quantspec[harness]"', file=sys.stderr)
    raise SystemExit(2) from None

import quantspec

from . import suitecli
from .convert import cli as convertcli
from .errors import DeviceError, UsageError
from .guard import guarded
from .identify import cli as identifycli
from .options import FILE
from .outside import reason_of
from .peers import cli as peerscli

__all__ = ["main"]

SEED = click.IntRange(0, 2**63 - 1)
FIRST = click.IntRange(0, 1000)
SECONDS = click.FloatRange(0.1)

#: Options of `run` that only the matrix has, and those that only the suite has with their defaults.
MATRIX_ONLY = {
    "devices": "--device", "only": "--only", "case": "--case", "quick": "--quick", "json_file": "--json",
    "build_options": "--build-option", "tensor": "--tensor", "name": "--name", "max_elements": "--max-elements",
    "path": "--path",
}  # fmt: skip
SUITE_ONLY: dict[str, Any] = {"select": "", "level": 0, "profile": "", "expect": None, "out": None, "repeat": 0.02}

RUN_HELP = """Run devices against the reference, bit for bit; or, with --impl, the
suite on an implementation in any language.

\b
The matrix: 11 values x 7 stores x 35 scale choices (2695 schemes), and lookup
for the 6 integer values (1470). Every scheme meets every one of 15 shapes
(ranks 0 to 4, odd, partial, empty), or is refused for it by the same rule on
both sides, and every one of 16 data families; so every (value, scale choice,
family) triple is met. Which family meets which shape, and the block extents,
rotate. In numbers: 4165 schemes, 94421 cases, 19670 of them shapes to be
refused, 9520 triples.

\b
Every case quantizes, packs, writes bytes and splits them. Taking turns over a
scheme's cases: dequantizing to f32, f16 and bf16; dequantizing and splitting
codes and scale codes drawn over all legal ones; quantizing with given scales;
reading dirty padding. Outputs are poisoned, and compared as bits.

--quick thins the matrix to 238 schemes and a third of the families. It is NOT
a conformance run, and says so. So is any other part of the matrix, and any
build with options.

Without --device every device of every runtime found is run, each in a process
of its own. A crash is the outcome of its case, and the device is started again
for the next one; after five crashes, or a hang, it is out. A device is named as `quantspec devices` lists it, or by a part of
its name; `reference` is the law itself, `py:FILE.py:CLASS` an adapter.
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(quantspec.__version__, prog_name="quantspec")
def main() -> None:
    """The conformance harness of quantspec: the exact bits of block-quantized tensors.

    Exit codes: 0 as expected, 1 an unexpected outcome, 2 usage, 3 no usable device or adapter, 4 the suite or a
    result file is damaged, 130 interrupted, 141 the reader of the report left, 143 terminated.
    """


def _finite(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds")
    return value


def _suite(options: dict[str, Any]) -> int:
    """`run --impl`: the suite instead of the matrix."""
    from .suitecommand import SuiteOptions, run_suite_command

    for name, flag in MATRIX_ONLY.items():
        if options[name]:
            raise UsageError(
                f"{flag} is for devices and the matrix; with --impl: --select, --level, --profile, --expect, --out"
            )
    return run_suite_command(
        SuiteOptions(
            address=options["impl"],
            select=options["select"],
            level=options["level"],
            profile=options["profile"],
            expect=options["expect"],
            out=options["out"],
            timeout=10.0 if options["timeout"] is None else options["timeout"],
            repeat=options["repeat"],
            seed=options["seed"],
            first=options["first"],
        )
    )


@main.command(help=RUN_HELP)
@click.option(
    "--impl", metavar="ADDRESS", help="Run the suite on an implementation: exec:CMD, py:FILE.py:CLASS, opencl:N, ..."
)
@click.option("--select", default="", metavar="EXPR", help="With --impl: cases, for example 'op:encode value:e2m1'.")
@click.option("--level", type=click.IntRange(0, 2), default=0, help="With --impl: levels up to this one.  [default: 0]")
@click.option(
    "--profile", default="", metavar="NAME", help="With --impl: a must-run list, and whether its claim holds."
)
@click.option("--expect", type=FILE, metavar="FILE", help="With --impl: expectations (TOML), strict both ways.")
@click.option("--out", type=FILE, metavar="FILE", help="With --impl: write the result, a line a case, as it comes.")
@click.option("--repeat", type=click.FloatRange(0, 1), default=0.02, help="With --impl: share of cases asked twice.")
@click.option("--device", "devices", multiple=True, metavar="SPEC", help="What to run; repeatable. Default: all.")
@click.option("--only", multiple=True, metavar="GLOB", help="Schemes, by a glob on their text: 'e2m1.*'; repeatable.")
@click.option("--case", "case", metavar="ID", help="Run one case, scheme/shape/family, with every step.")
@click.option("--quick", is_flag=True, help="Run a small part, in seconds. NOT a conformance run.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all drawn data.")
@click.option("--json", "json_file", type=FILE, metavar="FILE", help="Write the result, whole or not at all.")
@click.option("--build-option", "build_options", multiple=True, metavar="OPT", help="A compiler option; repeatable.")
@click.option(
    "--path",
    type=click.Choice(["auto", "fast", "generic"]),
    help="Which kernels: fast takes the specialised ones for every size, and fuses packing.  [default: auto]",
)
@click.option("--tensor", metavar="FILE", help="Run a .npy or .safetensors tensor under named schemes (or --only).")
@click.option("--name", metavar="T", help="The tensor in a .safetensors file of several.")
@click.option("--max-elements", type=click.IntRange(1), help="Largest tensor read.  [default: 16777216]")
@click.option("--first", type=FIRST, default=5, show_default=True, help="Failures shown, and differences of each.")
@click.option(
    "--timeout",
    type=SECONDS,
    callback=_finite,
    default=None,
    help="Seconds of silence that put a device out, or a request of --impl.  [default: 60, 10]",
)
@guarded
def run(**options: Any) -> None:
    if options["impl"] is not None:
        sys.exit(_suite(options))
    from .command import run_command

    for name in SUITE_ONLY:
        if options[name] != SUITE_ONLY[name]:
            raise UsageError(f"--{name} goes with --impl")
    timeout = 60.0 if options["timeout"] is None else options["timeout"]
    rest = {name: value for name, value in options.items() if name not in ("impl", "timeout", *SUITE_ONLY)}
    sys.exit(run_command(**rest, timeout=timeout))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--check", is_flag=True, help="Run the suite on every runtime and hostile build, and compile offline.")
@click.option("--quick/--full", default=True, help="With --check: a part of the suite, or the whole.  [default: quick]")
@click.option("--only", multiple=True, metavar="NAME", help="With --check: these rows, by a glob; repeatable.")
@click.option("--strict", is_flag=True, help="With --check: what is not installed is a failure.")
@click.option("--prepare", is_flag=True, help="Fetch runtimes and compilers that only --check uses; no root needed.")
@guarded
def devices(as_json: bool, check: bool, quick: bool, only: tuple[str, ...], strict: bool, prepare: bool) -> None:
    """List the devices found: what each promises, and what its self-test measured.

    --check runs each row in processes of its own: runtimes of pip and of Debian, builds that play a device which flushes
    subnormals or divides badly, every kernel under Oclgrind, and compilers for SPIR-V, AMD and NVIDIA. What crashes is a
    row, and what is not installed is listed with how to install it; exit codes 0, 1, and 3 where no runtime is there.
    """
    if check or prepare:
        from .runtimecheck.check import check_command, prepare_command

        code = prepare_command() if prepare else 0
        sys.exit(check_command(quick=quick, only=only, as_json=as_json, strict=strict) if check else code)
    if only or strict or not quick:
        raise UsageError("--only, --strict and --full go with --check")
    from .devices import INSTALL, print_devices, survey
    from .report import console

    rows = survey(measure=True)
    if as_json:
        click.echo(json.dumps({"devices": rows}, indent=1))
    elif rows:
        print_devices(console(), rows)
    if all(row.get("error") for row in rows):
        raise DeviceError(INSTALL)


def _index(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not all(re.fullmatch(r"-?[0-9]{1,20}", part) for part in parts):
        raise click.BadParameter(f"{value!r} is not an index; write 3,17")
    return tuple(map(int, parts))


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("scheme")
@click.argument("what", metavar="VALUE|CODE|FILE")
@click.option("--name", metavar="T", help="The tensor in a .safetensors file of several.")
@click.option(
    "--index", callback=_index, metavar="I,J", help="The element of a file's tensor to explain. Default: the first."
)
@click.option("--recipe", metavar="NAME", help="Quantize by this recipe, and show the value of each of its steps.")
@click.option("--codec", metavar="NAME", help="Encode by this codec, with the steps of the recipe. Default: canonical.")
@click.option("--preset", metavar="NAME", help="Recipe and codec of this preset; `quantspec presets` lists them all.")
@click.option(
    "--scale", metavar="VALUE", help="With them: a scale given to every block, in the place of the chosen one."
)
@click.option("--tensor-scale", metavar="VALUE", help="With them: a scale given to the tensor.")
@guarded
def explain(
    scheme: str,
    what: str,
    name: str | None,
    index: tuple[int, ...] | None,
    recipe: str | None,
    codec: str | None,
    preset: str | None,
    scale: str | None,
    tensor_scale: str | None,
) -> None:
    """Explain a number, a code or an element of a file under a scheme: bits, fields, neighbours, rules.

    With --recipe, --codec or --preset: the scales and the codes of that policy, with the bits and the rule of every step.

    \b
    VALUE  0.3, 0x1.8p1, 0x3FC00000 (8 digits: the bits of an f32), nan, -inf
           under a recipe also several, 0.3,1.75,-6: a block; --index counts them
    CODE   code:0x7 or c7
    FILE   a .npy or .safetensors file; --index chooses the element
    """
    from .explain import explain as lines
    from .matrix import parse
    from .policynames import policies_named
    from .report import console

    out = console()
    width = min(out.width, 100)
    named = policies_named(preset=preset, recipe=recipe, codec=codec)
    tables = () if named.preset is None or named.preset.table is None else (named.preset.table,)
    known = parse(scheme, tables=tables)
    named.require(known)
    by = (named.recipe.name, named.codec.name) if recipe or codec or preset else (None, None)
    given = {"scales": scale, "tensor_scale": tensor_scale}
    for line in lines(known, what, name=name, index=index, recipe=by[0], codec=by[1], given=given, width=width):
        out.print(Text(line), soft_wrap=True)


@main.command()
@click.argument("name", required=False)
@guarded
def presets(name: str | None) -> None:
    """List the presets, recipes, codecs and containers, or show one: every step, what it covers, where it was seen."""
    from .policynames import preset_lines
    from .report import console

    out = console()
    for line in preset_lines(name, min(out.width, 100)):
        out.print(Text(line), soft_wrap=True)


@main.command()
@click.argument("words", nargs=-1, metavar="[ID|AREA|WORDS]...")
@click.option(
    "--level", type=click.Choice(["MUST", "SHOULD", "MAY", "POLICY"], case_sensitive=False), help="Only these."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with everything that hangs on a rule.")
@guarded
def rules(words: tuple[str, ...], level: str | None, as_json: bool) -> None:
    """List, search or show the rules of the spec.

    \b
    quantspec rules              every rule, a line each
    quantspec rules QNT-4        one: text, formula, source lines, cases, who gives other bits
    quantspec rules scales       a chapter, or its area: SCL
    quantspec rules ties even    rules that hold all these words
    """
    from .report import console
    from .rulebook import find, record, show

    found = find(words, level=level)
    if as_json:
        click.echo(json.dumps({"rules": [record(rule) for rule in found]}, indent=1))
        return
    out = console()
    lines = (
        show(found[0], min(out.width, 100)) if len(found) == 1 else (f"{r.id:<7} {r.level:<6} {r.title}" for r in found)
    )
    for line in lines:
        out.print(Text(line), soft_wrap=True)


@main.group()
def vectors() -> None:
    """The cases as files for other languages, and the one generator that writes them."""


@vectors.command("doc")
@click.option("--write", is_flag=True, help="Write the file; without it, say what is not current (exit code 1).")
@click.option(
    "--reviewed", multiple=True, metavar="RULE", help="Its text changed and its cases were looked at; repeatable."
)
@click.option(
    "--retire", nargs=2, multiple=True, metavar="ID REASON", help="A case that falls away; its id stays taken."
)
@guarded
def vectors_doc(write: bool, reviewed: tuple[str, ...], retire: tuple[tuple[str, str], ...]) -> None:
    """The worked examples of the spec: vectors/doc.json.

    Every case holds what is given and what follows, as bits, and the digest of each rule that it shows. A rule whose text
    changed asks for a review of its cases; an id that falls away is retired with a reason and never used again.
    """
    from . import doccases

    if (reviewed or retire) and not write:
        raise UsageError("--reviewed and --retire go with --write")
    path = doccases.case_file()
    known = doccases.load() if path.exists() else None
    if write:
        content = doccases.make(known, reviewed=reviewed, retire=dict(retire))
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(doccases.text_of(content), "utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"{str(path)!r} cannot be written: {reason_of(error)}") from None
        click.echo(f"{len(content['cases'])} cases, {len(content['retired'])} retired, written to {path}")
    found = doccases.load()
    problems = doccases.differences(found)
    for problem in problems or [f"current: {len(found['cases'])} cases"]:
        click.echo(problem)
    sys.exit(1 if problems else 0)


@vectors.command("suites")
@click.option("--write", is_flag=True, help="Write the shipped levels, 0 and 1; without it, say what is not current.")
@click.option("--out", type=FILE, metavar="DIR", help="Write into this folder instead, with any --level.")
@click.option(
    "--level", "levels", type=click.IntRange(0, 2), multiple=True, help="With --out; repeatable.  [default: 0 1]"
)
@click.option(
    "--retire", nargs=2, multiple=True, metavar="ID REASON", help="A case that falls away; its id stays taken."
)
@guarded
def vectors_suites(write: bool, out: Path | None, levels: tuple[int, ...], retire: tuple[tuple[str, str], ...]) -> None:
    """The suites that the generator makes: every boundary of every format and scale rule, and much more.

    Files are the same bytes wherever they are made. Level 2 is not shipped: write it with --out DIR --level 2.
    """
    from .suite.generate.release import SHIPPED, stale, write_suites
    from .suite.store import vectors_root

    if (levels and out is None) or (retire and not (write or out)):
        raise UsageError("--level goes with --out, --retire with --write or --out")
    if not write and out is None:
        problems = stale(vectors_root())
        for problem in problems or ["current"]:
            click.echo(problem)
        sys.exit(1 if problems else 0)
    root = vectors_root() if out is None else out
    try:
        root.mkdir(parents=True, exist_ok=True)
        changed = write_suites(root, levels or SHIPPED, retire=dict(retire))
    except OSError as error:
        raise UsageError(f"{str(root)!r} cannot be written: {reason_of(error)}") from None
    click.echo(f"{len(changed)} files changed in {root}")


suitecli.register(main)
peerscli.register(main)
convertcli.register(main)
identifycli.register(main)

"""The command `quantspec`: run, devices, explain, rules, vectors.

Exit codes: 0 as expected, 1 an unexpected outcome, 2 usage, 3 no usable device, 4 the suite is damaged, 141 the reader of the
report left.
"""

import errno
import functools
import json
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

try:
    import click
    from rich.text import Text
except ModuleNotFoundError as missing:
    print(f'quantspec: {missing.name} is not installed; pip install "quantspec[harness]"', file=sys.stderr)
    raise SystemExit(2) from None

import quantspec

from .errors import DeviceError, HarnessError, UsageError
from .outside import printable

__all__ = ["main"]

P = ParamSpec("P")
R = TypeVar("R")

SEED = click.IntRange(0, 2**63 - 1)
FIRST = click.IntRange(0, 1000)
SECONDS = click.FloatRange(0.1)
NEWLINE = "\n"
READER_LEFT = 141
UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
FILE = click.Path(path_type=Path)

RUN_HELP = """Run devices against the reference, bit for bit.

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
of its own. A device is named as `quantspec devices` lists it, or by a part of
its name; `reference` is the law itself, `py:FILE.py:CLASS` an adapter.
"""


def _fail(error: HarnessError) -> NoReturn:
    with suppress(OSError):
        click.echo(f"quantspec: {printable(str(error), keep=NEWLINE)}", err=True)
    sys.exit(error.exit_code)


def _unwritable(error: OSError) -> NoReturn:
    """End where stdout takes no more: 141, as a shell says of SIGPIPE, where its reader left; a usage error otherwise."""
    with suppress(OSError, ValueError):  # what is still buffered would fail again at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        sys.exit(READER_LEFT)
    _fail(UsageError(f"cannot write the report: {error.strerror}"))


def _flush() -> None:
    if sys.stdout is not None:  # None where the process was started without one
        sys.stdout.flush()


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """End with the exit code of a fault of the harness, its message on stderr and no traceback."""

    @functools.wraps(command)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            try:
                return command(*args, **kwargs)
            finally:
                _flush()
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            _unwritable(error)
        except HarnessError as error:
            _fail(error)
        except quantspec.QuantspecError as error:
            _fail(UsageError(str(error)))

    return inner


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(quantspec.__version__, prog_name="quantspec")
def main() -> None:
    """The conformance harness of quantspec: the exact bits of block-quantized tensors.

    Exit codes: 0 as expected, 1 an unexpected outcome, 2 usage, 3 no usable device, 4 the suite is damaged, 141 the reader
    of the report left.
    """


def _finite(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of seconds")
    return value


@main.command(help=RUN_HELP)
@click.option("--device", "devices", multiple=True, metavar="SPEC", help="What to run; repeatable. Default: all.")
@click.option("--only", multiple=True, metavar="GLOB", help="Schemes, by a glob on their text: 'e2m1.*'; repeatable.")
@click.option("--case", "case", metavar="ID", help="Run one case, scheme/shape/family, with every step.")
@click.option("--quick", is_flag=True, help="Run a small part, in seconds. NOT a conformance run.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of all drawn data.")
@click.option("--json", "json_file", type=FILE, metavar="FILE", help="Write the result, whole or not at all.")
@click.option("--build-option", "build_options", multiple=True, metavar="OPT", help="A compiler option; repeatable.")
@click.option("--tensor", metavar="FILE", help="Run a .npy or .safetensors tensor under named schemes (or --only).")
@click.option("--name", metavar="T", help="The tensor in a .safetensors file of several.")
@click.option("--max-elements", type=click.IntRange(1), help="Largest tensor read.  [default: 16777216]")
@click.option("--first", type=FIRST, default=5, show_default=True, help="Failures shown, and differences of each.")
@click.option(
    "--timeout",
    type=SECONDS,
    callback=_finite,
    default=60.0,
    show_default=True,
    help="Seconds of silence that put a device out.",
)
@guarded
def run(**options: Any) -> None:
    from .command import run_command

    sys.exit(run_command(**options))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@guarded
def devices(as_json: bool) -> None:
    """List the devices found: what each promises, and what its self-test measured."""
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
@guarded
def explain(scheme: str, what: str, name: str | None, index: tuple[int, ...] | None) -> None:
    """Explain a number, a code or an element of a file under a scheme: bits, fields, neighbours, rules.

    \b
    VALUE  0.3, 0x1.8p1, 0x3FC00000 (8 digits: the bits of an f32), nan, -inf
    CODE   code:0x7 or c7
    FILE   a .npy or .safetensors file; --index chooses the element
    """
    from .explain import explain as lines
    from .matrix import parse
    from .report import console

    out = console()
    for line in lines(parse(scheme), what, name=name, index=index, width=min(out.width, 100)):
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


@main.command()
@click.option("--write", is_flag=True, help="Write the file; without it, say what is not current (exit code 1).")
@click.option(
    "--reviewed", multiple=True, metavar="RULE", help="Its text changed and its cases were looked at; repeatable."
)
@click.option(
    "--retire", nargs=2, multiple=True, metavar="ID REASON", help="A case that falls away; its id stays taken."
)
@guarded
def vectors(write: bool, reviewed: tuple[str, ...], retire: tuple[tuple[str, str], ...]) -> None:
    """The worked examples of the spec as cases for other languages: vectors/doc.json.

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
        path.parent.mkdir(exist_ok=True)
        path.write_text(doccases.text_of(content), "utf-8", newline="\n")
        click.echo(f"{len(content['cases'])} cases, {len(content['retired'])} retired, written to {path}")
    problems = doccases.differences(doccases.load())
    for problem in problems:
        click.echo(problem)
    sys.exit(1 if problems else 0)

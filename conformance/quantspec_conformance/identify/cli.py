"""The command `quantspec identify`."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from ..guard import guarded

__all__ = ["asking", "register"]


@click.command()
@click.argument("address", metavar="IMPL")
@click.option(
    "--format", "formats", multiple=True, metavar="SCHEME", help="A scheme, such as e2m1.native.b32-ue8m0; repeatable."
)
@click.option(
    "--recipe",
    default="",
    metavar="NAME",
    help="Name this recipe, a row of Policies, in the requests, for who has several.",
)
@click.option("--brief", is_flag=True, help="Leave out the path and what refutes the others.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--max-blocks", type=click.IntRange(16, 10**6), default=2000, show_default=True, help="Blocks asked a format."
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Seed of the questions.")
@click.option("--timeout", type=click.FloatRange(0.01), default=10.0, show_default=True, help="Seconds a request.")
@guarded
def identify(
    address: str,
    formats: tuple[str, ...],
    recipe: str,
    brief: bool,
    as_json: bool,
    max_blocks: int,
    seed: int,
    timeout: float,
) -> None:
    """Find which recipe, codec and container an implementation realises, by asking it; nothing has to be declared.

    Exit codes: 0 all that it offers is known, 1 something is none of the known, or answers change, or all is refused,
    3 it offers none of the formats.
    """
    from quantspec.recipes import Recipe

    from ..errors import DeviceError
    from ..implementations.address import open_implementation
    from ..implementations.errors import ImplementationError
    from ..outside import printable
    from ..protocol.messages import Hello
    from . import FORMATS
    from . import identify as search
    from .hints import hint_lines
    from .text import found_lines, head_line, last_line
    from .verdict import outcome_code

    if recipe:
        Recipe.of(recipe)
    implementation = open_implementation(address, timeout=timeout)
    found = []
    try:
        identity = implementation.hello(Hello())
        if not as_json:
            click.echo(printable(head_line(identity)))
        verdicts = search(implementation, formats, max_blocks=max_blocks, seed=seed, recipe=recipe)
        for scheme in formats or FORMATS:
            with asking(scheme):
                one = next(verdicts)
            found.append(one)
            if not as_json:
                click.echo()
                for line in found_lines(one, brief=brief):
                    click.echo(printable(line))
    except ImplementationError as error:
        raise DeviceError(str(error)) from None
    finally:
        implementation.close()
    if as_json:
        who = {"name": identity.name, "version": identity.version}
        click.echo(json.dumps({"implementation": who, "formats": [one.as_json() for one in found]}, indent=1))
    else:
        click.echo()
        for line in hint_lines(identity, found, asked=bool(formats)):
            click.echo(printable(line))
        click.echo(last_line(found))
    sys.exit(outcome_code(found))


@contextmanager
def asking(scheme: str) -> Iterator[None]:
    """While open, a terminal shows what is being asked: a slow implementation takes minutes for a format."""
    shown = sys.stderr.isatty()
    if shown:
        click.echo(f"asking {scheme} ...", err=True, nl=False)
    try:
        yield
    finally:
        if shown:
            click.echo("\r\x1b[K", err=True, nl=False)


def register(main: click.Group) -> None:
    """Add the command to the group."""
    main.add_command(identify)

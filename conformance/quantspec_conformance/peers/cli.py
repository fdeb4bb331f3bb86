"""The command `quantspec peers`."""

import sys
from pathlib import Path

import click

from ..guard import guarded
from ..options import FILE

__all__ = ["register"]

ONLY = click.option("--only", multiple=True, metavar="NAME", help="These peers, by a glob; repeatable.")
RESULTS = click.option(
    "--out", type=FILE, default=Path("peers-results"), show_default=True, metavar="DIR", help="The folder of results."
)


@click.group(name="peers")
def group() -> None:
    """Other libraries under the suite: each in an environment of its own, every difference with its reason.

    Environments are in ~/.cache/quantspec-peers; QUANTSPEC_PEERS moves them. Exit codes: 0 as expected, 1 a difference that
    nothing explains or a peer that cannot be installed.
    """


@group.command("list")
@ONLY
@guarded
def list_(only: tuple[str, ...]) -> None:
    """List the peers: version, whether it is installed, formats."""
    from .check import list_command

    sys.exit(list_command(only))


@group.command()
@ONLY
@guarded
def prepare(only: tuple[str, ...]) -> None:
    """Build the environments. They take 5 GB, most of it torch."""
    from .check import prepare_command

    sys.exit(prepare_command(only))


@group.command()
@ONLY
@RESULTS
@click.option("--level", type=click.IntRange(0, 1), default=1, show_default=True, help="Levels up to this one.")
@guarded
def run(only: tuple[str, ...], out: Path, level: int) -> None:
    """Prepare and run: result files, a summary of each, and matrix.json. Ctrl-C keeps what is finished."""
    from .check import run_command

    sys.exit(run_command(only, out=out, level=level))


@group.command()
@ONLY
@RESULTS
@guarded
def expect(only: tuple[str, ...], out: Path) -> None:
    """Write expect/NAME.toml from results and causes.toml; says which wrong cases have no cause."""
    from .check import expect_command

    sys.exit(expect_command(only, out))


@group.command()
@ONLY
@RESULTS
@guarded
def identify(only: tuple[str, ...], out: Path) -> None:
    """Identify the peers that are installed: what is found beside what is documented; writes identify.json."""
    from .identifying import identify_command

    sys.exit(identify_command(only, out))


def register(main: click.Group) -> None:
    """Add the group to the command."""
    main.add_command(group)

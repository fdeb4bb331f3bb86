"""The command `quantspec convert`."""

from pathlib import Path

import click

from ..guard import guarded
from ..options import FILE

__all__ = ["register"]

STRICT = click.Choice(["refuse", "ignore"])


@click.command()
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option("--scheme", metavar="SCHEME", help="The scheme of IN, such as e2m1.packed_native_0.b32-ue8m0.")
@click.option("--shape", metavar="2x64", help="The shape of the tensor; scalar for none.")
@click.option("--from", "source_name", metavar="NAME", help="The dialect of IN: a preset, or a container.")
@click.option(
    "--to", "target_name", metavar="NAME", required=True, help="The dialect of OUT: a preset, or a container."
)
@click.option("--to-store", metavar="STORE", help="Write the codes in another store, such as packed_u32_0.")
@click.option("--name", metavar="T", help="The tensor of a .safetensors file that is the whole stream.")
@click.option("--words", metavar="T", help="The tensor of a .safetensors file that holds the words.")
@click.option("--scales", metavar="T", help="The one that holds the block scales.")
@click.option("--tensor-scale", metavar="T", help="The one that holds the tensor scale.")
@click.option(
    "--padding", type=STRICT, default="refuse", show_default=True, help="Bits that hold no code and are not 0."
)
@click.option("--ue4m3-bit7", type=STRICT, default="refuse", show_default=True, help="Bit 7 of a ue4m3 scale.")
@click.option("--dequantize", "numbers", type=click.Choice(["f32", "f16", "bf16"]), help="Show the numbers too.")
@click.option("--max-elements", type=click.IntRange(1), help="Largest tensor read.  [default: 16777216]")
@click.option("--force", is_flag=True, help="Write over OUT where it is there.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@guarded
def convert(source: Path, target: Path, **options: object) -> None:
    """Write the packed bytes of one tensor as another stack stores them: code for code, scale code for scale code.

    \b
    IN    a file of bytes: words, block scales, tensor scale, or blocks with their
          scale first, as --from has them; a .npy of uint8 with the same bytes;
          a .safetensors file with one such tensor (--name), or with its parts
          (--words, --scales, --tensor-scale)
    OUT   the same by its suffix. A .safetensors file says what it holds, so that
          it needs no --scheme, --shape and --from as IN
    NAME  a row of the spec's chapter Policies; where a preset and a container
          share a name it is the preset: container:ggml-q8_0 for the other

    Nothing is requantized. Before anything is written the new bytes are read again and converted back: codes, scale codes
    and bytes must be those that were read (POL-18). A preset of --from says how the numbers are read, too, and OUT keeps that.
    The codes of a store stay in it: --to-store moves them to another one.

    Exit codes: 0 written, 1 the check found a difference, 2 usage, or a rule refuses; then nothing is written.
    """
    from .run import Request, run_convert

    for line in run_convert(Request(source=source, target=target, **options)):  # type: ignore[arg-type]
        click.echo(line)


def register(main: click.Group) -> None:
    """Add the command to the group."""
    main.add_command(convert)

"""`ptxlab draw`: layouts as pictures."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.cli.findings import has_color

if TYPE_CHECKING:
    from ptxlab.draw import Picture

output_option = click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write .svg or .txt."
)


@click.group("draw")
def command() -> None:
    """Draw layouts: fragments of matrices in registers, tiles and described matrices in shared memory.

    What a kernel asks of memory at a line is drawn by `ptxlab run --draw LINE`.

    \b
    Examples:
      ptxlab draw fragments mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand a
      ptxlab draw tile 8x64 --type f16 --swizzle 128B -o tile.svg
      ptxlab draw descriptor 0x4000004000010040 64x16
    """


@command.command("fragments")
@click.argument("instruction")
@click.option("--operand", metavar="NAME", help="Draw this one only: a, b, c or d.")
@click.option("--lane", metavar="N", type=click.IntRange(0, 31), help="Highlight this lane.")
@output_option
def fragments_command(instruction: str, operand: str | None, lane: int | None, output: Path | None) -> None:
    """Draw which lane holds which element of the matrices of an instruction.

    INSTRUCTION is mma, wmma, wgmma, tcgen05.ld, tcgen05.st, ldmatrix, stmatrix or movmatrix, with all its modifiers.
    T5.a2 is element number 2 of operand a in lane 5, counted from its first register on and from the low bits up.

    \b
    Examples:
      ptxlab draw fragments mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
      ptxlab draw fragments ldmatrix.sync.aligned.m8n8.x4.shared.b16 --lane 5 -o ldmatrix.svg
    """
    from ptxlab.draw import fragments

    draw(lambda: fragments(instruction, operand, lane), output)


@command.command("tile")
@click.argument("extent", metavar="ROWSxCOLUMNS")
@click.option("--type", default="f16", show_default=True, help="The type of the elements.")
@click.option("--swizzle", metavar="MODE", help="32B, 64B or 128B.")
@click.option("--pitch", metavar="N", type=click.IntRange(min=1), help="Elements from row to row, if rows are padded.")
@output_option
def tile_command(extent: str, type: str, swizzle: str | None, pitch: int | None, output: Path | None) -> None:
    """Draw in which banks of shared memory a tile is, and whether its rows conflict.

    \b
    Examples:
      ptxlab draw tile 8x64 --swizzle 128B
      ptxlab draw tile 16x32 --type f32 --pitch 36 -o padded.svg
    """
    from ptxlab.draw import tile

    draw(lambda: tile(*read_extent(extent), type, swizzle, pitch), output)


@command.command("descriptor")
@click.argument("bits", metavar="BITS")
@click.argument("extent", metavar="ROWSxCOLUMNS")
@click.option("--type", default="f16", show_default=True, help="The type of the elements.")
@click.option("--major", type=click.Choice(["k", "mn"]), default="k", show_default=True,
              help="The side along which 16 bytes run; mn where `trans` is 1.")  # fmt: skip
@output_option
def descriptor_command(bits: str, extent: str, type: str, major: str, output: Path | None) -> None:
    """Draw where the elements lie that a matrix descriptor of wgmma names, and say what it says.

    ROWSxCOLUMNS are those of A, or of B transposed: columns are summed over.

    \b
    Example:
      ptxlab draw descriptor 0x4000004000010040 64x16 --type f16
    """
    from ptxlab.draw import descriptor

    try:
        number = int(bits, 0)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << 64:
        raise click.UsageError(f"`{bits}` is not a number of 64 bits, such as 0x4000004000010040")
    draw(lambda: descriptor(number, *read_extent(extent), type, major), output)


def read_extent(text: str) -> tuple[int, int]:
    """`8x64` as two numbers."""
    found = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if found is None:
        raise click.UsageError(f"`{text}` is not like 8x64, rows and columns")
    return int(found[1]), int(found[2])


def draw(make: Callable[[], Picture], output: Path | None) -> None:
    """Make a picture and show it; what can't be drawn is a usage error."""
    try:
        picture = make()
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    show(picture, output)


def show(picture: Picture, output: Path | None) -> None:
    """Write a picture to a file, or print it."""
    if output is None:
        color = has_color(sys.stdout)
        click.echo(picture.text(color), color=color)
        return
    try:
        picture.save(output)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    click.echo(f"wrote {output}")

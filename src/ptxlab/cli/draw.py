"""`ptxlab draw`: layouts as pictures."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ptxlab.cli.described_maps import Described, read_numbers, read_optional
from ptxlab.cli.findings import has_color

if TYPE_CHECKING:
    from ptxlab.draw import Picture

F = TypeVar("F", bound=Callable[..., Any])

output_option = click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write .svg or .txt."
)


def map_options(function: F) -> F:
    """The options of tensor maps."""
    for option in (
        click.option("--type", default="f16", show_default=True, help="The type of the elements."),
        click.option("--swizzle", metavar="MODE", help="32B, 64B, 96B, 128B, 128B_ATOM_32B, 128B_ATOM_64B, …"),
        click.option("--interleave", metavar="MODE", help="16B or 32B; the innermost dimension counts slices."),
        click.option("--fill", default="zeros", show_default=True, help="zeros or nan: outside of the tensor."),
    ):
        function = option(function)
    return function


@click.group("draw", short_help="Draw layouts in registers and in memory.")
def command() -> None:
    """Draw layouts: matrices in registers, in shared memory and in tensor memory.

    `ptxlab run --draw LINE` draws the memory requests of a kernel at a line.

    \b
    Examples:
      ptxlab draw fragments mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 --operand a
      ptxlab draw tile 8x64 --type f16 --swizzle 128B -o tile.svg
      ptxlab draw descriptor 0x4000004000010040 64x16
    """


@command.command("fragments", short_help="Matrices of an instruction, lane by lane.")
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


@command.command("tile", short_help="The banks of a tile in shared memory.")
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


@command.command("descriptor", short_help="What a matrix descriptor describes.")
@click.argument("bits", metavar="BITS")
@click.argument("extent", metavar="ROWSxCOLUMNS")
@click.option("--type", default="f16", show_default=True, help="The type of the elements.")
@click.option("--major", type=click.Choice(["k", "mn"]), default="k", show_default=True,
              help="The side along which 16 bytes run; mn where `trans` is 1.")  # fmt: skip
@click.option("--target", type=click.Choice(["sm_90a", "sm_100a"]),
              help="Whose descriptor it is: of wgmma or tcgen05. By default, bit 46 says it.")  # fmt: skip
@click.option("--kind", metavar="KIND", help="Of tcgen05: mxf4 packs two e2m1 in a byte, mxf8f6f4 leaves gaps.")
@output_option
def descriptor_command(
    bits: str, extent: str, type: str, major: str, target: str | None, kind: str | None, output: Path | None
) -> None:
    """Draw the core matrices that a matrix descriptor of wgmma or tcgen05 describes, its LBO and its SBO.

    ROWSxCOLUMNS are those of A, or of B transposed: columns are summed over.

    \b
    Examples:
      ptxlab draw descriptor 0x4000004000010040 64x16 --type f16
      ptxlab draw descriptor 0x4000404000010040 16x64 --type e2m1 -o a.svg
    """
    from ptxlab.draw import descriptor

    number = read_number(bits, 64)
    draw(lambda: descriptor(number, *read_extent(extent), type, major, target=target, kind=kind), output)


@command.command("tensor-memory", short_help="Tensor memory that a tcgen05.mma uses.")
@click.argument("instruction")
@click.argument("shape")
@click.option("--d", metavar="ADDRESS", default="0", show_default=True, help="Of D: its column, lane << 16.")
@click.option("--a", metavar="ADDRESS", help="Of A; by default, A is in shared memory.")
@click.option("--scale-a", metavar="ADDRESS", help="Of scale factors of A; by default after D.")
@click.option("--scale-b", metavar="ADDRESS", help="Of scale factors of B; by default after those of A.")
@click.option("--metadata", metavar="ADDRESS", help="Of metadata of a sparse A; by default after all others.")
@output_option
def tensor_memory_command(instruction: str, shape: str, output: Path | None, **addresses: str | None) -> None:
    """Draw which lanes and columns of tensor memory a tcgen05.mma uses, and for what.

    INSTRUCTION has all its modifiers. SHAPE is MxN, or an instruction descriptor.

    \b
    Examples:
      ptxlab draw tensor-memory tcgen05.mma.cta_group::2.kind::f16 128x64
      ptxlab draw tensor-memory tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X 128x64
    """
    from ptxlab.draw import tensor_memory

    given = {name: None if text is None else read_number(text, 32) for name, text in addresses.items()}
    draw(lambda: tensor_memory(instruction, shape, **given), output)  # type: ignore[arg-type]


@command.command("box", short_help="A box of a tensor, before and after a TMA copy.")
@click.argument("extent", metavar="BOX")
@click.option("--tensor", metavar="SHAPE", help="The tensor; by default as large as the box.")
@click.option("--at", metavar="COORDINATES", help="Where the box starts, such as 96,8; by default 0.")
@click.option("--rows", metavar="ROWS", help="The four rows that tile::gather4 gathers, such as 5,1,9,2.")
@click.option("--element-strides", metavar="STEPS", help="Copy only every so many elements, such as 2,1.")
@map_options
@output_option
def box_command(
    extent: str,
    tensor: str | None,
    at: str | None,
    rows: str | None,
    element_strides: str | None,
    output: Path | None,
    **how: Any,
) -> None:
    """Draw a box of a tensor before a TMA copy, and in shared memory after it, swizzled.

    BOX and SHAPE are like 8x64, up to five dimensions, the innermost one last; so are coordinates.

    \b
    Examples:
      ptxlab draw box 8x64 --swizzle 128B
      ptxlab draw box 8x32 --tensor 100x60 --at 96,32 --swizzle 64B -o box.svg
    """
    from ptxlab.draw import box

    def make() -> Picture:
        sizes = read_numbers(extent, "x")
        shape = read_numbers(tensor, "x") if tensor else sizes
        described = Described(shape, steps=read_optional(element_strides), **how)
        return box(described.tiled(sizes), read_optional(at), rows=read_optional(rows))

    draw(make, output)


@command.command("im2col", short_help="The pixels that an im2col copy gathers.")
@click.argument("shape", metavar="NxHxWxC")
@click.option("--pixels", metavar="N", type=int, required=True, help="How many are copied.")
@click.option("--channels", metavar="N", type=int, help="Of each pixel; by default all.")
@click.option("--lower", metavar="CORNER", help="Of the bounding box, such as -1,-1 for h and w; by default 0.")
@click.option("--upper", metavar="CORNER", help="From the end of the image, such as -1,-1; by default 0.")
@click.option("--at", metavar="COORDINATES", help="The first pixel and channel; by default the lower corner.")
@click.option("--offsets", metavar="OFFSETS", help="Of h and w; of im2col::w, a halo and the offset of w.")
@click.option("--mode", type=click.Choice(["im2col", "im2col::w", "im2col::w::128"]), default="im2col")
@click.option("--element-strides", metavar="STEPS", help="Copy only every so many pixels, such as 1,2,2,1.")
@map_options
@output_option
def im2col_command(
    shape: str,
    pixels: int,
    channels: int | None,
    lower: str | None,
    upper: str | None,
    at: str | None,
    offsets: str | None,
    mode: str,
    element_strides: str | None,
    output: Path | None,
    **how: Any,
) -> None:
    """Draw which pixels a TMA copy by im2col gathers, and where in shared memory they are.

    Images are NxWxC, NxHxWxC or NxDxHxWxC; corners, coordinates and offsets are in that order, too.

    \b
    Example:
      ptxlab draw im2col 2x5x6x16 --pixels 16 --lower=-1,-1 --upper=-1,-1 --offsets 1,0
    """
    from ptxlab.draw import im2col

    def make() -> Picture:
        described = Described(read_numbers(shape, "x"), steps=read_optional(element_strides), **how)
        map = described.im2col(channels, pixels, read_optional(lower), read_optional(upper))
        return im2col(map, read_optional(at), read_optional(offsets), mode=mode)

    draw(make, output)


def read_number(text: str, bits: int) -> int:
    """A number of so many bits, decimal or with `0x`."""
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number < 1 << bits:
        example = "0x4000004000010040" if bits == 64 else "64 or 0x100000"
        raise click.UsageError(f"`{text}` is not a number of {bits} bits, such as {example}")
    return number


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


def show(picture: Picture, output: Path | None, says_where: bool = True) -> None:
    """Write a picture to a file, or print it."""
    if output is None:
        color = has_color(sys.stdout)
        width = get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo(picture.text(color, width), color=color)
        return
    try:
        picture.save(output)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    if says_where:
        click.echo(f"wrote {output}")

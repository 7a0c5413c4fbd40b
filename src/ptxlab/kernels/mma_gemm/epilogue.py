"""From the sums of a warp to D: bias, activation, rounding, and stores as wide as they can be.

Lanes hold pairs of a row, which would be stores of 4 bytes. They go through shared memory, where each warp has space
for its tile, so that a lane can store 16 bytes and neighbouring lanes neighbouring ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import Fragment, Pointer, Scalar, b8, b16, bf16, f16, f32, pred, ptx, s32, u32


@dataclass(frozen=True)
class Epilogue:
    """What is done to a sum: whether a bias is added, and which activation follows."""

    bias: bool = False
    activation: str = "none"
    wide: bool = True  # whether rows of D start at multiples of 16 bytes
    edges: bool = True  # whether D is more, or less, than whole tiles
    short: bool = True  # whether it has less rows, or columns, than one tile

    def finish(self, total: Scalar, added: Scalar | None) -> Any:
        """The result of one sum, not rounded yet."""
        return ACTIVATIONS[self.activation](total + added if self.bias else total)


def relu(x: Scalar) -> Scalar:
    """max(x, 0); a NaN stays one."""
    return ptx.max.s32(x, 0) if isinstance(x, s32) else ptx.max.NaN.f32(x, 0.0)


def silu(x: f32) -> f32:
    """x / (1 + exp(-x)) = x/2 · (1 + tanh(x/2))."""
    half = x * 0.5
    return ptx.fma.rn.f32(half, ptx.tanh.approx.f32(half), half)


def gelu(x: f32) -> f32:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), as it is usually approximated."""
    inner = x * ptx.fma.rn.f32(x * x, 0.044715 * 0.7978845608028654, 0.7978845608028654)
    half = x * 0.5
    return ptx.fma.rn.f32(half, ptx.tanh.approx.f32(inner), half)


ACTIVATIONS: dict[str, Any] = {"none": lambda x: x, "relu": relu, "gelu": gelu, "silu": silu}


@dataclass(frozen=True)
class Part:
    """What a warp makes of D: where it starts, what of it to store, and who stores it."""

    d: Pointer
    bias: Pointer
    row: u32
    column: Any
    first_row: u32  # what is before it is another block's
    first_column: u32
    m: u32
    n: u32
    lane: u32
    warp: u32

    def has_row(self, row: u32) -> pred:
        """Whether a row is one to store: not before the first, which would be a huge number, nor after the last."""
        return row - self.first_row < self.m - self.first_row

    def has_column(self, column: u32) -> pred:
        """The same of a column."""
        return column - self.first_column < self.n - self.first_column


def write_part(
    epilogue: Epilogue, fragment: Fragment, accumulators: list[list[list[Scalar]]], part: Part, warps: int
) -> None:
    """Finish the sums of a warp and store them."""
    finished = finish(epilogue, fragment, accumulators, part)
    if epilogue.wide:
        store_wide(epilogue, fragment, finished, part, warps)
    else:
        store_elements(fragment, finished, part)


def finish(epilogue: Epilogue, fragment: Fragment, accumulators: list[list[list[Scalar]]], part: Part) -> Any:
    """The sums with bias and activation."""
    _, column = fragment.first(part.lane)
    column = part.column + column
    finished: Any = [[] for _ in accumulators]
    for j in range(len(accumulators[0])):
        added = [load_bias(epilogue, part, column + (8 * j + right)) if epilogue.bias else None for right in (0, 1)]
        for i, row in enumerate(accumulators):
            values = zip(row[j], fragment.offsets, strict=True)
            finished[i].append([epilogue.finish(total, added[right]) for total, (_, right) in values])
    return finished


def load_bias(epilogue: Epilogue, part: Part, column: u32) -> Scalar:
    """The bias of a column in the type of the sums; zero beyond the last."""
    element = part.bias.element
    found = element(0)
    there = column < part.n if epilogue.short else None
    ptx[f"ld.global.b{element.type.width}"](part.bias.at(column), out=found, when=there)
    if element is f16:
        return ptx.cvt.f32.f16(found)
    if element is bf16:  # the upper half of an f32
        return ptx.mov.b32((b16(0), found), out=f32())
    return found


def rounded(values: list[Scalar], result: type[Scalar]) -> Any:
    """A pair of neighbours as memory has it: one register of 32 bits, or two."""
    if result.type.width == 32:
        return tuple(values)
    return ptx[f"cvt.rn.{result.type.name}x2.f32"](values[1], values[0]).view(u32)


def store_wide(
    epilogue: Epilogue, fragment: Fragment, finished: list[list[list[Scalar]]], part: Part, warps: int
) -> None:
    """Store 16 bytes per lane, through shared memory that is no longer used otherwise."""
    d, lane = part.d, part.lane
    rows, columns, size = 16 * len(finished), 8 * len(finished[0]), d.size
    row_bytes = columns * size
    memory = ptx.dynamic_shared(b8, align=1024)
    tile = ptx.tile(d.element, rows, columns, swizzle=f"{min(row_bytes, 128)}B", copies=warps, at=memory)
    ptx.cp["async"].wait_all()
    ptx.bar.sync(0)
    row, column = fragment.first(lane)
    first = tile.at(row, column, part.warp, below=8)
    for j in range(columns // 8):
        here = first.move(columns=8 * j)
        for i in range(rows // 16):
            for down, pair in ((0, finished[i][j][:2]), (8, finished[i][j][2:])):
                there = here.move(rows=16 * i + down)
                (there.view(u32) if size == 2 else there.v2).store(rounded(pair, d.element))
    ptx.bar.warp.sync(0xFFFFFFFF)
    lanes = row_bytes // 16  # that store one row
    at_once = 32 // lanes
    row, column = lane // lanes, lane % lanes * (16 // size)
    # Rows that are not a multiple of 8 apart have another swizzle, and addresses of their own.
    starts = [tile.at(row + at_once * i, column, part.warp) for i in range(max(8 // at_once, 1))]
    row, column = part.row + row, part.column + column
    target = (d + ptx.mul.wide.u32(row, part.n) + column).view(u32)
    stride = ptx.mul.wide.u32(part.n, at_once * size)
    inside = part.has_column(column) if epilogue.edges else None
    for i in range(rows // at_once):
        chunk = starts[i % len(starts)].move(rows=i // len(starts) * len(starts) * at_once)
        when = None if inside is None else part.has_row(row + at_once * i) & inside
        ptx.st.global_.v4.b32(target, chunk.view(u32).v4.load(), when=when)
        target = ptx.address(target, stride)


def store_elements(fragment: Fragment, finished: list[list[list[Scalar]]], part: Part) -> None:
    """Store each element where it belongs."""
    d = part.d
    row, column = fragment.first(part.lane)
    row, column = part.row + row, part.column + column
    start = d + ptx.mul.wide.u32(row, part.n)
    for i, tiles in enumerate(finished):
        for down in (0, 8):
            line = start + ptx.mul.wide.u32(part.n, 16 * i + down)
            for j, values in enumerate(tiles):
                pair = rounded(values[down // 4 : down // 4 + 2], d.element)
                elements = pair if isinstance(pair, tuple) else ptx.mov.b32(pair, out=(b16(), b16()))
                for right, element in enumerate(elements):
                    there = column + (8 * j + right)
                    inside = part.has_row(row + (16 * i + down)) & part.has_column(there)
                    ptx[f"st.global.b{d.element.type.width}"](line.at(there), element, when=inside)

"""From the sums of a warp to D: bias, activation, rounding, and stores as wide as they can be.

Lanes hold pairs of a row, which would be stores of 4 bytes. They go through shared memory, where each warp has room for
its tile, so that a lane can store 16 bytes and neighbouring lanes neighbouring ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import Value, b8, b16, bf16, f16, ptx, s32, u32


@dataclass(frozen=True)
class Epilogue:
    """What is done to a sum: whether a bias is added, and which activation follows."""

    bias: bool = False
    activation: str = "none"
    wide: bool = True  # whether rows of D begin at multiples of 16 bytes
    edges: bool = True  # whether D is more, or less, than whole tiles
    short: bool = True  # whether it has less rows, or columns, than one tile

    def finish(self, total: Any, added: Any) -> Any:
        """The result of one sum, not rounded yet."""
        return ACTIVATIONS[self.activation](total + added if self.bias else total)


def relu(x: Any) -> Any:
    """max(x, 0); a NaN stays one."""
    return ptx.max.s32(x, 0) if isinstance(x, s32) else ptx.max.NaN.f32(x, 0.0)


def silu(x: Any) -> Any:
    """x / (1 + exp(-x)) = x/2 · (1 + tanh(x/2))."""
    half = x * 0.5
    return ptx.fma.rn.f32(half, ptx.tanh.approx.f32(half), half)


def gelu(x: Any) -> Any:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), as it is usually approximated."""
    inner = x * ptx.fma.rn.f32(x * x, 0.044715 * 0.7978845608028654, 0.7978845608028654)
    half = x * 0.5
    return ptx.fma.rn.f32(half, ptx.tanh.approx.f32(inner), half)


ACTIVATIONS: dict[str, Any] = {"none": lambda x: x, "relu": relu, "gelu": gelu, "silu": silu}


@dataclass(frozen=True)
class Corner:
    """A warp's tile of D: where it begins, the first row and column to store, and the extents of D."""

    row: Any
    column: Any
    first_row: Any
    first_column: Any
    m: Any
    n: Any

    def has_row(self, row: Any) -> Any:
        """Whether a row is one to store: not before the first, which would be a huge number, nor behind the last."""
        return row - self.first_row < self.m - self.first_row

    def has_column(self, column: Any) -> Any:
        """The same of a column."""
        return column - self.first_column < self.n - self.first_column


def write_tile(
    epilogue: Epilogue, fragment: Any, sums: Any, corner: Corner, bias: Any, d: Any, lane: Any, warp: Any, warps: int
) -> None:
    """Finish the sums of a warp and store them."""
    finished = finish(epilogue, fragment, sums, corner, bias, lane)
    if epilogue.wide:
        store_wide(epilogue, fragment, finished, corner, d, lane, warp, warps)
    else:
        store_elements(epilogue, fragment, finished, corner, d, lane)


def finish(epilogue: Epilogue, fragment: Any, sums: Any, corner: Corner, bias: Any, lane: Any) -> Any:
    """The sums with bias and activation."""
    _, column = fragment.first(lane)
    column = corner.column + column
    finished: Any = [[] for _ in sums]
    for j in range(len(sums[0])):
        added = [None, None]
        if epilogue.bias:
            added = [
                load_bias(epilogue, bias, column + (8 * j + right), corner.n, type(sums[0][0][0])) for right in (0, 1)
            ]
        for i, row in enumerate(sums):
            values = zip(row[j], fragment.offsets, strict=True)
            finished[i].append([epilogue.finish(total, added[right]) for total, (_, right) in values])
    return finished


def load_bias(epilogue: Epilogue, bias: Any, column: Any, n: Any, total: type[Value]) -> Any:
    """The bias of a column in the type of the sums; zero beyond the last."""
    element = bias.element
    found = element(0)
    ptx[f"ld.global.b{element.type.width}"](bias.at(column), out=found, when=(column < n) if epilogue.short else None)
    if element is f16:
        return ptx.cvt.f32.f16(found)
    if element is bf16:  # the upper half of an f32
        return ptx.mov.b32((b16(0), found), out=total())
    return found


def rounded(values: Any, result: type[Value]) -> Any:
    """A pair of neighbours as memory has it: one register of 32 bits, or two."""
    if result.type.width == 32:
        return tuple(values)
    return ptx[f"cvt.rn.{result.type.name}x2.f32"](values[1], values[0])


def store_wide(
    epilogue: Epilogue, fragment: Any, finished: Any, corner: Corner, d: Any, lane: Any, warp: Any, warps: int
) -> None:
    """Store 16 bytes a lane, by way of shared memory that nobody else uses any more."""
    rows, columns, size = 16 * len(finished), 8 * len(finished[0]), d.size
    row_bytes = columns * size
    memory = ptx.dynamic_shared(b8, align=1024)
    tile = ptx.tile(d.element, rows, columns, swizzle=f"{min(row_bytes, 128)}B", copies=warps, at=memory)
    ptx.cp["async"].wait_all()
    ptx.bar.sync(0)
    row, column = fragment.first(lane)
    place = tile.at(row, column, warp, below=8)
    for j in range(columns // 8):
        here = place.move(columns=8 * j)
        for i in range(rows // 16):
            for down, pair in ((0, finished[i][j][:2]), (8, finished[i][j][2:])):
                there = here.move(rows=16 * i + down)
                value = rounded(pair, d.element)
                (there.view(u32) if size == 2 else there.vector(2)).store(value.view(u32) if size == 2 else value)
    ptx.bar.warp.sync(0xFFFFFFFF)
    lanes = row_bytes // 16  # that store one row
    at_once = 32 // lanes
    row, column = lane // lanes, lane % lanes * (16 // size)
    starts = [tile.at(row + at_once * i, column, warp) for i in range(max(8 // at_once, 1))]
    target = (d + ptx.mul.wide.u32(corner.row + row, corner.n) + corner.column + column).view(u32)
    stride = ptx.mul.wide.u32(corner.n, at_once * size)
    inside = corner.has_column(corner.column + column) if epilogue.edges else None
    reached = corner.row + row
    for i in range(rows // at_once):
        chunk = starts[i % len(starts)].move(rows=i // len(starts) * len(starts) * at_once)
        when = None if inside is None else corner.has_row(reached + at_once * i) & inside
        ptx.st.global_.v4.b32(target, chunk.view(u32).vector(4).load(), when=when)
        target = ptx.address(target, stride)


def store_elements(epilogue: Epilogue, fragment: Any, finished: Any, corner: Corner, d: Any, lane: Any) -> None:
    """Store each element where it belongs."""
    row, column = fragment.first(lane)
    row, column = corner.row + row, corner.column + column
    start = d + ptx.mul.wide.u32(row, corner.n)
    for i, tiles in enumerate(finished):
        for down in (0, 8):
            line = start + ptx.mul.wide.u32(corner.n, 16 * i + down)
            for j, values in enumerate(tiles):
                pair = rounded(values[down // 4 : down // 4 + 2], d.element)
                parts = pair if isinstance(pair, tuple) else ptx.mov.b32(pair, out=(b16(), b16()))
                for right, part in enumerate(parts):
                    there = column + (8 * j + right)
                    inside = corner.has_row(row + (16 * i + down)) & corner.has_column(there)
                    ptx[f"st.global.b{d.element.type.width}"](line.at(there), part, when=inside)

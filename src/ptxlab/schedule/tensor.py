"""Multiplications by tensor cores: fragments from shared memory, and one `mma` after the other.

Accumulators are the registers of the sum, as all other numbers: `tensorize` cuts loops so that each thread has those
that the instruction gives its lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from ptxlab.author import Pointer, b8, b16, b32, ptx, s32, u32
from ptxlab.author.emit import emit
from ptxlab.author.fragments import Fragment
from ptxlab.measure.block_scaled import FORMATS
from ptxlab.schedule.address import Value
from ptxlab.schedule.copies import offset_in
from ptxlab.schedule.elements import as_words
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.operands import holding, statement_of
from ptxlab.schedule.scaled import copy_factors, packed, scales_at
from ptxlab.schedule.state import LANES, Tensor
from ptxlab.schedule.statements import Let, Reduce, loads
from ptxlab.schedule.tensor_memory import accumulator, commit_slot, issuing
from ptxlab.schedule.tree import BYTES, Leaf
from ptxlab.schedule.writing import Writing

STEP = 32  # bytes along the sum that one instruction takes
MOST_COLUMNS = 256  # of one instruction


def write_multiply(w: Writing, leaf: Leaf, one: Reduce) -> None:
    """Add the product of what is staged to the accumulators."""
    tensor = w.state.tensor_of(one.name)
    assert tensor is not None
    for array in tensor.arrays:
        if array not in w.held:
            said = f"tensor cores read `{array}` from shared memory"
            w.state.illegal(said, f'`stage("{array}", in_="shared")` after `tensorize`')
        if w.state.multiplies_later and not w.held[array][0].stage.swizzle:
            w.state.illegal(f"`{tensor.unit}` reads `{array}` from swizzled rows", '`stage(..., swizzle="128B")`')
    w.comment(f"{one.name} by tensor cores", tensor.step)
    write = {"wgmma": _write_wgmma, "tcgen05": _write_tcgen05}.get(tensor.unit, _write_mma)
    write(w, tensor, one)


def is_first_multiplied(w: Writing, name: str) -> bool:
    """Whether one multiplication computes all of a sum, so that it need not add to what was there."""
    tensor = w.state.tensor_of(name)
    if tensor is None or tensor.unit != "wgmma" or tensor.weight:
        return False
    return all(part.role == "serial" and part.name in w.state.fragments(tensor) for part in w.state.parts[tensor.depth])


def tiles(w: Writing, tensor: Tensor, axis: str, inner: int) -> Iterator[tuple[dict[str, int], int]]:
    """Each tile that a warp has of an axis: the numbers of its loops, and how far on it starts.

    `inner` loops are those of the registers of one tile.
    """
    names = [name for name in w.state.serial([axis]) if name in w.state.fragments(tensor)]
    outer = names[: len(names) - inner]
    parts = [w.state.part(name) for name in outer]
    for numbers in product(*(range(w.state.count(part) or 1) for part in parts)):
        yield (
            dict(zip(outer, numbers, strict=True)),
            sum(n * part.weight for n, part in zip(numbers, parts, strict=True)),
        )


def _accumulators(
    w: Writing, tensor: Tensor, one: Let | Reduce, numbers: dict[str, int], columns: str = ""
) -> list[Value]:
    """Those of a tile of 8 columns, in the order of the instruction: a pair of columns, 8 rows on the next."""
    half, pair = (w.state.serial([axis])[-1] for axis in (tensor.rows, columns or tensor.columns))
    names = [name for name in w.state.serial(one.axes) if name in w.plan.unrolled]
    found = []
    for down, right in product(range(2), range(2)):
        chosen = {**w.addresses.numbers, **numbers, half: down, pair: right}
        found.append(w.made[one.name, tuple(chosen[name] for name in names)])
    return found


class Operand:
    """A matrix in shared memory that a warp reads fragments of."""

    def __init__(self, w: Writing, tensor: Tensor, array: str, axis: str) -> None:
        self.buffer, number = w.held[array]
        self.w, self.tensor, self.axis, self.depth = w, tensor, axis, tensor.depth
        self.across = len(w.algorithm.arrays[array].extents) - 1
        index = next(a for s in w.algorithm.statements for a in loads(s) if a.array == array).index
        self.is_along = index[-1] == Linear.of(self.depth)  # rows in memory run along the sum
        self._check_swizzle(array)
        self.number = number

    def _check_swizzle(self, array: str) -> None:
        """Columns of a swizzled row are reached by an `xor` in a panel, in which what a warp has does not start."""
        state, buffer = self.w.state, self.buffer
        if self.tensor.unit != "mma.sync" or self.is_along or buffer.swizzle is None:
            return
        part = next(p for p in state.parts[self.axis] if p.name in state.fragments(self.tensor))
        size = part.weight * (state.count(part) or 1)
        if buffer.columns % size and size % buffer.columns:
            said = f"a warp has {size} iterations of `{self.axis}`, and `{array}` is swizzled by {buffer.columns}"
            state.illegal(said, "use a multiple of that, or `pad` in place of `swizzle`")

    @property
    def extent(self) -> int:
        """Rows, or columns, that the block multiplies."""
        return self.buffer.shape[self.across - 1 if self.is_along else self.across]

    def check_panels(self, columns: int) -> None:
        """Refuse multiplications of so many columns that start inside of a panel and end in the next."""
        if not self.is_along and self.extent > columns and columns % self.buffer.columns:
            said = f"`{self.tensor.unit}` multiplies {columns} of {self.extent} columns at a time"
            text = f"{said}, and `{self.buffer.stage.array}` has panels of {self.buffer.columns}"
            self.w.state.illegal(text, "use another tile, or a narrower swizzle")

    def lanes(self, fragment: Fragment) -> Value:
        """The address that a lane gives to `ldmatrix` for the first tile."""
        down, right = fragment.row_of(ptx.laneid)
        own = self._own()
        if own is not None:
            down, right = (down + own, right) if self.is_along else (down, right + own)
        return self.w.slot(self.buffer, self.number) + offset_in(self.buffer, down, right)

    def _own(self) -> Value | None:
        """The first row, or column, of what the warp has of the block's tile."""
        w = self.w
        origin = self.buffer.origin[self.across - 1 if self.is_along else self.across]
        inside = w.plan.index(Linear.of(self.axis)) - origin
        if self.tensor.unit == "tcgen05":
            return None  # one thread multiplies for all warps
        lanes = w.state.threads[-2:] if self.tensor.unit == "mma.sync" else w.state.threads[-3:]
        warps = inside.only(name for name in w.state.threads if name not in lanes)
        value = w.addresses.value(warps)
        return None if isinstance(value, int) else value.view(u32)

    def moved(self, lanes: Value, on: int, along: int) -> Pointer:
        """The address of the tile `on` further rows or columns on, and `along` the sum."""
        rows, columns = (on, along) if self.is_along else (along, on)
        buffer, size = self.buffer, BYTES[self.buffer.element]
        offset = rows * buffer.columns * size
        if buffer.swizzle is None:
            return Pointer(b8, "shared", lanes, offset=offset + columns * size)
        panel, within = divmod(columns, buffer.columns)
        offset += panel * (buffer.size // buffer.panels) * size
        if within:
            lanes = lanes ^ within * size
        return Pointer(b8, "shared", lanes, offset=offset)

    def descriptor(self) -> Value:
        """The descriptor of the first rows, or columns, that a warpgroup multiplies."""
        buffer, size, w = self.buffer, BYTES[self.buffer.element], self.w
        rows = prod(buffer.shape[:-1])
        kind = b16 if size == 2 else b8
        at = Pointer(kind, "shared", w.addresses.memory[self.number])
        tile = ptx.tile(kind, rows, buffer.columns, swizzle=buffer.stage.swizzle, copies=buffer.panels, at=at)
        found = ptx.descriptor(tile, transposed=not self.is_along)
        own = self._own()
        if own is not None:
            found = found + self._described_own(own)
        if buffer.slots > 1 and w.ring is not None:
            found = found + ptx.mul.wide.u32(w.ring[0], buffer.size * size >> 4)
        return found

    def _described_own(self, own: Value) -> Value:
        """What the descriptor of a warpgroup's rows, or columns, is more than that of the block's."""
        buffer, size = self.buffer, BYTES[self.buffer.element]
        part = next(p for p in self.w.state.parts[self.axis] if p.name in self.w.state.fragments(self.tensor))
        extent = part.weight * (self.w.state.count(part) or 1)
        if not self.is_along and extent % buffer.columns:
            said = f"a warpgroup has {extent} of `{self.axis}`, and `{buffer.stage.array}` panels of {buffer.columns}"
            self.w.state.illegal(said, "use a multiple of that, or a narrower swizzle")
        each = buffer.columns * size if self.is_along else buffer.size // buffer.panels * size // buffer.columns
        return ptx.mul.wide.u32(own, each >> 4)

    def described(self, on: int, along: int) -> int:
        """What the descriptor of a tile is more than the first: 16 bytes count one."""
        rows, columns = (on, along) if self.is_along else (along, on)
        buffer, size = self.buffer, BYTES[self.buffer.element]
        panel, within = divmod(columns, buffer.columns)
        return (rows * buffer.columns + panel * (buffer.size // buffer.panels) + within) * size >> 4


def _write_mma(w: Writing, tensor: Tensor, one: Reduce) -> None:
    """Load the fragments of 16 elements along the sum, multiply all with all, and so on."""
    right = Operand(w, tensor, tensor.right, tensor.columns)
    element = right.buffer.element
    multiply = ptx.mma.sync.aligned.m16n8k16.row.col.f32[element][element].f32
    fragments = ptx.fragments(multiply)
    left = _Weights(w, tensor, one, element) if tensor.weight else _Loaded(w, tensor, fragments.a)
    single = fragments.b if right.is_along else fragments.b.transposed
    down, across = list(tiles(w, tensor, tensor.rows, 1)), list(tiles(w, tensor, tensor.columns, 1))
    together = 2 if len(across) % 2 == 0 else 1
    b = single.stacked(2) if together == 2 else single
    b_lanes = right.lanes(b)
    for along in range(0, left.depth, STEP // BYTES[element]):
        rows = [left.of(numbers, on, along) for numbers, on in down]
        columns = []
        for _, on in across[::together]:
            found = b.load(right.moved(b_lanes, on, along), out=b32.several(b.registers))
            columns += [found[2 * n : 2 * n + 2] for n in range(together)]
        for n, (numbers, _) in enumerate(down):
            order = list(enumerate(across))
            # Back and forth: each instruction then shares an operand with the one before.
            for j, (others, _) in order if n % 2 == 0 else reversed(order):
                total = _accumulators(w, tensor, one, {**numbers, **others})
                multiply(rows[n], columns[j], total, out=total)


class _Loaded:
    """The left operand in registers, loaded from shared memory."""

    def __init__(self, w: Writing, tensor: Tensor, fragment: Fragment) -> None:
        self.operand = Operand(w, tensor, tensor.left, tensor.rows)
        self.fragment = fragment if self.operand.is_along else fragment.transposed
        self.lanes = self.operand.lanes(self.fragment)
        self.depth = w.state.count(w.state.parts[tensor.depth][-1]) or 0

    def of(self, numbers: dict[str, int], on: int, along: int) -> Sequence[Value]:
        """The registers of 16 rows and 16 elements along the sum."""
        place = self.operand.moved(self.lanes, on, along)
        return self.fragment.load(place, out=b32.several(self.fragment.registers))


def _write_wgmma(w: Writing, tensor: Tensor, one: Reduce) -> None:
    """Start the multiplications of a stage as one group: 64 rows each, and all columns of a warpgroup."""
    right = Operand(w, tensor, tensor.right, tensor.columns)
    element, step = right.buffer.element, STEP // BYTES[right.buffer.element]
    eights = w.state.serial([tensor.columns])[-2]
    count = w.state.count(w.state.part(eights)) or 1
    down, across = list(tiles(w, tensor, tensor.rows, 1)), list(tiles(w, tensor, tensor.columns, 2))
    left = _Weights(w, tensor, one, element) if tensor.weight else _Rows(w, tensor)
    multiply = ptx.wgmma.mma_async.sync.aligned[f"m64n{8 * count}k{step}"].f32[left.element][element]
    b = right.descriptor()
    adds = not is_first_multiplied(w, one.name)
    ptx.wgmma.fence.sync.aligned()
    for along in range(0, left.depth, step):
        for (numbers, i), (others, j) in product(down, across):
            chosen = {**numbers, **others}
            totals = [t for n in range(count) for t in _accumulators(w, tensor, one, {**chosen, eights: n})]
            second = right.described(j, along)
            turned = (*left.turned, int(not right.is_along)) if BYTES[element] == 2 else ()
            multiply(totals, left.of(numbers, i, along), b + second if second else b, adds or along > 0, 1, 1, *turned)
    ptx.wgmma.commit_group.sync.aligned()


def _write_tcgen05(w: Writing, tensor: Tensor, one: Reduce) -> None:
    """Have one thread start the multiplications of a stage: 128 rows each, and up to 256 columns."""
    left, right = Operand(w, tensor, tensor.left, tensor.rows), Operand(w, tensor, tensor.right, tensor.columns)
    elements = left.buffer.element, right.buffer.element
    step = STEP // BYTES[elements[0]]
    depth = (w.state.count(w.state.parts[tensor.depth][-1]) or 0) // packed(elements[0])
    pair = w.state.pair
    rows, columns = left.extent, right.extent * pair
    across = max(n for n in range(16, MOST_COLUMNS + 1, 16) if columns % n == 0)
    right.check_panels(across)
    scaled = FORMATS.get(elements[0])
    kind = scaled.kind if scaled else "f16" if BYTES[elements[0]] == 2 else "f8f6f4"
    more: dict[str, Any] = {"transpose_a": not left.is_along, "transpose_b": not right.is_along}
    multiply = ptx.tcgen05.mma[f"cta_group::{pair}"][f"kind::{kind}"]
    if scaled:
        multiply, elements, more = multiply.block_scale[scaled.size], (scaled.type,) * 2, {"scale": scaled.factor}
    around = [p for p in w.state.parts[tensor.depth] if p.role == "serial" and p.name not in w.state.fragments(tensor)]
    before = w.addresses.value(Linear(tuple((part.name, 1) for part in around)))
    adds = emit("setp.gt.s32", [s32(before) if isinstance(before, int) else before, 0])
    with issuing(w):
        a, b, always = left.descriptor(), right.descriptor(), emit("setp.eq.u32", [u32(0), 0])
        for along in range(0, depth, step):
            if scaled:
                block, within = divmod(along // step * scaled.scale_factors, 4)
                more |= {"a_id": within, "b_id": within}
                if within == 0:
                    factors = copy_factors(w, tensor, block)
            bits = ptx.instruction_descriptor(kind, LANES * pair, across, *elements, blocks=pair, **more)
            for i, j in product(range(0, rows, LANES), range(0, columns, across)):
                first, second = left.described(i, along), right.described(j, along)
                target = accumulator(w, i // LANES * columns + j)
                scales = scales_at(w, factors, i, j) if scaled else ()
                multiply(target, a + first, b + second, bits, *scales, always if along else adds)
        commit_slot(w)


class _Rows:
    """The left operand in shared memory."""

    def __init__(self, w: Writing, tensor: Tensor) -> None:
        self.operand = Operand(w, tensor, tensor.left, tensor.rows)
        self.start = self.operand.descriptor()
        self.element = self.operand.buffer.element
        self.turned = (int(not self.operand.is_along),)
        self.depth = w.state.count(w.state.parts[tensor.depth][-1]) or 0

    def of(self, numbers: dict[str, int], on: int, along: int) -> Value:
        """The descriptor of 64 rows and 32 bytes along the sum."""
        more = self.operand.described(on, along)
        return self.start + more if more else self.start


class _Weights:
    """The left operand in registers: a number of each thread, which is where the accumulators of a product were."""

    turned = ()

    def __init__(self, w: Writing, tensor: Tensor, sum: Reduce, element: str) -> None:
        self.w, self.tensor, self.sum, self.element = w, tensor, sum, element
        self.eights = w.state.serial([tensor.depth])[-2]
        self.depth = 8 * (w.state.count(w.state.part(self.eights)) or 1)
        self.made: dict[tuple[tuple[int, ...], int], list[Value]] = {}
        for numbers, _ in tiles(w, tensor, tensor.rows, 1):
            for number in range(self.depth // 8):
                self.made[tuple(numbers.values()), number] = self._words(numbers, number)

    def _words(self, numbers: dict[str, int], number: int) -> list[Value]:
        """The words of 8 columns: two of a row, and two of 8 rows on; zeros where they are masked."""
        w, tensor = self.w, self.tensor
        one = statement_of(w, tensor.weight)
        values = _accumulators(w, tensor, one, {**numbers, self.eights: number}, tensor.depth)
        half, pair = (w.state.serial([axis])[-1] for axis in (tensor.rows, tensor.depth))
        known = dict(w.addresses.numbers)
        for place, (down, right) in enumerate(product(range(2), range(2))):
            w.addresses.numbers.update({**numbers, self.eights: number, half: down, pair: right})
            when = holding(w, w.addresses.outside(self.sum.over), self.sum.condition)
            if when is not None:
                values[place] = ptx.selp.f32(values[place], 0.0, when)
        w.addresses.numbers.clear()
        w.addresses.numbers.update(known)
        return [word for n in (0, 2) for word in as_words(self.element, values[n : n + 2])]

    def of(self, numbers: dict[str, int], on: int, along: int) -> list[Value]:
        """The registers of the rows of one instruction and 16 elements along the sum."""
        return [word for n in range(2) for word in self.made[tuple(numbers.values()), along // 8 + n]]

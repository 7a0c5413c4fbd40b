"""Tensor memory on expressions: what `tcgen05` loads, stores, copies and multiplies there.

An MMA and a copy read and write when they are issued: a launch in which that makes a difference had a data race.
"""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.equal.codes import NOTHING, ZERO, Codes, is_symbolic, load, node_of, of_nodes
from ptxlab.equal.collectives import product_nodes
from ptxlab.equal.multiplicands import at_bits, chunks, in_shared, scaled, with_zeros
from ptxlab.equal.nodes import Ids
from ptxlab.isa.asynchronous import Mma
from ptxlab.isa.chapters.tcgen05 import SPREAD
from ptxlab.isa.types import type_named
from ptxlab.isa.units.descriptor import CHUNK, tensor_chunk_offset
from ptxlab.isa.units.instruction_descriptor import DEPTHS, KINDS, PAIR, InstructionDescriptor, stored_depth_of
from ptxlab.isa.units.tensor_matrix import a_code, b_code, bits_of, each_of, lane_of
from ptxlab.isa.units.tensor_memory import BAND, COLUMNS, LANES, TWO_BLOCKS
from ptxlab.isa.units.tensor_memory import moved as moved_words
from ptxlab.isa.units.tensor_scale import Factors, describe_factors, word_of
from ptxlab.isa.units.tensor_sparsity import KEPT, Sparsity, choice_of, metadata_address
from ptxlab.isa.units.tensor_tile import lane_rows
from ptxlab.trace.tensor_memory import FEW_ROWS
from ptxlab.trace.tensor_products import mma_of, tile_of

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn
_DESCRIBED = ("instruction_descriptor", "kind", "form", "scale_a", "scale_b", "scale_factors")


def access(turn: Turn) -> None:
    """An instruction on tensor memory."""
    effects = turn.match.effects
    if effects.does("tensor_memory", "load"):
        _load(turn)
    elif effects.does("tensor_memory", "store"):
        _store(turn)
    elif effects.does("tensor_memory", "copy"):
        for thread in turn.threads.tolist():
            _copy(turn, thread)
    elif effects.does("tensor_memory", "multiply"):
        for thread in turn.threads.tolist():
            _multiply(turn, thread)
    else:
        raise turn.refused("what it does to tensor memory is not followed")


# Loads and stores.


@cache
def _words(shape: str, count: int, packed: bool) -> Ids:
    """The lane and the column of each word, or half of one, by thread of a warp and register; for the halves apart."""
    layout = moved_words(shape, count, packed=packed)
    found = np.zeros((2, 32, layout.registers, 2 if packed else 1), np.int64)
    at = np.array(layout.positions)
    row, column = np.divmod(np.arange(len(at)), layout.columns)
    place = (at >> 5 & 31, at >> 10, (at & 31) // 16)
    found[0][place], found[1][place] = row, column
    return found


def _cells(turn: Turn) -> tuple[Ids, Ids, bool]:
    """Lanes and columns of tensor memory, by thread, register and half."""
    m = turn.match.candidate.modifiers
    packed, count = bool(m.pack_16b or m.unpack_16b), int(m.num[1:])
    given = turn.operands
    address = np.array([turn.plain(given["taddr"], thread, "b32") for thread in turn.threads.tolist()])
    own = np.where(address >> 16 >= BAND, 0, turn.threads // 32 % 4 * BAND)
    row, column = _words(m.shape, count, packed)[:, turn.threads % 32]
    if m.shape == "16x32bx2":
        half = count * (2 if packed else 1)
        column = np.where(column >= half, column - half + turn.plain(given["split"], 0), column)
    lane = ((address >> 16) + own)[:, None, None] + row
    return lane % LANES, ((address & 0xFFFF)[:, None, None] + column) % COLUMNS, packed


def _load(turn: Turn) -> None:
    if any(use.operand == "reduced" for use in turn.results):
        raise turn.refused("a load from tensor memory that reduces is not followed")
    lanes, columns, packed = _cells(turn)
    codes = turn.memory.tensor(turn.block)[lanes, columns]
    codes = codes[..., :2].reshape(*codes.shape[:2], 4) if packed else codes[:, :, 0]
    for use in turn.results:
        own, recorded = codes[:, use.index], turn.recorded(use.name)
        if recorded is None:
            continue
        if ((own < 0) & (own != NOTHING) & (own != recorded))[~is_symbolic(own)].any():
            raise turn.refused("it reads what something has written that is not followed")
        turn.write(use.name, np.where(own == NOTHING, recorded, own))


def _store(turn: Turn) -> None:
    lanes, columns, unpacked = _cells(turn)
    given = turn.operands["a"]
    memory = turn.memory.tensor(turn.block)
    for register, one in enumerate(getattr(given, "elements", (given,))):
        codes = turn.read(one, type_named("b32"))
        if unpacked:
            for half in (0, 1):
                memory[lanes[:, register, half], columns[:, register, half], :2] = codes[:, 2 * half : 2 * half + 2]
        else:
            memory[lanes[:, register, 0], columns[:, register, 0]] = codes


def _copy(turn: Turn, thread: int) -> None:
    """`tcgen05.cp`: rows of shared memory of each block of a pair, to one or several groups of lanes."""
    m = turn.match.candidate.modifiers
    if getattr(m, "from"):
        raise turn.refused("a copy that expands elements is not followed")
    given = turn.operands
    address = turn.plain(given["taddr"], thread, "b32")
    descriptor = turn.plain(given["s_desc"], thread)
    rows, bits = (int(number) for number in m.shape.removesuffix("b").split("x"))
    spread, further, copies = SPREAD[m.multicast]
    group, row = 1 if rows == FEW_ROWS else BAND, np.arange(rows)
    at = chunks(tensor_chunk_offset, descriptor, rows, bits // 128, 0)[:, :, None] + np.arange(CHUNK)
    column = ((address & 0xFFFF) + np.arange(bits // 32)) % COLUMNS
    for block in _blocks(turn, m.cta_group == TWO_BLOCKS):
        codes = turn.memory.shared(block)[at].reshape(rows, bits // 32, 4)
        for number in range(copies):
            lane = ((address >> 16) + row % group + row // group * spread + number * further) % LANES
            turn.memory.tensor(block)[lane[:, None], column] = codes


def _blocks(turn: Turn, is_pair: bool) -> list[int]:
    return [turn.block & ~1, turn.block | 1] if is_pair else [turn.block]


# MMAs.


class _Matrices:
    """The operands of an MMA: elements as nodes, a line for each row of A, and for each column of B."""

    def __init__(self, turn: Turn, mma: Mma[int, int]) -> None:
        self.turn, self.mma, self.tile = turn, mma, tile_of(mma)
        self.bits = mma.instruction_descriptor
        self.says = InstructionDescriptor.decode(self.bits, KINDS[mma.kind])
        self.stored = int(stored_depth_of(self.bits, mma.kind))
        self.depth = self.stored * (2 if mma.metadata is not None else 1)
        self.lines = int(self.tile.rows * self.tile.columns // self.tile.width)
        """Lanes of D; beyond `rows` of A, they hold further columns."""
        self.lanes = np.array([int(self.tile.lane + lane_of(m, lane_rows(self.tile))) for m in range(self.lines)])

    def in_shared(self, block: int, descriptor: int, count: int, depth: int, is_b: bool) -> Ids:
        """Rows of A, or columns of B, in shared memory."""
        code = b_code(self.bits, self.mma.kind) if is_b else a_code(self.bits)
        bits, each = int(bits_of(code, self.mma.kind)), int(each_of(self.mma.kind))
        type, major = self.says.btype if is_b else self.says.atype, self.bits >> (16 if is_b else 15) & 1
        start = tensor_chunk_offset, descriptor
        return in_shared(self.turn, block, start, major, np.arange(count), depth, bits, each, type)

    def a_in_tensor_memory(self, block: int) -> Ids:
        """Rows of A in the lanes of D, eight columns each."""
        bits, each = int(bits_of(a_code(self.bits), self.mma.kind)), int(each_of(self.mma.kind))
        size = 128 // each
        first = self.tile.lane
        lane = (self.mma.a >> 16) + self.lanes[:, None] - first
        bit = np.broadcast_to(np.arange(self.stored) * size, (self.lines, self.stored))
        column = (self.mma.a & 0xFFFF) + bit // 32
        bit = bit % 32 + (2 if bits == 4 and size == 8 else 0)
        memory = self.turn.memory.tensor(block)
        return at_bits(self.turn, lambda byte: memory[lane, column, byte], bit, bits, self.says.atype)

    def check(self, codes: Codes) -> None:
        """Refuse words that nothing has written."""
        if (codes == NOTHING).any():
            raise self.turn.refused("it reads tensor memory that nothing has written")

    def sparse(self, block: int, rows: Ids) -> Ids:
        """Rows of a sparse A with its zeros; the metadata are in tensor memory."""
        mma = self.mma
        assert mma.metadata is not None
        codes = self.turn.memory.tensor(block)
        place = int(metadata_address(mma.metadata, self.bits, mma.kind))
        own = codes[:, place & 0xFFFF : (place & 0xFFFF) + 2]
        if (own >= 0).any():
            raise self.turn.refused("the metadata of a sparse matrix depend on the value of an input")
        cells = load(np.where(codes < 0, codes, ZERO).reshape(-1, 4)).astype(np.int64)
        kept = KEPT[mma.kind]
        says = Sparsity(cells=cells, kept=kept, lane=place >> 16, column=place & 0xFFFF,  # type: ignore[arg-type]
                             rows=lane_rows(self.tile), has_long_rows=int(DEPTHS[mma.kind] > 16))  # fmt: skip
        choices = [[int(choice_of(says, m, k)) for k in range(self.stored)] for m in range(len(rows))]
        return with_zeros(self.turn.nodes, rows, np.array(choices), kept, self.says.atype)

    def factors(self, block: int, part: int, rows: Ids, is_b: bool) -> Ids:
        """The scale factors of rows, as a sub-partition has them."""
        found: Any = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
        given: Any = SimpleNamespace(**{name: getattr(self.mma, name) for name in _DESCRIBED},
                                     is_sparse=int(self.mma.metadata is not None))  # fmt: skip
        describe_factors(given, is_b, found)
        word = np.array([int(word_of(found, part, row)) for row in rows.tolist()])[:, None]
        at = int(found.byte) + np.arange(int(found.count))
        word = word + at // 4 * int(found.step)
        codes = self.turn.memory.tensor(block)[word // COLUMNS, word % COLUMNS, at % 4]
        self.check(codes)
        return node_of(self.turn.nodes, codes.reshape(-1, 1), self.says.scale).reshape(codes.shape)


def _multiply(turn: Turn, thread: int) -> None:
    """`tcgen05.mma`: for each block, its lanes of D."""
    match = turn.plan.match
    wide = ("a_desc", "b_desc", "zero_mask")
    mma = mma_of(turn.plan.instruction, match, lambda name, one: turn.plain(one, thread, _type(name, wide)))
    if mma is None or mma.is_shifted or mma.zero_columns:
        raise turn.refused("an MMA that shifts rows of A, or leaves out columns of B, is not followed")
    given = _Matrices(turn, mma)
    pair = _blocks(turn, mma.form == PAIR)
    columns = int(given.tile.columns) // len(pair)
    b = np.concatenate([given.in_shared(one, mma.b, columns, given.depth, True) for one in pair])
    for index, block in enumerate(pair):
        _multiply_block(given, block, b, 4 * index)


def _type(name: str, wide: tuple[str, ...]) -> str:
    return "b64" if name in wide else "pred" if name == "enable_d" else "b32"


def _multiply_block(given: _Matrices, block: int, b: Ids, first_mask: int) -> None:
    turn, mma, tile, says = given.turn, given.mma, given.tile, given.says
    nodes, memory = turn.nodes, turn.memory.tensor(block)
    rows, width = int(tile.rows), int(tile.width)
    if mma.a_in_tensor_memory:
        a = given.a_in_tensor_memory(block)
    else:
        a = given.in_shared(block, mma.a, rows, given.stored, False)[np.arange(given.lines) % rows]
    if mma.metadata is not None:
        a = given.sparse(block, a)
    sign = -1 if says.negate_a != says.negate_b else 1
    text = "scaled-tcgen05" if mma.scale_factors else "tcgen05"
    text += f" {says.atype} {says.btype} {says.dtype} {says.negate_a} {says.negate_b} {says.saturate}"
    text += f" {KINDS[mma.kind]} {mma.scale_factors} {says.scale}" if mma.scale_factors else f" {mma.scale_d}"
    last: tuple[Ids, Ids] | None = None
    size = 2 if says.dtype == "f16" else 4
    for start in range(0, given.lines, BAND if mma.scale_factors else rows):
        chosen = np.arange(start, min(start + (BAND if mma.scale_factors else rows), given.lines))
        own_b = b[start // rows * width : start // rows * width + width]
        own_a = a[chosen]
        if mma.scale_factors:
            part = int(given.lanes[start]) // BAND
            factors = given.factors(block, part, np.arange(width), True)
            if last is None or not np.array_equal(last[0], factors):
                last = factors, scaled(nodes, own_b, factors, f"{says.btype} {says.scale}")
            own_b = last[1]
            own_a = scaled(nodes, own_a, given.factors(block, part, chosen % rows, False), f"{says.atype} {says.scale}")
        lanes = given.lanes[chosen]
        place = lanes[:, None], ((mma.d & 0xFFFF) + np.arange(width)) % COLUMNS
        c = None
        if mma.accumulate:
            given.check(memory[place][..., :size])
            c = node_of(nodes, memory[place][..., :size].reshape(-1, size), says.dtype)
            if mma.scale_d:
                power = np.array([(127 - mma.scale_d) << 23], np.uint64)
                by = np.repeat(nodes.constants(power, "f32", 4), len(c))
                c = nodes.add(nodes.operation("real", "mul", says.dtype, size), c, by)
        made = product_nodes(nodes, text, says.dtype, own_a[None], own_b[None], c, sign)[0]
        masks = [int(one) for one in mma.disabled_lanes[first_mask : first_mask + 4]]
        kept = np.array([not (masks and masks[lane // 32] >> lane % 32 & 1) for lane in lanes.tolist()])
        memory[place[0][kept], place[1], :size] = of_nodes(made[kept].ravel(), size).reshape(kept.sum(), width, size)

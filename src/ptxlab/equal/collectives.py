"""Instructions that the lanes of a warp execute together, on expressions: shuffles, matrices in registers, MMAs."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.equal.codes import ZERO, Codes, load, node_of, of_nodes
from ptxlab.equal.compute import UnknownStepError, bytes_of
from ptxlab.equal.multiplicands import parts_of_bytes, scaled, scales_in_warps, sparse_in_warps
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.isa.chapters.warp import SHUFFLES
from ptxlab.isa.chapters.warp import shuffle as exchange_lanes
from ptxlab.isa.types import Type, type_named
from ptxlab.isa.units.layouts import Layout
from ptxlab.trace.lanes import matrices_of

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn

LANES = 32
ALL = 0xFFFFFFFF
ROW = "#row"
"""In place of a register: the row of a matrix that a lane stores for the others."""


class Warps:
    """The warps of some threads: all lanes of each, whether or not they are among those threads."""

    def __init__(self, turn: Turn, numbers: Ids | None = None) -> None:
        self.turn = turn
        self.numbers = np.unique(turn.threads // LANES) if numbers is None else numbers
        self.lanes = self.numbers[:, None] * LANES + np.arange(LANES)
        """Threads of the block, a line for each warp."""
        self.exists = self.lanes < turn.replay.threads_in_block
        self._clipped = np.minimum(self.lanes, turn.replay.threads_in_block - 1)

    def read(self, operand: Any, type: Type) -> Codes:
        """What the lanes read of an operand: by warp, lane and byte."""
        turn = self.turn
        flat = turn.replay.read(turn.block, self._clipped.ravel(), operand, type)
        return flat.reshape(*self.lanes.shape, -1)

    def registers(self, operand: str) -> Codes:
        """The registers of an operand: by warp, lane, register and byte."""
        turn = self.turn
        assert turn.plan.match is not None
        for given, expected in zip(turn.plan.instruction.operands, turn.plan.match.expected, strict=True):
            if expected.name == operand:
                assert expected.type is not None
                elements = getattr(given, "elements", (given,))
                return np.stack([self.read(one, expected.type) for one in elements], axis=2)
        raise UnknownStepError

    def write(self, results: dict[str, Codes]) -> None:
        """Write results, by warp, lane and byte: to the threads of this turn now, to others when they complete it."""
        turn = self.turn
        place = np.searchsorted(self.numbers, turn.threads // LANES), turn.threads % LANES
        for name, codes in results.items():
            turn.write(name, codes[place], None)
        if len(turn.threads) == self.exists.sum():
            return
        here = set(turn.threads.tolist())
        pending = turn.replay.pending[turn.instruction]
        for warp, line in enumerate(self.lanes.tolist()):
            for lane, thread in enumerate(line):
                if thread < turn.replay.threads_in_block and thread not in here and self._waits(thread, warp):
                    pending[turn.block * turn.replay.threads_in_block + thread] = {
                        name: codes[warp, lane] for name, codes in results.items()
                    }

    def _waits(self, thread: int, warp: int) -> bool:
        """Whether a thread of a warp is at this instruction, too, and completes it next."""
        turn = self.turn
        columns = turn.replay.columns
        own = columns.entries_by(turn.block * turn.replay.threads_in_block + thread)
        entry = int(turn.entries[turn.threads // LANES == self.numbers[warp]].min())
        position = int(np.searchsorted(own, entry))
        if position >= len(own):
            return False
        steps = columns.segment_of(int(own[position])).steps
        return bool(steps) and steps[0][0] == turn.instruction


def take_pending(turn: Turn) -> bool:
    """Give threads the results that were computed when others completed the instruction; whether any are left."""
    pending = turn.replay.pending.get(turn.instruction, {})
    waits = np.array([thread in pending for thread in turn.grid_threads.tolist()], bool)
    if waits.any():
        others = copy(turn)
        others.keep_only(waits)
        others.keep()  # what is as it was recorded: the predicate of a shuffle
        results = [pending.pop(thread) for thread in others.grid_threads.tolist()]
        for name in results[0]:
            others.write(name, np.stack([one[name] for one in results]))
        turn.keep_only(~waits)
    return not waits.all()


# Shuffles.


def shuffle(turn: Turn) -> None:
    """Each lane gets what another has."""
    if not take_pending(turn):
        return
    warps, given = Warps(turn), turn.operands
    values = warps.read(given["a"], type_named("b32"))
    if not (values >= 0).any():
        turn.keep()
        return
    where = [warps.read(given[name], type_named("b32")) for name in ("b", "c")]
    if any((one >= 0).any() for one in where):
        raise turn.refused("the lane that it reads depends on the value of an input")
    numbers = [load(one.reshape(-1, 4)).reshape(one.shape[:2]).tolist() for one in where]
    mode = SHUFFLES.split().index(turn.match.candidate.modifiers.mode)
    sources = np.array([_sources(mode, tuple(b), tuple(c)) for b, c in zip(*numbers, strict=True)])
    moved = np.take_along_axis(values, sources[:, :, None], axis=1)
    results = {use.name: moved for use in turn.results if (use.operand, use.index) == ("d", 0)}
    turn.keep()  # the predicate
    warps.write(results)


@cache
def _sources(mode: int, b: tuple[int, ...], c: tuple[int, ...]) -> tuple[int, ...]:
    """The lane that each lane reads: what comes of it if each brings its own number."""
    exchange = [*range(LANES), *b, *c, *[0] * (2 * LANES)]
    exchange_lanes(exchange, ALL, mode)  # type: ignore[arg-type]
    return tuple(exchange[3 * LANES : 4 * LANES])


# Matrices.


@cache
def places(layout: Layout) -> tuple[Ids, Ids, Ids, int]:
    """The register, lane and byte of each element of matrices, and how many bytes it has."""
    positions = np.array(layout.positions)
    words = max(layout.bits // 32, 1)
    inside = (positions & 31) // 8 if layout.bits < 32 else np.zeros(len(positions), np.int64)
    return (positions >> 10) // words, positions >> 5 & 31, inside, max(layout.bits // 8, 1)


def elements(nodes: Nodes, registers: Codes, layout: Layout, type: str) -> Ids:
    """The nodes of the elements of matrices that warps hold: by warp, row (of all copies) and column."""
    if layout.bits < 8:
        return _small_elements(nodes, registers, layout, type)
    register, lane, inside, size = places(layout)
    at = inside[:, None] + np.arange(size)
    codes = registers[:, lane[:, None], register[:, None], at]
    ids = node_of(nodes, codes.reshape(-1, size), type)
    return ids.reshape(len(registers), layout.copies * layout.rows, layout.columns)


def _small_elements(nodes: Nodes, registers: Codes, layout: Layout, type: str) -> Ids:
    """The same, of elements that are parts of bytes."""
    positions = np.array(layout.positions)
    register, lane, bit = positions >> 10, positions >> 5 & 31, positions & 31
    codes = registers[:, lane, register, bit // 8]
    ids = node_of(nodes, codes.reshape(-1, 1), "b8").reshape(codes.shape)
    return parts_of_bytes(nodes, ids, np.broadcast_to(bit % 8, ids.shape), layout.bits, type).reshape(
        len(registers), layout.rows, layout.columns
    )


def product_nodes(nodes: Nodes, text: str, type: str, a: Ids, b: Ids, c: Ids | None, detail: object = None) -> Ids:
    """The nodes of A·Bᵀ + C, by matrix, row and column; A and B have a row of K elements for each of theirs."""
    count, rows, depth = a.shape
    columns = b.shape[1]
    across = nodes.rows(a.reshape(-1, depth)).reshape(count, rows, 1)
    down = nodes.rows(b.reshape(-1, depth)).reshape(count, 1, columns)
    shape = count, rows, columns
    operands = [np.broadcast_to(across, shape).ravel(), np.broadcast_to(down, shape).ravel()]
    if c is not None:
        operands.append(c.ravel())
    width = bytes_of(type_named(type))
    operation = nodes.operation("matmul", f"{text} {depth}{'' if c is not None else ' alone'}", type, width, detail)
    return nodes.add(operation, *operands).reshape(shape)


def multiply(turn: Turn) -> None:
    """`mma`: each element of D is a node of a row of A, a column of B and an element of C."""
    if not take_pending(turn):
        return
    m, held, operands = turn.match.candidate.modifiers, matrices_of(turn.match), turn.operands
    if not {"a", "b", "c", "d"} <= held.keys():
        raise turn.refused("how matrices are in the registers of this MMA is not known")
    warps = Warps(turn)
    given = {name: warps.registers(name) for name in "abc"}
    nodes, types = turn.nodes, [m.atype or _type(held["a"]), m.btype or _type(held["b"])]
    ctype, dtype = m.ctype or _type(held["c"]), m.dtype or _type(held["d"])
    a, b, c = (
        elements(nodes, given[name], held[name].layout, type) for name, type in zip("abc", (*types, ctype), strict=True)
    )
    if "e" in operands:
        a = sparse_in_warps(warps, a, operands["e"], operands["f"], m, held["a"].layout.bits)
    if "scale_a" in operands:
        blocks = int(m.scale_vec[-2]) if m.scale_vec else 1 if held["a"].layout.bits == 8 else 2
        a, b = (
            scaled(
                nodes, one, scales_in_warps(warps, operands, name, one.shape[1], blocks, m.stype), f"{type} {m.stype}"
            )
            for name, one, type in (("a", a, types[0]), ("b", b, types[1]))
        )
    layout = held["d"].layout
    copies = layout.copies
    a, b, c = (one.reshape(len(one) * copies, -1, one.shape[-1]) for one in (a, b, c))
    family = "scaled-mma" if "scale_a" in operands else "mma"
    text = f"{family} {types[0]} {types[1]} {ctype} {turn.replay.program.module.target} {' '.join(_extra(m))}"
    text += f" {m.stype}{blocks}" if "scale_a" in operands else ""
    made = product_nodes(nodes, text, dtype, a, b, c).reshape(len(warps.numbers), -1)
    warps.write(spread(turn, made, layout, "d"))


def _extra(m: object) -> list[str]:
    """Modifiers that change what an MMA computes."""
    return [name for name in ("satfinite", "xor", "and", "popc") if getattr(m, name, None)]


def _type(held: Any) -> str:
    """The type of the elements of a matrix, from its title."""
    return str(held.title.split()[2].rstrip(","))


def spread(turn: Turn, made: Ids, layout: Layout, operand: str) -> dict[str, Codes]:
    """The registers that hold matrices of nodes, by warp and element."""
    if layout.bits < 8:
        raise UnknownStepError
    size = places(layout)[3]
    return _in_registers(turn, of_nodes(made.ravel(), size).reshape(*made.shape, size), layout, operand)


def _in_registers(turn: Turn, codes: Codes, layout: Layout, operand: str = "d") -> dict[str, Codes]:
    """The registers that hold matrices, by warp, element and byte."""
    register, lane, inside, size = places(layout)
    names = {use.index: use.name for use in turn.results if use.operand == operand}
    found = np.full((len(codes), LANES, max(names) + 1, max(layout.bits // 8, 4)), ZERO)
    found[:, lane[:, None], register[:, None], inside[:, None] + np.arange(size)] = codes
    return {name: found[:, :, index] for index, name in names.items()}


def _from_registers(registers: Codes, layout: Layout) -> Codes:
    """The elements of matrices in registers: by warp, element and byte."""
    register, lane, inside, size = places(layout)
    return registers[:, lane[:, None], register[:, None], inside[:, None] + np.arange(size)]


def _in_rows(layout: Layout) -> tuple[Ids, Ids]:
    """The lane that has the address of each element's row, and the bytes of the element in that."""
    word, owner, bit = (np.array(one) for one in zip(*(p for _, _, p in layout.elements()), strict=True))
    return owner[:, None], (4 * word + bit // 8)[:, None] + np.arange(layout.bits // 8)


# Matrices in memory.


def load_matrices(turn: Turn) -> None:
    """`ldmatrix`: rows that lanes have the addresses of."""
    turn.check_addresses()
    if not take_pending(turn):
        return
    ((name, held),) = matrices_of(turn.match).items()
    if held.owners is None:
        _load_fragment(turn, name, held.layout)
        return
    if held.layout.bits != held.owners.bits or held.layout.bits < 8:
        raise UnknownStepError
    warps = Warps(turn)
    rows = _rows_of(warps, 16)
    owner, source = _in_rows(held.owners)
    if not (rows >= 0).any():
        turn.keep()
        return
    warps.write(_in_registers(turn, rows[:, owner, source], held.layout))


def _located(warps: Warps, name: str, layout: Layout) -> tuple[Ids, Ids, Ids]:
    """Where `wmma` has the elements of a fragment: state spaces, owners and addresses, by warp and element."""
    turn, m = warps.turn, warps.turn.match.candidate.modifiers
    if layout.bits < 8:
        raise UnknownStepError
    row, column = (np.array(one) for one in zip(*((r, c) for r, c, _ in layout.elements()), strict=True))
    lines, along = (row, column) if (m.layout == "row") == (name != "b") else (column, row)
    stride, first = turn.operands.get("stride"), warps.lanes[:, 0]
    steps = [int(along.max()) + 1 if stride is None else turn.plain(stride, int(one), "u32") for one in first]
    base = [turn.plain(turn.operands["p"], int(one)) for one in first]
    address = np.array(base)[:, None] + (np.array(steps)[:, None] * lines + along) * (layout.bits // 8)
    threads = np.broadcast_to(turn.block * turn.replay.threads_in_block + first[:, None], address.shape)
    named = m.space.split("::")[0] if m.space else "generic"
    return turn.replay.trace.accesses.resolve(named, address.ravel().astype(np.int64), threads.ravel())


def _load_fragment(turn: Turn, name: str, layout: Layout) -> None:
    """`wmma.load`"""
    warps = Warps(turn)
    codes = turn.memory.load(*_located(warps, name, layout), layout.bits // 8)
    warps.write(_in_registers(turn, codes.reshape(len(warps.numbers), -1, layout.bits // 8), layout))


def _store_fragment(turn: Turn, name: str, layout: Layout) -> None:
    """`wmma.store`"""
    if not take_pending(turn):
        return
    warps = Warps(turn)
    codes = _from_registers(warps.registers("a"), layout)
    turn.memory.store(*_located(warps, name, layout), codes.reshape(-1, layout.bits // 8))
    warps.write({})


def _rows_of(warps: Warps, size: int) -> Codes:
    """The rows that lanes have noted the addresses of: by warp, lane and byte."""
    turn = warps.turn
    noted = turn.replay.addresses[turn.instruction]
    first = turn.block * turn.replay.threads_in_block
    found = np.full((*warps.lanes.shape, size), ZERO)
    threads = [first + thread for thread in warps.lanes.ravel().tolist() if first + thread in noted]
    address = np.array([noted[thread][1] for thread in threads], np.int64)
    own = np.array(threads, np.int64)
    space, owner, at = turn.replay.trace.accesses.resolve(noted[threads[0]][0], address, own)
    own -= first
    found[np.searchsorted(warps.numbers, own // LANES), own % LANES] = turn.memory.load(space, owner, at, size)
    return found


def store_matrices(turn: Turn) -> None:
    """`stmatrix`: each lane stores a row, which it has of the registers of all."""
    turn.check_addresses()
    ((name, held),) = matrices_of(turn.match).items()
    if held.layout.bits < 8:
        raise UnknownStepError
    if held.owners is None:
        _store_fragment(turn, name, held.layout)
        return
    everyone = turn.entries, turn.threads, turn.grid_threads
    if take_pending(turn):
        warps = Warps(turn)
        registers = warps.registers("a")
        rows = np.full((len(registers), LANES, 16), ZERO)
        owner, target = _in_rows(held.owners)
        rows[:, owner, target] = _from_registers(registers, held.layout)
        warps.write({ROW: rows})
    turn.entries, turn.threads, turn.grid_threads = everyone
    found = turn.access("store")
    if found is not None:
        _, space, own, address, size = found
        turn.memory.store(space, own, address, turn.replay.register(turn.block, ROW)[turn.threads][:, :size])


def move_matrices(turn: Turn) -> None:
    """`movmatrix`: elements change their places in the registers of the warp."""
    if not take_pending(turn):
        return
    held = matrices_of(turn.match)
    if held.keys() != {"a", "d"}:
        raise UnknownStepError
    warps = Warps(turn)
    registers = warps.registers("a")
    if not (registers >= 0).any():
        turn.keep()
        return
    warps.write(_in_registers(turn, _from_registers(registers, held["a"].layout), held["d"].layout))

"""Where results come from of instructions that the lanes of a warp execute together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.isa.chapters.warp import SHUFFLES, shuffle
from ptxlab.isa.held import Held
from ptxlab.isa.operation import Operation
from ptxlab.isa.units.layouts import Layout
from ptxlab.trace.accesses import NAMES
from ptxlab.trace.program import RecordedProgram

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder
    from ptxlab.trace.origin import Origin, Part


@dataclass(frozen=True)
class Executed:
    """An instruction as a thread executed it: in which entry it was complete, and when."""

    thread: int
    entry: int
    instruction: int
    key: int

    @property
    def lane(self) -> int:
        return self.thread % 32


def matrices_of(match: Match | None) -> dict[str, Held]:
    """The matrices that an instruction holds in registers, by operand."""
    holds = getattr(match and match.form.semantics, "holds", None)
    if match is None or holds is None:
        return {}
    return {held.operand: held for held in holds(match.candidate.modifiers)}


def sources(finder: Finder, step: Executed, index: int, part: Part) -> list[Origin] | None:
    """The sources of a result in other lanes, or of some bytes of it; None: they are in the thread itself."""
    match = finder.program.match(step.instruction)
    if match is None:
        return None
    if match.effects.computes is Operation.SHUFFLE:
        return _shuffled(finder, step, part)
    held = matrices_of(match)
    if {"a", "b", "d"} <= held.keys():
        return _multiplied(finder, step, index, part, held)
    if "d" in held and held["d"].owners is not None:
        return _from_rows(finder, step, index, part, held["d"])
    if {"a", "d"} == held.keys() and not match.effects.steps:
        return _moved(finder, step, index, held["a"].layout, held["d"].layout)
    if match.effects.converges and not match.effects.accesses and not match.effects.steps:
        return _of_all_lanes(finder, step)
    return None


def registers_of(finder: Finder, instruction: int, operand: str) -> dict[int, str]:
    """The registers of an operand by their positions in it."""
    role = "result" if operand == "d" else "value"
    return {use.index: use.name for use in finder.uses(instruction) if use.operand == operand and use.role == role}


def packed(finder: Finder, step: Executed, part: Part) -> list[Origin] | None:
    """Of numbers that were packed into one register, those in some bytes of it; None: all operands matter."""
    match = finder.program.match(step.instruction)
    if match is None or part is None or match.effects.computes not in (Operation.PACKING, Operation.COPY):
        return None
    values = [use for use in finder.uses(step.instruction) if use.role == "value"]
    results = [use for use in finder.uses(step.instruction) if use.role == "result"]
    if len(values) != 2 or len(results) != 1:
        return None
    function = finder.columns.segment_of(step.entry).function
    half = finder.program.type_of(function, results[0].name).width // 16
    low, high = values if match.effects.computes is Operation.COPY else values[::-1]  # a packing has the first above
    found = [(low, 0)] if part[0] < half else []
    found += [(high, half)] if sum(part) > half else []
    return [finder.of_register(step.thread, use.name, step.key) for use, _ in found]


def elements_of(program: RecordedProgram, instruction: int, operand: str) -> int:
    """How many elements an operand has."""
    match = program.match(instruction)
    if match is None:
        return 1
    for expected, given in zip(match.expected, program.instructions[instruction][1].operands, strict=True):
        if expected.name == operand:
            return len(given.elements) if isinstance(given, ir.Vector) else max(expected.count, 1)
    return 1


def in_lane(finder: Finder, step: Executed, lane: int, name: str, part: Part = None) -> Origin | None:
    """The origin of a register of another lane, when both executed an instruction together."""
    peer = finder.peer(step, lane)
    return None if peer is None else finder.of_register(peer[0], name, peer[1], "value", part)


def _shuffled(finder: Finder, step: Executed, part: Part) -> list[Origin]:
    """The lane that a value was read of: `shuffle` itself says which, if each lane gives its own number."""
    exchange = [*range(32), *[0] * 128]
    mode = SHUFFLES.split().index(_modifiers(finder, step).mode)
    for lane in range(32):
        peer = finder.peer(step, lane)
        if peer is not None:
            for word, operand in ((32, "b"), (64, "c")):
                exchange[word + lane] = finder.operand(peer[0], step.instruction, operand, peer[1]) or 0
    shuffle(exchange, 0xFFFFFFFF, mode)  # type: ignore[arg-type]
    chosen = int(exchange[96 + step.lane])
    name = registers_of(finder, step.instruction, "a").get(0)
    found = None if name is None else in_lane(finder, step, chosen, name, part)
    own = [use for use in finder.uses(step.instruction) if use.operand in ("b", "c") and use.role == "value"]
    return [
        *([found] if found else []),
        *(finder.of_register(step.thread, use.name, step.key, "address") for use in own),
    ]


def _modifiers(finder: Finder, step: Executed):  # type: ignore[no-untyped-def]
    match = finder.program.match(step.instruction)
    assert match is not None
    return match.candidate.modifiers


def _of_all_lanes(finder: Finder, step: Executed) -> list[Origin]:
    """A vote, a reduction: all lanes have a part in the result."""
    found = []
    for use in finder.uses(step.instruction):
        if use.role == "value":
            found += [one for lane in range(32) if (one := in_lane(finder, step, lane, use.name)) is not None]
    return found


def _width(layout: Layout) -> int:
    """How many registers of 32 bits count as one register of an operand."""
    return max(layout.bits // 32, 1)


def words_in(layout: Layout) -> list[tuple[int, int, int, int]]:
    """The lane, register, row and column of each register's first element."""
    each, found = _width(layout), []
    for number, position in enumerate(layout.positions):
        if position & 31 == 0:
            row, column = divmod(number, layout.columns)
            found.append((position >> 5 & 31, (position >> 10) // each, row % layout.rows, column))
    return found


def elements_in(layout: Layout, lane: int, register: int, part: Part = None) -> list[tuple[int, int, int]]:
    """The copy, row and column of the elements in a register of a lane, or in some bytes of it."""
    each = _width(layout)
    found = []
    low, high = (0, 32) if part is None or each > 1 else (8 * part[0], 8 * sum(part))
    for number, position in enumerate(layout.positions):
        bit = position & 31
        if (
            position >> 5 & 31 == lane
            and (position >> 10) // each == register
            and bit < high
            and bit + layout.bits > low
        ):
            row, column = divmod(number, layout.columns)
            found.append((row // layout.rows, row % layout.rows, column))
    return found


def _multiplied(finder: Finder, step: Executed, index: int, part: Part, held: dict[str, Held]) -> list[Origin]:
    """A product: the row of A, the column of B, and the element of C."""
    places: dict[tuple[str, int, int], None] = {}  # operand, register, lane
    a, b = held["a"].layout, held["b"].layout
    for copy, row, column in elements_in(held["d"].layout, step.lane, index, part):
        for k in range(a.columns):
            places["a", *_place(a, row, k, copy)] = None
        for k in range(b.columns):
            line = column if held["b"].is_transposed else k
            if line < b.rows:
                places["b", *_place(b, line, k, copy if b.copies > 1 else 0)] = None
    places["c", index, step.lane] = None
    found = []
    for operand, register, lane in places:
        name = registers_of(finder, step.instruction, operand).get(register)
        source = None if name is None else in_lane(finder, step, lane, name)
        if source is not None:
            found.append(source)
    extra = [use for use in finder.uses(step.instruction) if use.role == "value" and use.operand not in ("a", "b", "c")]
    return found + [finder.of_register(step.thread, use.name, step.key) for use in extra]


def _place(layout: Layout, row: int, column: int, copy: int) -> tuple[int, int]:
    register, lane, _ = layout.position(row, column, copy if layout.copies > 1 else 0)
    return register // _width(layout), lane


def _from_rows(finder: Finder, step: Executed, index: int, part: Part, held: Held) -> list[Origin]:
    """A load of matrices: the elements, in the rows that other lanes have the addresses of."""
    owners = held.owners
    assert owners is not None
    found = []
    for copy, row, column in elements_in(held.layout, step.lane, index, part):
        word, owner, bit = owners.position(row, column, copy)
        peer = finder.peer(step, owner)
        if peer is None:
            continue
        entry, _ = finder.columns.locate(peer[1] // 2)
        for access in finder.trace.accesses_at(entry, step.instruction):
            at, size = access.address + 4 * word + bit // 8, max(owners.bits // 8, 1)
            found.append(finder.of_memory(NAMES.index(access.space), access.owner, at, size, step.key))
        uses = [use for use in finder.uses(step.instruction) if use.role == "address"]
        found += [finder.of_register(peer[0], use.name, peer[1], "address") for use in uses]
    return found


def _moved(finder: Finder, step: Executed, index: int, source: Layout, target: Layout) -> list[Origin]:
    """Elements that change their places in the registers of the warp."""
    found = []
    for copy, row, column in elements_in(target, step.lane, index):
        register, lane, _ = source.position(row, column, copy)
        name = registers_of(finder, step.instruction, "a").get(register)
        one = None if name is None else in_lane(finder, step, lane, name)
        found += [] if one is None else [one]
    return found


def stored(finder: Finder, step: Executed, offset: int, size: int) -> list[Origin] | None:
    """The sources of bytes of a row that a lane stores for others; None: it stores its own."""
    held = matrices_of(finder.program.match(step.instruction)).get("a")
    if held is None or held.owners is None:
        return None
    owners, layout = held.owners, held.layout
    places: dict[tuple[int, int, Part], None] = {}
    each = max(owners.bits // 8, 1)
    for number, position in enumerate(owners.positions):
        first = (position >> 10) * 4 + (position & 31) // 8
        if position >> 5 & 31 == step.lane and first < offset + size and first + each > offset:
            register, lane = layout.positions[number] >> 10, layout.positions[number] >> 5 & 31
            places[register, lane, ((layout.positions[number] & 31) // 8, each)] = None
    names = registers_of(finder, step.instruction, "a")
    found = [in_lane(finder, step, lane, names[at], part) for at, lane, part in places if at in names]
    return [one for one in found if one is not None]

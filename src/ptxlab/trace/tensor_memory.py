"""Where words of tensor memory come from: an MMA, a store by a warp, or a copy. Metadata is not followed."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.isa.chapters.tcgen05 import SPREAD
from ptxlab.isa.chapters.tcgen05_scaled import count_factors
from ptxlab.isa.units.descriptor import CHUNK, MN_MAJOR, tensor_chunk_offset
from ptxlab.isa.units.instruction_descriptor import KINDS, PAIR, PLAIN, bytes_of_row
from ptxlab.isa.units.tensor_matrix import a_code, b_code, bits_of, each_of, lane_of
from ptxlab.isa.units.tensor_memory import BAND, LANES, TWO_BLOCKS
from ptxlab.isa.units.tensor_scale import Factors, describe_factors, word_of, words_of
from ptxlab.isa.units.tensor_tile import Tile, describe_tile, lane_rows
from ptxlab.trace.accesses import SHARED
from ptxlab.trace.lanes import Executed, elements_in, matrices_of, registers_of

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder
    from ptxlab.trace.origin import Origin, Part

COLUMNS_OF_A = 8  # of tensor memory, for a row
COLUMNS = 512
FEW_ROWS = 4  # of a copy: each goes to a sub-partition of its own
Word = tuple[int, int, int]
"""The block, the lane and the column of a word."""


@dataclass(frozen=True)
class Words:
    """What a writer of tensor memory was given: the step, and its address there."""

    step: Executed
    kind: str
    """`store`, `multiply` or `copy`."""
    address: int


def loaded(finder: Finder, step: Executed, index: int, part: Part) -> list[Origin] | None:
    """The sources of a register that was loaded from tensor memory; None: it was not."""
    match = finder.program.match(step.instruction)
    if match is None or not match.effects.does("tensor_memory", "load"):
        return None
    address = address_of(finder, step, "taddr")
    if address is None:
        return []
    block = step.thread // finder.accesses.threads_in_block
    lane, column = routed(finder, step, address) >> 16, address & 0xFFFF
    layout = matrices_of(match)["d"].layout
    return [
        of_word(finder, block, lane + row, column + right, step.key)
        for _, row, right in elements_in(layout, step.lane, index, part)
    ]


def routed(finder: Finder, step: Executed, address: int) -> int:
    """The address that a warp accesses by one that names no lane."""
    if address >> 16 >= BAND:
        return address
    return address + (step.thread % finder.accesses.threads_in_block // 32 % 4 * BAND << 16)


def address_of(finder: Finder, step: Executed, operand: str) -> int | None:
    """An address in tensor memory as an instruction was given it."""
    match = finder.program.match(step.instruction)
    assert match is not None
    for expected, given in zip(match.expected, finder.program.instructions[step.instruction][1].operands, strict=True):
        if expected.name == operand and isinstance(given, ir.Address):
            base = finder.operand(step.thread, step.instruction, operand, step.key)
            return None if base is None else base + given.offset & 0xFFFFFFFF
    return None


def of_word(finder: Finder, block: int, lane: int, column: int, key: int) -> Origin:
    """The origin of a word of tensor memory of a block before `key`."""
    what = f"tensor memory of block {block}, lane {lane}, column {column}"
    for words in reversed(writers(finder, block)):
        if words.step.key >= key:
            continue
        found = WRITERS[words.kind](finder, words, (block, lane, column))
        if found is not None:
            at = words.step.instruction
            line, text = finder.program.line(at), finder.program.text(at)
            return finder.node(what, None, words.step.key // 2, line, text, find=found)
    return finder.node(what, None, None, 0, "nothing that is recorded has written it")


def writers(finder: Finder, block: int) -> list[Words]:
    """The instructions that write tensor memory of a block, as they were executed, in order."""
    if block not in finder.tensor_writers:
        found: list[Words] = []
        for number in range(len(finder.program.instructions)):
            match = finder.program.match(number)
            kind = next(
                (one for one in WRITERS if match is not None and match.effects.does("tensor_memory", one)), None
            )
            if kind is None:
                continue
            is_store = kind == "store"
            blocks = {block} if is_store else {block, block ^ 1}
            for thread in finder.columns.threads:
                if thread // finder.accesses.threads_in_block not in blocks or (is_store and thread % 32):
                    continue
                for key in finder.completions(thread, number):
                    entry, _ = finder.columns.locate(key // 2)
                    step = Executed(thread, entry, number, key)
                    address = address_of(finder, step, "d" if kind == "multiply" else "taddr")
                    if address is not None:
                        found.append(Words(step, kind, address))
        finder.tensor_writers[block] = sorted(found, key=lambda one: one.step.key)
    return finder.tensor_writers[block]


def _in_store(finder: Finder, words: Words, place: Word) -> Any:
    """What finds the register that a warp stored to a word; None: it did not."""
    step = words.step
    _, lane, column = place
    layout = matrices_of(finder.program.match(step.instruction))["a"].layout
    row, right = lane - (routed(finder, step, words.address) >> 16), column - (words.address & 0xFFFF)
    if not (0 <= row < layout.rows and 0 <= right < layout.columns):
        return None
    register, owner, _ = layout.position(row, right)
    name = registers_of(finder, step.instruction, "a").get(register)
    peer = finder.peer(step, owner)
    if name is None or peer is None:
        return None
    return lambda: [finder.of_register(peer[0], name, peer[1])]


def tile_of(finder: Finder, words: Words, block: int) -> tuple[Any, Any] | None:
    """An MMA, and the tile of tensor memory of a block that it writes; None if it writes none there."""
    step = words.step
    match = finder.program.match(step.instruction)
    assert match is not None
    own = step.thread // finder.accesses.threads_in_block
    is_pair = TWO_BLOCKS in finder.program.instructions[step.instruction][1].opcode.modifiers
    bits = finder.operand(step.thread, step.instruction, "idesc", step.key)
    if bits is None or (own != block and not is_pair):
        return None
    kind = KINDS.index(match.candidate.modifiers.kind.removeprefix("kind::"))
    is_sparse = int(any(expected.name == "sp_meta" for expected in match.expected))
    mma: Any = SimpleNamespace(instruction_descriptor=bits, kind=kind, form=PAIR if is_pair else PLAIN, d=words.address,
                               is_sparse=is_sparse)  # fmt: skip
    tile: Any = Tile(cells=None, first=0, lane=0, rows=0, columns=0, width=0, disabled_lanes=())  # type: ignore[arg-type]
    describe_tile(mma, tile)
    return mma, tile


def lanes_of(tile: Any) -> list[int]:
    """The lanes of a tile, by the rows that they hold, one after the other."""
    return [
        tile.lane + int(lane_of(m, lane_rows(tile))) for m in range(min(tile.rows * tile.columns // tile.width, LANES))
    ]


def _in_copy(finder: Finder, words: Words, place: Word) -> Any:
    """What finds the bytes of shared memory that were copied to a word; None: they were not."""
    step = words.step
    block, lane, column = place
    match = finder.program.match(step.instruction)
    descriptor = finder.operand(step.thread, step.instruction, "s_desc", step.key)
    assert match is not None
    is_pair = TWO_BLOCKS in finder.program.instructions[step.instruction][1].opcode.modifiers
    if descriptor is None or (step.thread // finder.accesses.threads_in_block != block and not is_pair):
        return None
    m = match.candidate.modifiers
    rows, bits = (int(number) for number in m.shape.removesuffix("b").split("x"))
    spread, further, copies = SPREAD[m.multicast]
    group = 1 if rows == FEW_ROWS else BAND
    right, first = column - (words.address & 0xFFFF), words.address >> 16
    if not 0 <= right < bits // 32:
        return None
    for row in range(rows):
        if lane in [first + row % group + row // group * spread + index * further for index in range(copies)]:
            start = int(tensor_chunk_offset(descriptor, row, right // 4, 0))
            start, size = (start, CHUNK) if getattr(m, "from") else (start + right % 4 * 4, 4)
            uses = [use for use in finder.uses(step.instruction) if use.role in ("value", "address", "guard")]
            return lambda: [
                finder.of_memory(SHARED, block, start, size, step.key),
                *(finder.of_register(step.thread, use.name, step.key, "address") for use in uses),
            ]
    return None


def _in_mma(finder: Finder, words: Words, place_: Word) -> Any:
    """What finds the row of A and the column of B of a word of D; None: the MMA does not write it."""
    block, lane, column = place_
    found = tile_of(finder, words, block)
    if found is None:
        return None
    mma, tile = found
    right = column - (words.address & 0xFFFF)
    lanes = lanes_of(tile)
    if not 0 <= right < tile.width or lane not in lanes:
        return None
    m = lanes.index(lane)
    own = words.step.thread // finder.accesses.threads_in_block
    place = m % tile.rows, m // tile.rows * tile.width + right
    return lambda: _of_mma(finder, words.step, mma, tile, (block, own, lane, column, *place))


def _of_mma(finder: Finder, step: Executed, mma: Any, tile: Any, place: tuple[int, ...]) -> list[Origin]:
    """The row of A, the column of B, and what was in D before."""
    block, own, lane, column, row, n = place
    bits, kind = mma.instruction_descriptor, mma.kind
    found: list[Origin] = []
    if address_of(finder, step, "a") is None:
        found += _line(finder, step, "a_desc", block, row, (bits_of(a_code(bits), kind), kind, bits >> 15 & 1, bits))
    else:
        start = (address_of(finder, step, "a") or 0) & 0xFFFF
        found += [of_word(finder, block, lane, start + at, step.key) for at in range(COLUMNS_OF_A)]
    halves = tile.columns // 2 if mma.form == PAIR else tile.columns
    holder = block if mma.form != PAIR else own & ~1 | n // halves
    how = bits_of(b_code(bits, kind), kind), kind, bits >> 16 & 1, bits
    found += _line(finder, step, "b_desc", holder, n % halves, how)
    if any(expected.name == "scale_a" for expected in _match(finder, step).expected):
        for name, line in (("scale_a", row), ("scale_b", n)):
            found += _factors(finder, step, mma, name, (block, lane // BAND, line))
    if _adds_d(finder, step):
        found.append(of_word(finder, block, lane, column, step.key))
    uses = [use for use in finder.uses(step.instruction) if use.role in ("value", "address", "guard")]
    return found + [finder.of_register(step.thread, use.name, step.key, "address") for use in uses]


def _adds_d(finder: Finder, step: Executed) -> bool:
    """Whether an MMA adds to what is in D."""
    enabled = finder.operand(step.thread, step.instruction, "enable_d", step.key)
    given = dict(
        zip(
            (expected.name for expected in _match(finder, step).expected),
            finder.program.instructions[step.instruction][1].operands,
            strict=True,
        )
    )
    return enabled is not None and bool(enabled) != isinstance(given["enable_d"], ir.Negated)


def _factors(finder: Finder, step: Executed, mma: Any, name: str, place: tuple[int, int, int]) -> list[Origin]:
    """The scale factors of a row of A, or of a column of B, from the copy of a sub-partition."""
    block, part, line = place
    address = address_of(finder, step, name)
    if address is None:
        return []
    mma.scale_a = mma.scale_b = address
    mma.scale_factors = count_factors(_match(finder, step).candidate.modifiers)
    factors: Any = Factors(address=0, rows=0, byte=0, count=0, format=0, step=0)
    describe_factors(mma, name == "scale_b", factors)
    lane, column = divmod(int(word_of(factors, part, line % int(factors.rows))), COLUMNS)
    words = range(int(words_of(factors)))
    return [of_word(finder, block, lane, column + word * int(factors.step), step.key) for word in words]


def _match(finder: Finder, step: Executed) -> Match:
    match = finder.program.match(step.instruction)
    assert match is not None
    return match


def _line(
    finder: Finder, step: Executed, operand: str, block: int, row: int, how: tuple[int, int, int, int]
) -> list[Origin]:
    """A row of A, or a column of B, in shared memory of a block."""
    size, kind, major, bits = how
    descriptor = finder.operand(step.thread, step.instruction, operand, step.key)
    if descriptor is None:
        return []
    each = int(each_of(kind))
    if major == MN_MAJOR:
        inside, depth = row % each * size // 8, 2 * each
        places = [
            (int(tensor_chunk_offset(descriptor, k, row // each, major)) + inside, max(size // 8, 1))
            for k in range(depth)
        ]
    else:
        chunks = int(bytes_of_row(bits, kind)) // CHUNK
        places = [(int(tensor_chunk_offset(descriptor, row, chunk, major)), CHUNK) for chunk in range(chunks)]
    return [finder.of_memory(SHARED, block, start, length, step.key) for start, length in places]


# What finds the sources of a word, by what its writers do with tensor memory.
WRITERS = {"store": _in_store, "multiply": _in_mma, "copy": _in_copy}

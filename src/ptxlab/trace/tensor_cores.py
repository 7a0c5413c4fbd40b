"""Where results come from of tensor cores that read shared memory, or tensor memory, themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.isa.units.descriptor import CHUNK, K_MAJOR, MN_MAJOR, chunk_offset
from ptxlab.isa.units.fragment import ELEMENT_BITS, extents
from ptxlab.trace.accesses import SHARED
from ptxlab.trace.lanes import Executed, elements_in, in_lane, matrices_of, registers_of

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder
    from ptxlab.trace.origin import Origin, Part

ROWS = 16  # of D that each warp of a warpgroup has


def sources(finder: Finder, step: Executed, index: int, part: Part) -> list[Origin] | None:
    """The sources of a result of `wgmma`; None: it is not one."""
    match = finder.program.match(step.instruction)
    if match is None or not match.effects.does("wgmma", "start"):
        return None
    held, m = matrices_of(match), match.candidate.modifiers
    names = {expected.name for expected in match.expected}
    bits = ELEMENT_BITS[m.atype]
    depth = extents(m.shape)[2]
    warp = step.thread % finder.accesses.threads_in_block // 32 % 4
    found: list[Origin] = []
    for _, row, column in elements_in(held["d"].layout, step.lane, index, part):
        if "a_desc" in names:
            major = MN_MAJOR if finder.operand(step.thread, step.instruction, "trans_a", step.key) else K_MAJOR
            found += _line(finder, step, "a_desc", warp * ROWS + row, (depth, bits, major))
        else:
            found += _in_registers(finder, step, row, depth)
        major = MN_MAJOR if finder.operand(step.thread, step.instruction, "trans_b", step.key) else K_MAJOR
        found += _line(finder, step, "b_desc", column, (depth, bits, major))
    accumulated = registers_of(finder, step.instruction, "d").get(index)
    if accumulated is not None:
        found.append(finder.of_register(step.thread, accumulated, step.key))
    others = [use for use in finder.uses(step.instruction) if use.operand in ("a_desc", "b_desc", "scale_d")]
    return found + [finder.of_register(step.thread, use.name, step.key, "address") for use in others]


def _in_registers(finder: Finder, step: Executed, row: int, depth: int) -> list[Origin]:
    """A row of A in the registers of a warp."""
    layout = matrices_of(finder.program.match(step.instruction))["a"].layout
    names = registers_of(finder, step.instruction, "a")
    places = {layout.position(row, k)[:2]: None for k in range(min(depth, layout.columns))}
    found = [in_lane(finder, step, lane, names[register]) for register, lane in places if register in names]
    return [one for one in found if one is not None]


def _line(finder: Finder, step: Executed, operand: str, row: int, how: tuple[int, int, int]) -> list[Origin]:
    """A row of A, or a column of B, in shared memory: `how` many elements of how many bits, and which way they go."""
    depth, bits, major = how
    descriptor = finder.operand(step.thread, step.instruction, operand, step.key)
    if descriptor is None:
        return []
    block = step.thread // finder.accesses.threads_in_block
    each = CHUNK * 8 // bits
    if major == K_MAJOR:
        places = [(int(chunk_offset(descriptor, row, chunk, major)), CHUNK) for chunk in range(depth // each)]
    else:
        inside = row % each * bits // 8
        places = [(int(chunk_offset(descriptor, k, row // each, major)) + inside, bits // 8) for k in range(depth)]
    return [finder.of_memory(SHARED, block, start, size, step.key) for start, size in places]

"""Where notes on an mbarrier are: by its offset, or if another one has that place, in the next that is free."""

from __future__ import annotations

from ptxlab.emulate.abi.barriers import KNOWN_PHASES, Phase
from ptxlab.emulate.abi.state import Block
from ptxlab.native import Pointer, cast, native, u32, u64, unlikely


@native(inline=True)
def place_of(block: Pointer[Block], number: u64) -> Pointer[Phase]:
    """A place for notes; after the last comes the first."""
    return cast(Pointer[Phase], block.barriers.phases + u32(number % KNOWN_PHASES))


@native(inline=True)
def notes_on(block: Pointer[Block], offset: u64) -> Pointer[Phase]:
    """What is known of an mbarrier; of one that has no notes, an entry that is never read."""
    notes = place_of(block, offset // 8)
    if unlikely(notes.offset != offset):
        notes = find_notes(block, offset)
    return notes


@native
def find_notes(block: Pointer[Block], offset: u64) -> Pointer[Phase]:
    """The same, where another mbarrier has the first place."""
    for index in range(KNOWN_PHASES):
        notes = place_of(block, offset // 8 + u64(index))
        if notes.is_known == 0:
            break
        if notes.offset == offset:
            return notes
    return cast(Pointer[Phase], block.barriers.phases + KNOWN_PHASES)


@native
def take_notes(block: Pointer[Block], offset: u64) -> Pointer[Phase]:
    """The notes for an mbarrier that is initialized; if there is no place left, those of another."""
    taken = place_of(block, offset // 8)
    for index in range(KNOWN_PHASES):
        notes = place_of(block, offset // 8 + u64(index))
        if notes.is_known == 0 or notes.offset == offset:
            taken = notes
            break
    taken.offset = offset
    taken.is_known = 1
    block.barriers.uses_mbarriers = 1
    return taken

"""Vector clocks of the runtime, beside a dictionary."""

import ctypes
import random

from ptxlab.emulate.abi.clocks import VectorClock
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    COLLECTIVE,
    EVERYONE,
    FAILED,
    MOST,
    SHARED_FENCE,
    WHOLE_GRID,
    advance,
    join_in_doubt,
)
from ptxlab.native.engine import build


def entries(clock: StructArray) -> dict[int, int]:
    words = (ctypes.c_uint64 * (2 * clock.get("count"))).from_address(clock.get("items") or ctypes.addressof(_NOTHING))
    assert list(words[::2]) == sorted(set(words[::2]))
    return dict(zip(words[::2], words[1::2], strict=True))


_NOTHING = ctypes.c_uint64()


def test_entries_in_doubt_are_those_that_are_not_known_otherwise() -> None:
    library = build([advance, join_in_doubt], speed=0)
    put, join = library.function(advance), library.function(join_in_doubt)
    rng = random.Random(7)
    keys = [*range(1, 40), *(key | doubt for key in range(1, 12) for doubt in (COLLECTIVE, FAILED)), EVERYONE]
    for _ in range(300):
        known, source = StructArray(VectorClock), StructArray(VectorClock)
        for clock in (known, source):
            for key in rng.sample(keys, rng.randrange(len(keys))):
                put(clock.address, key, rng.randrange(1, 5))
        doubt = rng.choice([COLLECTIVE, FAILED])
        expected = entries(known)
        for key, epoch in entries(source).items():
            if key != EVERYONE and expected.get(key, 0) < epoch:
                expected[key | doubt] = max(expected.get(key | doubt, 0), epoch)
        join(known.address, source.address, doubt)
        assert entries(known) == expected


def test_a_clock_stays_short() -> None:
    library = build([advance, join_in_doubt], speed=0)
    put, join = library.function(advance), library.function(join_in_doubt)
    known, source = StructArray(VectorClock), StructArray(VectorClock)
    for key in range(MOST):
        put(known.address, key << 22 | 64, 1)
        put(source.address, (key << 22 | 64) + 1, 1)
    join(known.address, source.address, COLLECTIVE)
    assert known.get("count") <= MOST
    entries(known)


def test_a_clock_that_was_shortened_knows_which_grids_are_complete() -> None:
    put = build([advance], speed=0).function(advance)
    known = StructArray(VectorClock)
    grids = {(WHOLE_GRID | grid) << BLOCK_SHIFT: 1 for grid in range(3)}
    for key in (*grids, *(block << BLOCK_SHIFT for block in range(MOST))):
        put(known.address, key, 9)
    after = entries(known)
    assert EVERYONE in after
    assert grids.keys() <= after.keys()


def test_what_threads_have_fenced_becomes_what_their_block_has() -> None:
    put = build([advance], speed=0).function(advance)
    known = StructArray(VectorClock)
    for block in range(3):
        for thread in range(1024):
            put(known.address, block << BLOCK_SHIFT | SHARED_FENCE | 64 + thread, 5)
    after = entries(known)
    assert after[SHARED_FENCE] == 5
    assert EVERYONE not in after

"""The memory that running a kernel takes on this machine."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.device.regions import Region
from ptxlab.emulate.abi import state
from ptxlab.emulate.runtime.order import shadow
from ptxlab.native import size_of
from ptxlab.native.checking import share
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.translate.compile import Compiled

STACK = 1 << 16  # bytes of each stack of a thread where recursion is possible
RESIDENTS = 4096  # clusters that may run by turns, if there is memory for them; more, if all of these wait for others
QUIET_RESIDENTS = 16  # and where they have no good means to wait for each other


@dataclass(frozen=True)
class Needs:
    """Bytes for the registers (`frame`) and the local memory of a thread, for a cluster; and how many take turns.

    A worker has up to `residents` of them, and where all of these wait for others, as many as fit in memory.
    """

    frame: int
    local: int
    cluster: int
    residents: int
    limit: int  # as many as fit in memory


def needs_of(compiled: Compiled, block: tuple[int, int, int], shared: int, cluster: int, free: int) -> Needs:
    """What a launch needs, with that many blocks in a cluster and that many bytes of memory for each worker."""
    facts = compiled.facts
    frames, locals = facts["frame_sizes"], facts["local_sizes"]
    calls = len(frames) > 1
    frame = max(STACK, sum(frames)) if calls else frames[0]
    local = max(STACK, sum(locals)) if calls or facts["stack"] else locals[0]
    threads = block[0] * block[1] * block[2]
    warps = -(-threads // 32)
    bytes = threads * (size_of(state.Thread) + frame + local) + 128 * warps * facts["exchange_words"]
    bytes = cluster * (bytes + size_of(state.Block) + shared) + size_of(state.Cluster)
    limit = max(1, free // 2 // bytes)
    return Needs(frame, local, bytes, min(RESIDENTS if facts["talks"] else QUIET_RESIDENTS, limit), limit)


def space_to_keep(regions: Sequence[Region]) -> dict[int, ctypes.Array[ctypes.c_char]] | None:
    """Space for the original contents of what a kernel may write, by address, then marks; None if there is too little.

    It takes addresses only, and memory where something is kept.
    """
    found = {}
    for region in regions:
        if region.writable:
            size = marks_offset(region.size) + 4 * (region.size // shadow.PAGE + 2)
            try:
                found[region.base] = share((ctypes.c_char * size).from_buffer(mmap.mmap(-1, size)))
            except OSError:
                return None
    return found


def marks_offset(size: int) -> int:
    """Where the marks of the pages of a region start."""
    return -(-size // 64) * 64

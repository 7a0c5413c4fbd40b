"""What happens before what: the hooks at which threads learn of each other."""

from __future__ import annotations

from ptxlab.emulate.state import Block, Thread
from ptxlab.native import Pointer, native, u32, u64


@native
def order_lanes(block: Pointer[Block], base: u32, members: u32) -> None:
    """Lanes of a warp have met: each knows what the others did before."""
    block.worker.time += 1


@native
def order_arrival(thread: Pointer[Thread], number: u32) -> None:
    """A thread has arrived at a barrier: what it did until now is handed over when that completes."""
    thread.worker.time += 1


@native
def order_barrier(block: Pointer[Block], number: u32) -> None:
    """A barrier has completed: those who waited know what all who arrived did before."""
    block.worker.time += 1


@native
def release_to_phase(thread: Pointer[Thread], offset: u64) -> None:
    """A thread arrives at an mbarrier: what it did is handed over when the phase completes."""
    thread.worker.time += 1


@native
def acquire_from_phase(thread: Pointer[Thread], offset: u64) -> None:
    """A thread has seen a phase complete: it knows what those who arrived did before."""
    thread.worker.time += 1


@native
def pass_fence(thread: Pointer[Thread], semantics: u32, scope: u32) -> None:
    """A thread passes a fence."""
    thread.worker.time += 1

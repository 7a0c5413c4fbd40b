"""Fence-SC order (PTX ISA 8.9.3), where a program finds out which of two `fence.sc` came first.

A thread passes a `fence.sc`, and a strong write comes after that. Another one reads what was written, and a `fence.sc`
comes after the read. The other order of the fences would put the read before the write that it observes, so the first
fence synchronizes with the second. Both may be in other threads than the write and the read, with a barrier between:
as in a reduction whose threads pass `__threadfence()`, synchronize, and let one thread count the blocks that are done.

Followed are fences of the whole GPU, and where several run, those of the system, through barriers of a block.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import FenceOrder, SyncVariable
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import DONE
from ptxlab.emulate.runtime.order.devices import is_in_team
from ptxlab.emulate.runtime.order.shadow import SYSTEM
from ptxlab.emulate.runtime.order.vector_clocks import forget, join
from ptxlab.native import Pointer, address_of, boolean, native, u32, unlikely


@native
def take_over_fences(thread: Pointer[Thread], is_system: boolean) -> None:
    """A thread passes a `fence.sc`: it comes after those whose writes were observed before it."""
    known = address_of(thread.order.known)
    join(known, address_of(thread.order.fences.observed))
    join(known, address_of(thread.block.order.fences.observed))
    if is_system:
        join(known, address_of(thread.order.fences.observed_system))
        join(known, address_of(thread.block.order.fences.observed_system))


@native(inline=True)
def comes_after_fence(thread: Pointer[Thread]) -> boolean:
    """Whether a fence comes before what a thread does now that it may release: its own, or a `fence.sc` of another."""
    passed: u32 = thread.order.fences.passed.count + thread.block.order.fences.passed.count
    return thread.order.fence.block + passed != 0


@native
def hand_over_fences(thread: Pointer[Thread], variable: Pointer[SyncVariable], flags: u32) -> None:
    """A strong write comes after fences of its thread, and of others before a barrier."""
    if unlikely(is_in_team(thread.worker)):
        if flags & SYSTEM != 0:
            join(address_of(variable.fenced_system), address_of(thread.order.fences.passed_system))
            join(address_of(variable.fenced_system), address_of(thread.block.order.fences.passed_system))
        if variable.device != thread.worker.shape.device:
            variable.known.count = 0
            variable.fenced.count = 0
        variable.device = thread.worker.shape.device
    join(address_of(variable.fenced), address_of(thread.order.fences.passed))
    join(address_of(variable.fenced), address_of(thread.block.order.fences.passed))


@native
def join_fences(fences: Pointer[FenceOrder], source: Pointer[FenceOrder]) -> None:
    """What came before the one comes before the other."""
    join(address_of(fences.passed), address_of(source.passed))
    join(address_of(fences.observed), address_of(source.observed))
    join(address_of(fences.passed_system), address_of(source.passed_system))
    join(address_of(fences.observed_system), address_of(source.observed_system))


@native
def share_fences(block: Pointer[Block]) -> None:
    """All threads of a block have synchronized: what came before one of them comes before all."""
    for index in range(block.count):
        thread = block.threads + index
        fences = address_of(thread.order.fences)
        if thread.status == DONE or is_empty(fences):
            continue
        join_fences(address_of(block.order.fences), fences)
        clear_fences(fences)


@native(inline=True)
def is_empty(fences: Pointer[FenceOrder]) -> boolean:
    """Whether nothing comes before; what does before a fence of the system, does before one of the GPU that passed."""
    return fences.passed.count + fences.observed.count + fences.observed_system.count == 0


@native
def clear_fences(fences: Pointer[FenceOrder]) -> None:
    """Nothing comes before any more."""
    fences.passed.count = 0
    fences.observed.count = 0
    fences.passed_system.count = 0
    fences.observed_system.count = 0


@native
def forget_fences(fences: Pointer[FenceOrder]) -> None:
    """Forget what came before fences."""
    forget(address_of(fences.passed))
    forget(address_of(fences.observed))
    forget(address_of(fences.passed_system))
    forget(address_of(fences.observed_system))

"""Registers that warps own: `setmaxnreg` moves them between a warp and the pool of its block (PTX ISA 9.7.19.5).

A block starts with as many for each warp as the header of its kernel says, and an empty pool. Counts are those of one
thread: each is 32 registers of a warp. What a warp owns when it exits does not come back to the pool.
"""

from __future__ import annotations

from ptxlab.emulate.abi.faults import DIVERGENT_REGISTERS
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.abi.thread_parts import AT_REGISTERS
from ptxlab.emulate.runtime.memory.memory import fail
from ptxlab.emulate.runtime.schedule.quiescence import mixed
from ptxlab.native import Pointer, address_of, boolean, native, u32, u64


@native
def set_registers(thread: Pointer[Thread], count: u32, is_more: u32, instruction: u32) -> None:
    """A warp gives registers back, or waits until the pool has enough, lane by lane."""
    block = thread.block
    if thread.worker.code.registers == 0:  # then `setmaxnreg` has no effect
        return
    if thread.lane == 0:
        warp: u32 = thread.number // 32
        block.registers.changes[warp] = mixed(block.registers.changes[warp], u64(count) << 1 | u64(is_more))
        block.registers.changed_at[warp] = instruction + 1
        block.registers.is_used = 1
    owned: u32 = owned_by(thread)
    if is_more != 0:
        if owned < count:
            thread.waiting.instruction = instruction
            thread.target.number = u64(count)
            thread.status = AT_REGISTERS
    elif owned > count:
        block.registers.pool += owned - count
        block.registers.owned[thread.number // 32] = count
        block.registers.is_used = 1
        block.schedule.moves += 1


@native
def owned_by(thread: Pointer[Thread]) -> u32:
    """The registers that each thread of a warp owns."""
    owned: u32 = thread.block.registers.owned[thread.number // 32]
    return owned if owned != 0 else thread.worker.code.registers


@native
def gets_registers(thread: Pointer[Thread]) -> boolean:
    """Whether a warp has the registers that it waits for; the first of its lanes takes them from the pool."""
    block = thread.block
    owned: u32 = owned_by(thread)
    wanted: u32 = u32(thread.target.number)
    if owned < wanted:
        if block.registers.pool < wanted - owned:
            return False
        block.registers.pool -= wanted - owned
        block.registers.owned[thread.number // 32] = wanted
        block.registers.is_used = 1
    return True


@native
def check_registers(thread: Pointer[Thread]) -> None:
    """The last thread of a block ends: all warps of a warpgroup must have executed the same `setmaxnreg`."""
    block = thread.block
    registers = address_of(block.registers)
    if registers.is_used == 0:
        return
    for warp in range(block.warps):
        first: u32 = warp // 4 * 4
        if registers.changes[warp] == registers.changes[first]:
            continue
        one: u32 = first if registers.changed_at[warp] == 0 else warp
        other: u32 = warp if one == first else first
        fail(block.threads + one * 32, DIVERGENT_REGISTERS, registers.changed_at[one] - 1, u64(other))
        return


CALLED = (set_registers,)

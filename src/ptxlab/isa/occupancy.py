"""How many blocks of a kernel an SM holds at once, and what stops it from holding one more.

The arithmetic is that of `cuda_occupancy.h` in the CUDA toolkit: registers are handed out to whole warps in units of
256, to four quarters of the SM each with its own file; shared memory in units of 128 bytes (256 before sm_80), and from
sm_80 on 1 KB of each block's belongs to the driver.
"""

from __future__ import annotations

import re

from ptxlab.values import dataclass

from .targets import target_named

_WARP = 32
_REGISTER_UNIT = 256
_QUARTERS = 4
ASSUMED_THREADS = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """What one SM has: warps, blocks, 32-bit registers, bytes of shared memory."""

    warps: int
    blocks: int
    shared: int
    registers: int = 65536
    shared_unit: int = 128
    shared_reserved: int = 1024


def _limits(warps: int, blocks: int, kilobytes: int) -> Limits:
    return Limits(warps, blocks, kilobytes * 1024)


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; blocks and shared memory agree with
# cuda_occupancy.h of CUDA 13.0. The guide does not list sm_88 and sm_107, so they are not guessed here.
LIMITS: dict[int, Limits] = {
    75: Limits(32, 16, 65536, shared_unit=256, shared_reserved=0),
    80: _limits(64, 32, 164),
    86: _limits(48, 16, 100),
    87: _limits(48, 16, 164),
    89: _limits(48, 24, 100),
    90: _limits(64, 32, 228),
    100: _limits(64, 32, 228),
    103: _limits(64, 32, 228),
    110: _limits(48, 24, 228),
    120: _limits(48, 24, 100),
    121: _limits(48, 24, 100),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps an SM holds, of `warp_limit` warps, and what limits them: warps, blocks, registers or shared."""

    blocks: int
    warps: int
    warp_limit: int
    limiter: str

    @property
    def fraction(self) -> float:
        """Warps held of those the SM could hold."""
        return self.warps / self.warp_limit


def limits_of(target: str) -> Limits | None:
    """The limits of a target; None where NVIDIA does not publish them."""
    number = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", target)
    return LIMITS.get(int(number[1])) if number else None


def occupancy(target: str, threads: int, registers: int, shared: int) -> Occupancy | None:
    """What an SM of `target` holds of blocks with `threads`, `registers` a thread and `shared` bytes a block.

    >>> occupancy("sm_90a", threads=384, registers=168, shared=200_000)
    Occupancy(blocks=1, warps=12, warp_limit=64, limiter='registers')

    The target's limits may be unknown, then the answer is None.
    """
    limits = limits_of(target)
    if limits is None:
        return None
    warps = -(-threads // _WARP)
    # Of equal limits the first is named: a full SM is not for want of registers.
    possible = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": _blocks_by_registers(limits, warps, registers),
        "shared": _blocks_by_shared(limits, shared) if shared <= target_named(target).shared_memory else 0,
    }
    limiter = min(possible, key=lambda name: possible[name])
    blocks = possible[limiter]
    return Occupancy(blocks, blocks * warps, limits.warps, limiter)


def block_threads(text: str, entry: str) -> int | None:
    """The threads of a block as `.reqntid` or `.maxntid` of an entry state them."""
    head = re.search(rf"\.entry\s+{re.escape(entry)}(?![\w$])([^{{;]*)", text)
    stated = re.search(r"\.(?:reqntid|maxntid)\s+(\d+(?:\s*,\s*\d+)*)", head[1]) if head else None
    if stated is None:
        return None
    threads = 1
    for extent in stated[1].split(","):
        threads *= int(extent)
    return threads


def _blocks_by_registers(limits: Limits, warps: int, registers: int) -> int:
    if registers == 0:
        return limits.blocks
    per_warp = _round_up(registers * _WARP, _REGISTER_UNIT)
    return limits.registers // _QUARTERS // per_warp * _QUARTERS // warps


def _blocks_by_shared(limits: Limits, shared: int) -> int:
    needed = _round_up(shared + limits.shared_reserved, limits.shared_unit)
    return limits.shared // needed if needed else limits.blocks


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit

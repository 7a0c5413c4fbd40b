"""How long a warp takes that has an SM to itself: instructions in order, with the stalls and waits of control codes.

ptxas knows the latency of most instructions and encodes it as stall counts. An instruction whose latency varies sets a
barrier, on which a later one waits; here it takes as long as published for the unit (`ptxlab.estimate.hardware`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptxlab.estimate.hardware import Hardware
from ptxlab.estimate.units import columns_of, stem, wgmma_cycles
from ptxlab.toolchain import SassInstruction

# Cycles until a result is there: LDS, SHFL and MUFU as FlashGPU-Sim and quack list them; mbarriers as FlashGPU-Sim.
LATENCIES = {
    "LDS": 29.0, "LDSM": 33.0, "ATOMS": 64.0, "SHFL": 24.0, "REDUX": 18.0, "MUFU": 19.0, "SYNCS": 36.0, "FENCE": 13.0,
}  # fmt: skip
GLOBAL = frozenset(("LDG", "LD", "LDGDEPBAR"))
BARRIER = 37.0  # cycles that a barrier of a block takes when all warps are there: FlashGPU-Sim
_L2 = frozenset(("ATOM", "ATOMG", "RED", "REDG", "UTMACMDFLUSH"))
_OTHER = 20.0  # not published: S2R, LDC, conversions, and until a store has read its registers
_PENDING = 64  # operations of a barrier that are remembered
_AGAIN = 3  # times that a loop is run through until it is in its steady state
_COUNT = re.compile(r"(?:SB\d|gsb\d), 0x([0-9a-f]+)")

GlobalLatency = Callable[[SassInstruction], float]


@dataclass
class _State:
    """What is under way: when the operations of each barrier are complete and whose they are; and `wgmma` groups."""

    hardware: Hardware
    latency: GlobalLatency
    barriers: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    groups: list[tuple[float, int]] = field(default_factory=list)
    tensor: float = 0.0
    now: float = 0.0
    kept: dict[int, float] = field(default_factory=dict)
    """How long the warp was kept, by the address of the instruction that it waited for, or that stalled it."""

    def issue(self, one: SassInstruction) -> None:
        """Issue an instruction."""
        control, opcode = one.control, one.opcode
        for barrier in control.waits:
            self._wait(self.barriers.get(barrier, []), 0)
        allowed = int(found[1], 16) if (found := _COUNT.search(one.text)) else 0
        if opcode.startswith("DEPBAR"):
            self._wait(self.barriers.get(0, []), allowed)
        elif opcode.startswith("WARPGROUP.DEPBAR"):
            self._wait(self.groups, allowed)
        elif opcode.startswith("BAR.SYNC"):
            self._keep(one.address, BARRIER)
        columns = columns_of(opcode)
        if columns is not None:
            self.tensor = max(self.tensor, self.now) + wgmma_cycles(columns, self.hardware)
            if "gsb" in one.text:
                self.groups.append((self.tensor + self.hardware.wgmma_tail, one.address))
        if control.write_barrier is not None:
            self._set(control.write_barrier, self.latency(one), one.address)
        if control.read_barrier is not None:
            self._set(control.read_barrier, _OTHER, one.address)
        self._keep(one.address, max(control.stall, 1))

    def _keep(self, address: int, cycles: float) -> None:
        self.now += cycles
        self.kept[address] = self.kept.get(address, 0.0) + cycles

    def _set(self, barrier: int, latency: float, address: int) -> None:
        pending = self.barriers.setdefault(barrier, [])
        ready = self.now + latency
        pending.append((ready, address) if not pending or ready > pending[-1][0] else pending[-1])
        del pending[:-_PENDING]

    def _wait(self, pending: Sequence[tuple[float, int]], allowed: int) -> None:
        if len(pending) > allowed:
            ready, address = pending[len(pending) - 1 - allowed]
            if ready > self.now:
                self._keep(address, ready - self.now)


def latency_of(one: SassInstruction, hardware: Hardware, to_global: float) -> float:
    """Cycles until the result of an instruction of variable latency is there; `to_global` is for loads."""
    name = stem(one.opcode)
    if name in GLOBAL:
        return to_global
    if name in _L2:
        return hardware.l2_latency
    return hardware.l1_latency if name == "LDL" else LATENCIES.get(name, _OTHER)


def durations(
    blocks: Sequence[tuple[Sequence[SassInstruction], bool]], hardware: Hardware, latency: GlobalLatency
) -> list[dict[int, float]]:
    """How long a warp is kept in basic blocks, in their order, by the address of the instruction that keeps it.

    A loop that is one block is run through until it is in its steady state.
    """
    state = _State(hardware, latency)
    found = []
    for instructions, repeats in blocks:
        for _ in range(_AGAIN if repeats else 1):
            state.kept = {}
            for one in instructions:
                state.issue(one)
        found.append(state.kept)
    return found

"""How often each SASS instruction is executed: from the SASS, and how often the emulator executed each line of PTX.

ptxas unrolls loops, so one line may be in the code several times; each copy is taken to be executed equally often. It
moves instructions to other basic blocks, so all instructions of a block are executed as often as most of them say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ptxlab.estimate.units import GLOBAL_LOADS, GLOBAL_STORES, SHARED_ACCESSES, columns_of, stem
from ptxlab.toolchain import SassFunction, SassInstruction

# What ptxas calls the functions that divide subnormal numbers, and take roots of them: its inline code does the others.
_RARE = "slowpath"

Lines = Mapping[int, Mapping[str, float]]

_ENDS = frozenset(("BRA", "EXIT", "RET", "BRX", "JMP", "JMX", "CALL", "BREAK", "KILL"))
# One of these is one instruction of PTX, which ptxas does not move out of its basic block.
_ANCHORS = (
    SHARED_ACCESSES | GLOBAL_LOADS | GLOBAL_STORES | {"HMMA", "IMMA", "BAR", "SHFL", "FFMA", "FADD", "FMUL", "MUFU"}
)
_CALLED = re.compile(r"CALL\.\S+ (\S+)$")


@dataclass(frozen=True)
class BasicBlock:
    """Instructions that are executed one after the other, and how often a warp of a block of threads gets here."""

    instructions: Sequence[SassInstruction]
    times: float  # warps of a block that execute it, added up
    repeats: bool  # whether it ends with a jump to its own start


def executed_blocks(functions: Sequence[SassFunction], entry: str, lines: Lines) -> list[BasicBlock]:
    """The basic blocks of a kernel and of what it calls, with how often they are executed; `lines` is by PTX line."""
    found: list[BasicBlock] = []
    calls = {entry: 0.0}
    for function in sorted(functions, key=lambda one: one.name != entry):
        if function.name in calls:
            for block in _counted(function, lines, calls[function.name]):
                found.append(block)
                for called in _CALLED.findall(block.instructions[-1].text):
                    calls[called] = calls.get(called, 0.0) + block.times
    return found


def warps_at(counted: Mapping[str, float]) -> float:
    """How many warps executed a line: its requests to memory, or else the threads by 32."""
    requests = max(counted.get("global_requests", 0.0), counted.get("shared_requests", 0.0))
    return max(requests, counted["instructions"] / 32)


def _counted(function: SassFunction, lines: Lines, times: float) -> list[BasicBlock]:
    """The basic blocks of a function that is called so often, for blocks that have no line."""
    copies = Counter((one.line, stem(one.opcode)) for one in function.instructions)
    found: list[BasicBlock] = []
    for part in _parts(function.instructions):
        anchors: list[float] = []
        others: list[float] = []
        for one in part:
            if one.line is not None:
                executed = warps_at(lines[one.line]) if one.line in lines else 0.0
                is_anchor = not one.text.startswith("@") and (stem(one.opcode) in _ANCHORS or columns_of(one.opcode))
                # Loops around `wgmma` are not unrolled, but several may have the line of one.
                share = 1 if columns_of(one.opcode) else copies[one.line, stem(one.opcode)]
                (anchors if is_anchor else others).append(executed / share)
        if anchors or others:
            times = median(anchors or others)
        is_rare = _RARE in part[-1].text
        found.append(BasicBlock(part, 0.0 if is_rare else times, _repeats(part)))
    return found


def _parts(instructions: Sequence[SassInstruction]) -> list[list[SassInstruction]]:
    """The instructions, a list for each basic block."""
    found: list[list[SassInstruction]] = [[]]
    for one in instructions:
        if one.label is not None and found[-1]:
            found.append([])
        found[-1].append(one)
        if stem(one.opcode) in _ENDS:
            found.append([])
    return [part for part in found if part]


def _repeats(part: Sequence[SassInstruction]) -> bool:
    label = part[0].label
    return label is not None and stem(part[-1].opcode) == "BRA" and part[-1].text.split(" ")[-1] == label

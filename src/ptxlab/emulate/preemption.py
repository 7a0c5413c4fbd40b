"""Where a thread can be preempted: before instructions by which threads observe each other.

Fences are not among them: a fence acts on its own thread alone, so preempting before it is preempting before the next
access. Neither are weak accesses of large functions. Between two synchronization operations of a thread, its weak
accesses commute with everything that other threads do, unless they race; and a race is found in whatever order the
two accesses are executed, as long as synchronization operations are in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab import ir
from ptxlab.emulate.liveness import Liveness

# What a kernel is compiled for: to run on until it must wait, to be preempted at points, and to log what it does there.
NEVER, POINTS, LOGGED = 0, 1, 2

LOOK = 0  # it changes nothing that others read
CHANGE = 1
# Registers that the points before weak accesses of a function may save in all. Each takes LLVM some 10 microseconds.
MOST_SAVED = 4000

_STRONG = frozenset(("volatile", "relaxed", "acquire", "release", "mmio"))
_PRIVATE = frozenset(("param", "const", "local", "nc"))
_ORDINARY = frozenset(("ld", "st", "atom", "red"))


def points_of(instructions: Sequence[ir.Instruction], live: Liveness) -> dict[int, int]:
    """The positions of instructions before which a thread can be preempted, and what each may do to memory."""
    strong = {position: _kind(one) for position, one in enumerate(instructions) if _is_strong(one)}
    weak = {position: _kind(one) for position, one in enumerate(instructions) if _is_weak(one)}
    if sum(live.before(position).bit_count() for position in weak) > MOST_SAVED:
        return strong
    return strong | weak


def _is_strong(instruction: ir.Instruction) -> bool:
    """Whether threads synchronize by an instruction, or may."""
    mnemonic, words = instruction.opcode.mnemonic, instruction.opcode.modifiers
    if mnemonic in ("bar", "barrier"):
        return "warp" not in words
    if mnemonic == "mbarrier":
        return "pending_count" not in words
    return _is_visible(instruction) and (mnemonic in ("atom", "red") or not _STRONG.isdisjoint(words))


def _is_weak(instruction: ir.Instruction) -> bool:
    return _is_visible(instruction) and not _is_strong(instruction)


def _is_visible(instruction: ir.Instruction) -> bool:
    """Whether it accesses memory that other threads may access too."""
    words = {word.partition("::")[0] for word in instruction.opcode.modifiers}
    return instruction.opcode.mnemonic in _ORDINARY and _PRIVATE.isdisjoint(words)


def _kind(instruction: ir.Instruction) -> int:
    mnemonic, words = instruction.opcode.mnemonic, instruction.opcode.modifiers
    if mnemonic == "mbarrier":
        return LOOK if "test_wait" in words or "try_wait" in words else CHANGE
    return LOOK if mnemonic in ("ld", "bar", "barrier") else CHANGE

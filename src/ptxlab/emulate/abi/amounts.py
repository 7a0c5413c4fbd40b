"""What the counters of a kernel count, besides how often its basic blocks run."""

from __future__ import annotations

from ptxlab import ir
from ptxlab.isa import Jump

# Besides bytes by state space: operations of MMAs whose descriptor says how many, bytes that these read of shared
# memory, and of these, bytes that a collector buffer may hold; and bytes of TMA copies: to shared memory, of these by
# multicast, to global memory, and to shared memory of another block.
FLOPS, OPERANDS, COLLECTED = "flops", "operand_bytes", "collector_bytes"
LOADED, MULTICAST, STORED, EXCHANGED = "loaded", "multicast", "stored", "exchanged"


def is_counted_apart(instruction: ir.Instruction) -> bool:
    """Whether an instruction is not executed each time its basic block is."""
    return instruction.guard is not None and instruction.opcode.jump in (None, Jump.TRAP)

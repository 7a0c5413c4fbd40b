"""What an instruction polls: memory that other threads change."""

from collections.abc import Sequence

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.isa.effects import Access

_OWN = ("param", "local", "const")  # memory that no other thread changes


def polled_address(instruction: ir.Instruction, match: Match | None) -> ir.Address | None:
    """What a load or an atomic operation reads; `match` is its form."""
    if match is None or match.effects.steps or not reads_shared(match.effects.accesses):
        return None
    return next((operand for operand in instruction.operands if isinstance(operand, ir.Address)), None)


def reads_shared(accesses: Sequence[Access]) -> bool:
    """Whether one of these accesses reads memory that other threads can write."""
    read = [access for access in accesses if access.kind != "store" and not access.is_async]
    return any((access.space or "").partition("::")[0] not in _OWN for access in read)

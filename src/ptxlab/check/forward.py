"""What holds where, when it follows from what holds before: a forward analysis over the blocks of a function."""

from collections.abc import Callable
from typing import TypeVar

from ptxlab.ir.flow import BasicBlock, Flow

State = TypeVar("State")


def forward(
    flow: Flow,
    entry: State,
    after: Callable[[BasicBlock, State], State],
    join: Callable[[State, State], State],
) -> dict[int, State]:
    """The state at the start of each reachable block; `join` only ever adds, so that the search comes to an end."""
    if not flow.blocks:
        return {}
    states = {0: entry}
    order = flow.ordered()
    rank = {number: at for at, number in enumerate(order)}
    pending = {0}
    while pending:
        number = min(pending, key=rank.__getitem__)
        pending.remove(number)
        end = after(flow.blocks[number], states[number])
        for successor in flow.blocks[number].successors:
            known = states.get(successor)
            joined = end if known is None else join(known, end)
            if successor not in states or joined != known:
                states[successor] = joined
                pending.add(successor)
    return states

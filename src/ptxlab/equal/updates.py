"""Atomic operations on expressions: a sum is one in the order of the recording, which is one of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxlab.equal.codes import is_symbolic, node_of, of_nodes

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn


def update(turn: Turn) -> None:
    """`red` and `atom`: on plain numbers as recorded, on inputs a sum whose order is open."""
    turn.check_addresses()
    match, plan = turn.plan.match, turn.plan
    assert match is not None
    found = turn.access("update")
    if found is None:
        return
    slot, space, owner, address, size = found
    old = turn.memory.load(space, owner, address, size)
    if not turn.is_reached().any() and not is_symbolic(old).any():
        columns = turn.replay.columns
        start = columns.offset[turn.entries] + slot.offset + slot.bytes
        data = -1 - columns.payload[start[:, None] + np.arange(size)].astype(np.int64)
        turn.memory.store(space, owner, address, data)
        turn.keep()
        return
    m = match.candidate.modifiers
    if not (m.op == "add" or m.add) or turn.results:
        raise turn.refused("an atomic operation on an input that is not a sum, or whose old value is read")
    operand, expected = next(
        (operand, one) for operand, one in zip(plan.instruction.operands, match.expected, strict=True)
        if one.kind == "value" and one.role == "read"
    )  # fmt: skip
    type = expected.type
    assert type is not None
    elements = getattr(operand, "elements", (operand,))
    one = type.name.rpartition("x")[0] if type.lanes > 1 else type.name
    width = type.width // 8 // type.lanes
    values = np.concatenate([turn.read(part, type) for part in elements], axis=1)
    operation = turn.nodes.operation("atomic", f"add {one}", one, width)
    for line in range(len(address)):  # one after the other: they may be at the same address
        at = slice(line, line + 1)
        before = turn.memory.load(space[at], owner[at], address[at], size).reshape(-1, width)
        given = values[at].reshape(-1, width)
        ids = [node_of(turn.nodes, codes, one) for codes in (before, given)]
        made = of_nodes(turn.nodes.add(operation, *ids), width).reshape(1, size)
        turn.memory.store(space[at], owner[at], address[at], made)

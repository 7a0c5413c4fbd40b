"""Atomic operations on expressions: a sum is one in the order of the recording, which is one of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptxlab.equal.codes import Codes, is_symbolic, node_of, of_bytes, of_nodes
from ptxlab.equal.memory import Bytes
from ptxlab.equal.nodes import Ids, Nodes

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn


def update(turn: Turn) -> None:
    """`red` and `atom`: on plain numbers as recorded, on inputs a sum whose order is open."""
    turn.check_addresses()
    match, plan = turn.plan.match, turn.plan
    assert match is not None
    m = match.candidate.modifiers
    operand, type = next(
        (operand, one.type) for operand, one in zip(plan.instruction.operands, match.expected, strict=True)
        if one.kind == "value" and one.role == "read" and one.type is not None
    )  # fmt: skip
    one = type.name.rpartition("x")[0] if type.lanes > 1 else type.name
    is_reached = turn.is_reached()
    values = [turn.read(part, type) for part in getattr(operand, "elements", (operand,))]
    index = 0
    while (found := turn.access("update", index)) is not None:
        slot, space, owner, address, size = found
        old = turn.memory.load(space, owner, address, size)
        if not is_reached.any() and not is_symbolic(old).any():
            start = turn.replay.columns.offset[turn.entries] + slot.offset + slot.bytes
            data = of_bytes(turn.replay.columns.payload[start[:, None] + np.arange(size)])
            turn.memory.store(space, owner, address, data)
            turn.keep()
        elif not (m.op == "add" or m.add):
            raise turn.refused("an atomic operation on an input that is not a sum")
        else:
            given = np.concatenate(values, axis=1)[:, index * size :][:, :size]
            _add(turn, (space, owner, address), given, one, type.width // 8 // type.lanes)
            _read_old(turn, given[:, : type.width // 8], type.name)
        index += 1


def _add(turn: Turn, place: tuple[Ids, Ids, Ids], values: Codes, type: str, width: int) -> None:
    left = np.arange(len(values))
    while len(left):  # those at the same address one after the other
        _, first = np.unique(np.stack(place)[:, left], axis=1, return_index=True)
        own = left[first]
        space, owner, address = (one[own] for one in place)
        before = turn.memory.load(space, owner, address, values.shape[1])
        turn.memory.store(space, owner, address, summed(turn.nodes, before, values[own], type, width))
        left = np.delete(left, first)


def _read_old(turn: Turn, given: Codes, type: str) -> None:
    """Have the results be unknown: what was in memory before depends on the order of threads."""
    operation = turn.nodes.operation("old", f"{turn.nodes.count}", type, given.shape[1])
    for use in turn.results:
        ids = turn.nodes.add(operation, node_of(turn.nodes, given, type), thread=turn.grid_threads)
        turn.write(use.name, of_nodes(ids, given.shape[1]))


def summed(nodes: Nodes, before: Bytes, given: Bytes, type: str, width: int) -> Bytes:
    """Elements in memory, each with another added to it in one step."""
    operation = nodes.operation("atomic", f"add {type}", type, width)
    ids = [node_of(nodes, codes.reshape(-1, width), type) for codes in (before, given)]
    return of_nodes(nodes.add(operation, *ids), width).reshape(before.shape)

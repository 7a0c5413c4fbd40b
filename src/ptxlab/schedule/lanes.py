"""Results of tensor cores, exchanged among neighbouring lanes so that each has more columns in a row to store.

A lane has two of every eight columns. Two or four lanes exchange what they have of as many groups of eight: each then
has four or eight columns of one of these, which is one vector.
"""

from __future__ import annotations

from ptxlab.author import b32, s32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Below, Value
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Store
from ptxlab.schedule.writing import Writing

EIGHT = 8  # columns of which four lanes have two each


def lanes_of(w: Writing, one: Store) -> int:
    """How many lanes exchange what a store is given; one where none do."""
    width = w.state.vectors.get(one.array, 1)
    if (
        width <= 2
        or one.condition is not None
        or not any(t.lane and one.index[-1] == Linear.of(t.columns) for t in w.state.tensors)
    ):
        return 1
    return width // 2


def write_spread(w: Writing) -> None:
    """The first column that a lane has after an exchange, from that of the tile on."""
    for lanes in (2, 4):
        if any(t.lane for t in w.state.tensors) and any(
            2 * lanes <= w.state.vectors.get(a, 1) for a in w.algorithm.outputs
        ):
            lane = w.thread % 4
            w.addresses.registers[_name(lanes)] = (lane // lanes * (2 * lanes) + lane % lanes * EIGHT).view(s32)
            for bit in (1, 2)[: lanes // 2]:
                w.odd[bit] = emit("setp.ne.u32", [w.thread & bit, 0])


def _name(lanes: int) -> str:
    return f"spread.{lanes}"


def group_of(w: Writing, one: Store, index: tuple[Linear, ...], lanes: int) -> list[tuple[str, tuple[Linear, ...]]]:
    """The elements of a lane that are exchanged together with one."""
    start = index[-1] - index[-1].constant % (EIGHT * lanes)
    return [(one.array, (*index[:-1], start + (EIGHT * group + pair))) for group in range(lanes) for pair in range(2)]


def exchange(w: Writing, lanes: int, words: list[list[Value]]) -> list[Value]:
    """Give each lane one group, in place of a part of each: `words` has the registers of each group."""
    words = [list(one) for one in words]
    distance = 1
    while distance < lanes:
        odd = w.odd[distance]
        for low in range(lanes):
            if low & distance:
                continue
            for place in range(len(words[low])):
                first, second = words[low][place], words[low | distance][place]
                sent = emit("selp.b32", [first, second, odd], out=b32())
                received = emit("shfl.sync.bfly.b32", [sent, distance, 31, -1], out=b32())
                words[low][place] = emit("selp.b32", [received, first, odd], out=b32())
                words[low | distance][place] = emit("selp.b32", [second, received, odd], out=b32())
        distance *= 2
    return [word for one in words for word in one]


def moved(w: Writing, index: tuple[Linear, ...], lanes: int) -> Linear:
    """The column of the first element that a lane has after an exchange; `index` is that of the first group."""
    lane = next(t.lane for t in w.state.tensors if t.lane in index[-1].names)
    return index[-1] - Linear(((lane, 2),)) + _name(lanes)


def limited(limits: list[Below], index: tuple[Linear, ...], column: Linear) -> list[Below]:
    """The conditions for another column."""
    return [Below(column, limit.limit) if limit.value == index[-1] else limit for limit in limits]

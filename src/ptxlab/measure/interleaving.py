"""Contenders take turns, so that temperature, clocks and other load affect all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Timer = Callable[[], float]
"""Runs a contender once and returns the seconds it took."""


def take_turns(
    timers: Mapping[str, Timer],
    rounds: int,
    done: Callable[[int], None] | None = None,
    into: dict[str, list[float]] | None = None,
) -> dict[str, list[float]]:
    """The samples of every contender: each round times each one once, in an order that changes from round to round.

    They are appended to the lists of `into` as they come, so that an interrupted call leaves what there is.
    """
    samples = {name: [] for name in timers} if into is None else into
    names = list(timers)
    for turn in range(rounds):
        for name in order(names, turn):
            samples[name].append(timers[name]())
        if done is not None:
            done(turn + 1)
    return samples


def order(names: Sequence[str], turn: int) -> list[str]:
    """The order of a round, from a Williams square.

    In 2n rounds of n contenders each has each position twice, and comes equally often after each other one. What a
    contender leaves in caches then affects all others alike.

    >>> [order(["a", "b", "c"], turn) for turn in range(6)]
    [['a', 'b', 'c'], ['b', 'c', 'a'], ['c', 'a', 'b'], ['c', 'b', 'a'], ['a', 'c', 'b'], ['b', 'a', 'c']]
    """
    count = len(names)
    zigzag = [at // 2 + 1 if at % 2 else -(at // 2) for at in range(count)]  # 0, 1, -1, 2, -2 and so on
    found = [names[(position + turn) % count] for position in zigzag]
    return found if turn // max(count, 1) % 2 == 0 else found[::-1]

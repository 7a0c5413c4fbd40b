"""Arms that take turns, so that heat, clocks and neighbours hit all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

Timer = Callable[[], float]
"""Runs an arm once and returns the seconds it took."""


def take_turns(
    timers: Mapping[str, Timer],
    rounds: int,
    done: Callable[[int], None] | None = None,
    into: dict[str, list[float]] | None = None,
) -> dict[str, list[float]]:
    """The samples of every arm: each round times each arm once, in an order that changes from round to round.

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
    """The order of a round: it starts one further each two rounds, and every second round runs backwards.

    >>> [order(["a", "b", "c"], turn) for turn in range(4)]
    [['a', 'b', 'c'], ['c', 'b', 'a'], ['b', 'c', 'a'], ['a', 'c', 'b']]
    """
    start = turn // 2 % max(len(names), 1)
    turned = [*names[start:], *names[:start]]
    return turned if turn % 2 == 0 else turned[::-1]

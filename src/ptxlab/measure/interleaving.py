"""Contenders take turns, so that temperature, clocks and other load affect all of them alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from math import sqrt

MOST = 4  # times as many rounds as were asked for, where times differ much
CERTAIN = 0.01  # of a median: what its standard error may be
OF_QUARTILES = (
    0.93  # standard errors of a median of one sample, in distances of the quartiles, of a normal distribution
)

Timer = Callable[[], float]
"""Runs a contender once and returns the seconds it took."""


def take_turns(
    timers: Mapping[str, Timer],
    rounds: int,
    done: Callable[[int], None] | None = None,
    into: dict[str, list[float]] | None = None,
) -> dict[str, list[float]]:
    """The samples of every contender: each round times each one once, in an order that changes from round to round.

    They are appended to the lists of `into` as they come, so that an interrupted call leaves what there is. Rounds that
    are there already count for the order.
    """
    samples = {name: [] for name in timers} if into is None else into
    names = list(timers)
    before = min((len(samples[name]) for name in names), default=0)
    for turn in range(rounds):
        for name in order(names, before + turn):
            samples[name].append(timers[name]())
        if done is not None:
            done(turn + 1)
    return samples


def until_steady(
    timers: Mapping[str, Timer], rounds: int, done: Callable[[int], None] | None = None
) -> dict[str, list[float]]:
    """As `take_turns`, with as many rounds again, and up to `MOST` times as many, while a median is uncertain.

    The times of a kernel that takes all the power the GPU may have differ by a tenth, since its clock goes up and down.
    Whether there are more rounds depends on how much times differ, and not on who is faster.
    """
    samples = take_turns(timers, rounds, done)
    for _ in range(1, MOST):
        if all(uncertainty(times) <= CERTAIN for times in samples.values()):
            break
        take_turns(timers, rounds, done, samples)
    return samples


def uncertainty(times: Sequence[float]) -> float:
    """The standard error of the median, as a fraction of it, from the quartiles.

    >>> uncertainty([1.0, 1.0, 1.0, 1.0]), round(uncertainty([0.9, 1.0, 1.1] * 12), 3)
    (0.0, 0.031)
    """
    if len(times) < 2:
        return 0.0
    first, middle, third = statistics.quantiles(times, n=4)
    return (third - first) * OF_QUARTILES / sqrt(len(times)) / middle


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

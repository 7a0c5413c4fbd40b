"""Arguments that consist of several values: tuples, lists and dictionaries of them, one in another.

`leaves` are the numbers, arrays, bytes and tensor maps in an argument, in order; an argument that is not a
container is its own leaf. `fields` are the same, but memory that holds pointers is one of them, with what it points to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

CONTAINERS = (tuple, list, dict)


def is_container(value: object) -> bool:
    """Whether an argument consists of others."""
    return isinstance(value, CONTAINERS)


class PointerArray(tuple[Any, ...]):
    """Memory that holds the addresses of arrays: an argument for a parameter such as `const float **`.

    >>> import numpy
    >>> import ptxlab
    >>> len(ptxlab.PointerArray([numpy.zeros(rows, numpy.float32) for rows in (80, 176, 128)]))
    3
    """

    __slots__ = ()


def fields(value: object) -> Iterator[Any]:
    """The values of the fields that an argument consists of.

    >>> [type(one).__name__ for one in fields((1, PointerArray([2.0, 3.0])))]
    ['int', 'PointerArray']
    """
    if isinstance(value, PointerArray) or not isinstance(value, CONTAINERS):
        yield value
        return
    for part in value.values() if isinstance(value, dict) else value:
        yield from fields(part)


def leaves(value: object) -> Iterator[Any]:
    """The values that an argument consists of.

    >>> list(leaves((1, (2.0, ()), {"size": 3})))
    [1, 2.0, 3]
    """
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, CONTAINERS):
        yield value
        return
    for part in value:
        yield from leaves(part)


def map_leaves(change: Callable[[object], object], value: object) -> Any:
    """The argument with each of its leaves changed.

    >>> map_leaves(lambda leaf: leaf + 1, (1, {128: [2]}))
    (2, {128: (3,)})
    """
    if isinstance(value, dict):
        return {name: map_leaves(change, part) for name, part in value.items()}
    if isinstance(value, CONTAINERS):
        return (PointerArray if isinstance(value, PointerArray) else tuple)(
            [map_leaves(change, part) for part in value]
        )
    return change(value)

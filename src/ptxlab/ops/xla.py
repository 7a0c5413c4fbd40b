"""Operators as operations of XLA: what `jax_functions.py` is made of.

`execute("matmul", arguments, results)` calls the function of an operator, as torch has it too, when XLA executes it.
Under `jax.vmap` arrays have dimensions before their own, 1 long where an array has no batch: one call computes the
batch, or there is one for each of its elements, all on XLA's stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptxlab.frameworks.xla_calls import copy, current_call, operation
from ptxlab.ops.batches import BATCHES, is_one_call
from ptxlab.ops.operators import function_of

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


class How(NamedTuple):
    """A call but for its arrays: the operator, its arguments with `...` for arrays, their dimensions, and which are
    given transposed."""

    operator: str
    given: tuple[Any, ...]
    ranks: tuple[int, ...]
    transposed: tuple[int, ...]

    @property
    def numbers(self) -> list[int]:
        """Which of the arguments are arrays."""
        return [number for number, one in enumerate(self.given) if one is ...]


def jax() -> ModuleType:
    """The package."""
    return import_module("jax")


def shaped(shape: Sequence[int], dtype: object) -> Any:
    """What a result is."""
    return jax().ShapeDtypeStruct(tuple(shape), dtype)


@cache
def is_jax(kind: type) -> bool:
    """Whether values of this type are arrays of JAX, or represent such arrays while it traces a function."""
    return any(one.__module__.partition(".")[0] in ("jax", "jaxlib") for one in kind.__mro__)


def execute(operator: str, given: Sequence[object], results: object, transposed: Sequence[int] = ()) -> Any:
    """What an operator returns, computed by XLA; `transposed` are numbers of matrices that are given transposed."""
    is_array = [hasattr(one, "shape") for one in given]
    arrays = [jax().numpy.asarray(one) for one, flag in zip(given, is_array, strict=True) if flag]
    marked = tuple(... if flag else one for one, flag in zip(given, is_array, strict=True))
    how = How(operator, marked, tuple(len(one.shape) for one in arrays), tuple(transposed))
    return operation(_run, results, (("how", how),), vmap="expand_dims")(*arrays)


def _run(*arrays: Array, how: How) -> None:
    """Write results, which are the last arrays: XLA calls this."""
    function, count = function_of(how.operator), len(how.ranks)
    called = current_call.get()
    for read, written in _calls(how, arrays[:count], arrays[count:]):
        if called is not None:
            called.give(written)
        given = list(how.given)
        for number, one in zip(how.numbers, read, strict=True):
            given[number] = one.swapaxes(-1, -2) if number in how.transposed else one
        found = function(*given)
        for source, target in zip(found if isinstance(found, (tuple, list)) else [found], written, strict=True):
            copy(source, target)


def _calls(how: How, given: Sequence[Array], results: Sequence[Array]) -> Iterator[tuple[list[Any], list[Any]]]:
    """The arrays of each call that computes a part of a batch."""
    more = len(given[0].shape) - how.ranks[0]
    batch, numbers = results[0].shape[:more], how.numbers
    has_batch = {number: one.shape[:more] != (1,) * more for number, one in zip(numbers, given, strict=True)}
    if not more:
        yield [*given], [*results]
    elif how.operator in BATCHES and all(one.shape[:more] == batch for one in given):
        yield [_merged(one, more + 1) for one in given], [_merged(one, more + 1) for one in results]
    elif 0 not in how.transposed and is_one_call(how.operator, has_batch.__getitem__, numbers):
        yield [one if has_batch[number] else _at(one, (0,) * more)
               for number, one in zip(numbers, given, strict=True)], [*results]  # fmt: skip
    else:
        for place in np.ndindex(*batch):
            yield [_at(one, place) for one in given], [_at(one, place) for one in results]


def _merged(array: Array, count: int) -> Any:
    return array.reshape((-1, *array.shape[count:]))


def _at(array: Array, place: Sequence[int]) -> Array:
    """An element of the batch; an array that has none is the same for all."""
    for number in place:
        array = array[number if array.shape[0] > 1 else 0]
    return array

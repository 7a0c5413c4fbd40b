"""Collectives over the GPUs of a node: functions that launch a kernel on each rank.

>>> import numpy, ptxlab
>>> from ptxlab.kernels.collectives import Group, all_reduce
>>> node = ptxlab.node(2)
>>> x = [node[rank].array(numpy.full(8, rank + 1, numpy.float32)) for rank in range(2)]
>>> result = [node[rank].zeros(8) for rank in range(2)]
>>> all_reduce(Group(node, blocks=1), x, result)
>>> result[1].numpy()[:2]
array([3., 3.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ptxlab.device.structures import Pointers
from ptxlab.kernels.collectives import kernel
from ptxlab.kernels.collectives.kernel import THREADS
from ptxlab.node import Array, Node

__all__ = ["Group", "all_gather", "all_reduce", "all_to_all", "reduce_scatter"]

VARIANTS = ("one_shot", "two_shot")


class Group:
    """The ranks of a node that take part in collectives, with the signals by which they synchronize."""

    def __init__(self, node: Node, blocks: int = 4) -> None:
        """`blocks` of each rank work together."""
        self.node, self.blocks = node, blocks
        ranks = len(node)
        self.signals = [device.zeros(blocks * ranks, numpy.uint32, name="signals") for device in node]
        self.number = 1  # of the next barrier
        self._buffers: dict[int, list[Array]] = {}

    def buffers(self, count: int) -> list[Array]:
        """Symmetric memory for so many elements; that of the collective before is used again."""
        if count not in self._buffers:
            self._buffers[count] = [device.zeros(count, name="buffer") for device in self.node]
        return self._buffers[count]

    def launch(
        self, made: Any, barriers: int, count: int, tables: Sequence[Sequence[Array]], x: Sequence[Array]
    ) -> None:
        """Launch a kernel on each rank; `tables` are arrays of all ranks, and `x` has the result of each."""
        vector = 4 if count % (4 * len(self.node)) == 0 else 1
        chosen = made.specialize(RANKS=len(self.node), VECTOR=vector)
        for device in self.node:
            args = [*map(Pointers, tables), x[device.rank], Pointers(self.signals), count // vector, device.rank]
            device.launch(chosen, self.blocks, THREADS, [*args, self.number])
        self.number += barriers


def all_reduce(group: Group, x: Sequence[Array], result: Sequence[Array], variant: str = "one_shot") -> None:
    """The sum of the arrays of all ranks, for each of them; `variant` is "one_shot" or "two_shot"."""
    count = _elements(group, x, result, 1, 1)
    if variant not in VARIANTS:
        raise ValueError(f"variant={variant!r}: expected one of {', '.join(VARIANTS)}")
    if variant == "one_shot":
        group.launch(kernel.all_reduce_one_shot, 2, count, [x], result)
        return
    ranks = len(group.node)
    if count % ranks:
        raise ValueError(f"{count} elements: a multiple of the {ranks} ranks is needed for the variant two_shot")
    group.launch(kernel.all_reduce_two_shot, 3, count, [x, group.buffers(count // ranks)], result)


def reduce_scatter(group: Group, x: Sequence[Array], result: Sequence[Array]) -> None:
    """Of the sum of the arrays of all ranks, each gets the part of its number."""
    group.launch(kernel.reduce_scatter, 2, _elements(group, x, result, len(group.node), 1), [x], result)


def all_gather(group: Group, x: Sequence[Array], result: Sequence[Array]) -> None:
    """Each rank gets the arrays of all ranks, one after the other."""
    group.launch(kernel.all_gather, 2, _elements(group, x, result, 1, len(group.node)), [x], result)


def all_to_all(group: Group, x: Sequence[Array], result: Sequence[Array]) -> None:
    """Each rank gets the part of its number of the arrays of all ranks, one after the other."""
    ranks = len(group.node)
    group.launch(kernel.all_to_all, 2, _elements(group, x, result, ranks, ranks), [x], result)


def _elements(group: Group, x: Sequence[Array], result: Sequence[Array], inputs: int, results: int) -> int:
    """The elements of a part, of which each input and each result has so many; anything else is refused."""
    if len(x) != len(group.node) or len(result) != len(group.node):
        raise ValueError(f"{len(x)} inputs and {len(result)} results: each of the {len(group.node)} ranks has one")
    count = x[0].nbytes // 4 // inputs
    for rank, (one, other) in enumerate(zip(x, result, strict=True)):
        if one.dtype != numpy.float32 or other.dtype != numpy.float32:
            raise TypeError(f"rank {rank}: arrays of float32 are expected")
        if one.nbytes != 4 * count * inputs or other.nbytes != 4 * count * results:
            raise ValueError(
                f"rank {rank}: {one.nbytes // 4} elements and {other.nbytes // 4} for the result; "
                f"expected {count * inputs} and {count * results}"
            )
    return count

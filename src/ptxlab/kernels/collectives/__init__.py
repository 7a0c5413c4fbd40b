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

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ptxlab.device.multicast import Multicast
from ptxlab.device.structures import PointerArray
from ptxlab.kernels.collectives import fused, kernel, rings
from ptxlab.kernels.collectives.kernel import THREADS
from ptxlab.node import Array, Node

__all__ = ["Group", "all_gather", "all_gather_matmul", "all_reduce", "all_to_all", "matmul_reduce_scatter",
           "reduce_scatter"]  # fmt: skip

VARIANTS = ("one_shot", "two_shot", "ring", "tree", "multimem")


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

    def launch(self, made: Any, barriers: int, args: Callable[[int], Sequence[Any]], **constants: int) -> None:
        """Launch a kernel on each rank, which has `args`; its signals have so many numbers from the next one on."""
        chosen = made.specialize(RANKS=len(self.node), **constants)
        for device in self.node:
            device.launch(chosen, self.blocks, THREADS, [*args(device.rank), device.rank, self.number])
        self.number += barriers

    def launch_on_elements(
        self, made: object, barriers: int, count: int, arrays: Sequence[object], results: Sequence[Array] | None = None
    ) -> None:
        """Launch a kernel on `arrays` of all ranks, and on the result of each; by vectors where these fit."""
        vector = 4 if count % (4 * len(self.node)) == 0 else 1

        def args(rank: int) -> list[Any]:
            own = [] if results is None else [results[rank]]
            return [*arrays, *own, PointerArray(self.signals), count // vector]

        self.launch(made, barriers, args, VECTOR=vector)


def all_reduce(group: Group, x: Sequence[Array], result: Sequence[Array], variant: str = "one_shot") -> None:
    """The sum of the arrays of all ranks, for each of them.

    `variant` is "one_shot", "two_shot", "ring", "tree" or, of at most 8 ranks, "multimem".
    """
    count, ranks = _elements(group, x, result, 1, 1), len(group.node)
    if variant not in VARIANTS:
        raise ValueError(f"variant={variant!r}: expected one of {', '.join(VARIANTS)}")
    if variant not in ("one_shot", "tree") and count % ranks:
        raise ValueError(f"{count} elements: a multiple of the {ranks} ranks is needed for the variant {variant}")
    inputs = PointerArray(x)
    if variant == "one_shot" or ranks == 1:
        group.launch_on_elements(kernel.all_reduce_one_shot, 2, count, [inputs], result)
    elif variant == "two_shot":
        buffers = PointerArray(group.buffers(count // ranks))
        group.launch_on_elements(kernel.all_reduce_two_shot, 3, count, [inputs, buffers], result)
    elif variant == "ring":
        buffers = PointerArray(group.buffers(count - count // ranks))
        group.launch_on_elements(rings.all_reduce_ring, 2 * ranks - 2, count, [inputs, buffers, PointerArray(result)])
    elif variant == "tree":
        group.launch_on_elements(rings.all_reduce_tree, 4, count, [inputs, PointerArray(result)])
    else:
        group.launch_on_elements(rings.all_reduce_multimem, 2, count, [Multicast(x), Multicast(result)])


def reduce_scatter(group: Group, x: Sequence[Array], result: Sequence[Array]) -> None:
    """Of the sum of the arrays of all ranks, each gets the part of its number."""
    count = _elements(group, x, result, len(group.node), 1)
    group.launch_on_elements(kernel.reduce_scatter, 2, count, [PointerArray(x)], result)


def all_gather(group: Group, x: Sequence[Array], result: Sequence[Array]) -> None:
    """Each rank gets the arrays of all ranks, one after the other."""
    count = _elements(group, x, result, 1, len(group.node))
    group.launch_on_elements(kernel.all_gather, 2, count, [PointerArray(x)], result)


def all_to_all(group: Group, x: Sequence[Array], result: Sequence[Array]) -> None:
    """Each rank gets the part of its number of the arrays of all ranks, one after the other."""
    ranks = len(group.node)
    count = _elements(group, x, result, ranks, ranks)
    group.launch_on_elements(kernel.all_to_all, 2, count, [PointerArray(x)], result)


def all_gather_matmul(group: Group, a: Sequence[Array], b: Sequence[Array], result: Sequence[Array]) -> None:
    """Each rank gets the rows of `a` of all ranks, one after the other, times its own `b`."""
    _same_shapes(group, a, b, result)
    (rows, k), (_, n) = a[0].shape, b[0].shape
    _expect(a[0].shape[1] == b[0].shape[0], f"{a[0].shape} times {b[0].shape}")
    _expect(result[0].shape == (rows * len(group.node), n), f"a result of {result[0].shape}")

    def args(rank: int) -> list[Any]:
        return [PointerArray(a), b[rank], result[rank], PointerArray(group.signals), rows, n, k]

    group.launch(fused.all_gather_matmul, 2, args)


def matmul_reduce_scatter(group: Group, a: Sequence[Array], b: Sequence[Array], result: Sequence[Array]) -> None:
    """Of the sum over all ranks of `a` times `b`, each gets the rows of its number."""
    _same_shapes(group, a, b, result)
    (m, k), (_, n), ranks = a[0].shape, b[0].shape, len(group.node)
    _expect(a[0].shape[1] == b[0].shape[0] and m % ranks == 0, f"{a[0].shape} times {b[0].shape} on {ranks} ranks")
    _expect(result[0].shape == (m // ranks, n), f"a result of {result[0].shape}")
    buffers = PointerArray(group.buffers(m * n))

    def args(rank: int) -> list[Any]:
        return [a[rank], b[rank], buffers, result[rank], PointerArray(group.signals), m // ranks, n, k]

    group.launch(fused.matmul_reduce_scatter, 2, args)


def _same_shapes(group: Group, *arrays: Sequence[Array]) -> None:
    """Refuse matrices that are not one a rank, of `float32`, all of the same shape."""
    for each in arrays:
        _expect(len(each) == len(group.node), f"{len(each)} matrices for {len(group.node)} ranks")
        for one in each:
            fits = one.dtype == numpy.float32 and len(one.shape) == 2 and one.shape == each[0].shape
            _expect(fits, f"a matrix of {one.dtype} {one.shape}, beside one of {each[0].dtype} {each[0].shape}")


def _expect(is_right: bool, found: str) -> None:
    if not is_right:
        raise ValueError(f"{found}: matrices of float32 are expected, one a rank, whose shapes fit")


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

"""Launches: the kernel, grid and tensor maps for arrays, whose sizes and addresses say which kernel that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.array_types import TORCH_NAMES
from ptxlab.device.tensor_maps import tensor_map
from ptxlab.estimate.hardware import H200, sms_in_clusters
from ptxlab.estimate.products import PIECES
from ptxlab.gpu.arrays import memory_of
from ptxlab.measure import Launch
from ptxlab.measure.block_scaled import FORMATS, matrix
from ptxlab.measure.data import Draw
from ptxlab.schedule.elements import INTEGERS
from ptxlab.schedule.emit import shared_bytes
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.pieces import workspace_words
from ptxlab.schedule.scaled import Scaled, factors_of
from ptxlab.schedule.state import State, quoted, refuse_here
from ptxlab.schedule.statements import Algorithm, Array, gathered, loads
from ptxlab.schedule.tree import BYTES
from ptxlab.schedule.walk import SECTOR

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule

MOST_BLOCKS = {"x": 2**31 - 1, "y": 65535, "z": 65535}
SMS = H200.sms
_GRID = "xyz"


def launch_of(schedule: Schedule, arguments: Sequence[object]) -> Launch:
    """The launch for arrays and numbers, in the order of the algorithm's parameters."""
    given = _named(schedule.algorithm, arguments)
    scaled = {name: one for name, one in given.items() if isinstance(one, Scaled)}
    sizes = sizes_of(schedule, given)
    aligned = all(one is None or one.address % 16 == 0 for one in map(memory_of, arguments))  # not those of the host
    free = {name: size for name, size in sizes.items() if name not in schedule.sizes}
    multiples = {name: max(n for n in multiples_of(schedule, name) if size % n == 0) for name, size in free.items()}
    if schedule.state.is_empty(sizes):
        aligned, multiples = False, dict.fromkeys(free, 0)
    mapped = aligned and all(_is_mappable(one, given[name]) for name, one in _by_tma(schedule.state).items())
    stored = aligned and all(
        _is_mappable(schedule.algorithm.arrays[one.array], given[one.array]) for one in schedule.state.results
    )
    if scaled and not mapped:
        refuse_here("bad-argument", "arrays are not at multiples of 16 bytes, and scale factors are copied by TMA only")
    made, kernel = schedule.written(multiples, aligned, mapped, stored)
    counts = [schedule.state.iterations(name, sizes) for name in schedule.state.blocks]
    together = made.state.together()  # a cluster has all of its blocks, also where tiles are beyond the result
    counts = [-(-n // each) * each for n, each in zip(counts, map(made.state.together, made.state.blocks), strict=True)]
    grid = [math.prod(counts)] if made.state.group else counts[::-1] or [1]
    if made.state.persistent:
        pieces = min(made.state.iterations(made.state.pipeline.at, sizes), PIECES) if made.state.stream_k else 1
        sms = min(SMS, sms_in_clusters(together))
        grid = [min(grid[0] * pieces, sms // together * together)]
    blocks = schedule.state.cluster_blocks
    if blocks > 1:
        grid = [*[*grid, 1, 1][:2], blocks]
    for count, axis in zip(grid, _GRID, strict=False):
        if count > MOST_BLOCKS[axis]:
            said = f"{count:,} blocks in dimension {axis} of the grid, which has {MOST_BLOCKS[axis]:,} at most"
            refuse_here("schedule-limit", said, "use larger tiles, or another order in `blocks`")
    for name, one in scaled.items():
        given[name], given[factors_of(name)] = one.mapped
    for name, buffer in made.mapped.items():
        box = (*buffer.shape[:-2], buffer.shape[-2] // max(1, made.sharing(buffer) // made.state.pair), buffer.columns)
        row = int(given[name].shape[-1]) * BYTES[buffer.element]
        ahead = "256B" if row % SECTOR == 0 else "128B"  # rows of a box are parts of more lines then
        given[name] = tensor_map(given[name], box, swizzle=buffer.stage.swizzle or None, l2_promotion=ahead)
    for name, result in made.results.items():
        box = (*(1 for _ in given[name].shape[2:]), *result.box)
        given[name] = tensor_map(given[name], box, swizzle=result.stage.swizzle or None)
    args = [*given.values(), *free.values()]
    if made.state.stream_k:
        args.append(_zeros(arguments, workspace_words(made.state, grid[0])))
    return Launch(
        kernel,
        tuple(max(count, 1) for count in grid),
        made.state.launched,
        args,
        shared=shared_bytes(made),
        cluster=(1, 1, blocks) if blocks > 1 else (together, 1, 1) if together > 1 else None,
    )


def _named(algorithm: Algorithm, arguments: Sequence[object]) -> dict[str, Any]:
    """Arguments by the names of parameters, pairs of numbers and factors as one."""
    if len(arguments) != len(algorithm.parameters):
        said = f"`{algorithm.name}` takes {', '.join(algorithm.parameters)}: {len(arguments)} arguments are given"
        refuse_here("bad-argument", said)
    given = dict(zip(algorithm.parameters, arguments, strict=True))
    scaled = {name: Scaled(one, given[name]) for name, one in algorithm.arrays.items() if one.element in FORMATS}
    return {**given, **scaled}


def sizes_of(schedule: Schedule, given: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that arrays have."""
    algorithm = schedule.algorithm
    sizes: dict[str, int] = dict(schedule.sizes)
    known: list[tuple[Linear, int]] = []
    for name in (name for name in given if name not in algorithm.arrays):
        if not isinstance(given[name], (int, float, np.number)):
            refuse_here("bad-argument", f"`{name}` is a {type(given[name]).__name__}, expected a number")
    for name, array in algorithm.arrays.items():
        shape = tuple(getattr(given[name], "shape", ()))
        if len(shape) != len(array.extents):
            said = f"`{name}` has {len(shape)} dimensions, expected {len(array.extents)}"
            refuse_here("bad-argument", said)
        wanted = TORCH_NAMES.get(array.element, "")
        found = str(getattr(given[name], "dtype", wanted)).removeprefix("torch.")
        if found != wanted:
            refuse_here("bad-argument", f"`{name}` is of {found}, expected {wanted}")
        known += zip(array.extents, shape, strict=True)
    for _ in algorithm.sizes:  # one that is known may be all that another extent needs
        for extent, count in known:
            rest = extent.replaced(sizes)
            if len(rest.terms) == 1:
                size, coefficient = rest.terms[0]
                sizes[size] = (count - rest.constant) // coefficient
    if missing := [name for name in algorithm.sizes if name not in sizes]:
        refuse_here(
            "bad-argument", f"the arrays do not say how large {quoted(missing)} is", "fix it: `schedule(f, n=8)`"
        )
    for name, array in algorithm.arrays.items():
        shape = tuple(given[name].shape)
        expected = tuple(extent.value(sizes) for extent in array.extents)
        if shape != expected:
            text = ", ".join(f"{key} = {value}" for key, value in sizes.items())
            refuse_here("bad-argument", f"`{name}` has shape {shape}, expected {expected} for {text}")
        if not _is_contiguous(given[name]):
            refuse_here("bad-argument", f"the rows of `{name}` are not one after the other in memory")
    return {name: sizes[name] for name in algorithm.sizes}


def arguments_of(algorithm: Algorithm, sizes: Mapping[str, int], draw: Draw) -> list[Any]:
    """Random arguments of these sizes, or zeros."""
    found: list[Any] = []
    for name in algorithm.parameters:
        array = algorithm.arrays.get(name)
        if array is None:
            found.append(float(draw.uniform((), "f64", 0.5, 2.0)))
            continue
        shape = tuple(extent.value(sizes) for extent in array.extents)
        if min(shape) < 0:
            said = ", ".join(f"{size} = {value}" for size, value in sizes.items())
            refuse_here("bad-argument", f"`{name}` has shape {shape} for {said}", "take larger sizes")
        if array.element in FORMATS:
            found.append(Scaled(array, matrix(draw, FORMATS[array.element], *shape)))
        elif array.element == "s32":
            fewest = _fewest(algorithm, name, sizes)
            if not fewest and 0 not in shape:
                refuse_here("bad-argument", f"`{name}` has indices of an array without elements", "take larger sizes")
            found.append(draw.integers(shape, "s32", 0, max(1, fewest)))
        elif array.element in INTEGERS:
            found.append(draw.integers(shape, array.element, *INTEGERS[array.element]))
        else:
            found.append(draw.normal(shape, array.element))
    return found


def _fewest(algorithm: Algorithm, array: str, sizes: Mapping[str, int]) -> int:
    """What indices in an array must be less than; other whole numbers are at most the largest size."""
    found = [
        extent.value(sizes)
        for one in algorithm.statements
        for load in loads(one)
        for at, extent in zip(load.index, algorithm.arrays[load.array].extents, strict=True)
        if array in (inner.array for inner in gathered(at))
    ]
    return min(found, default=1 + max(sizes.values(), default=1))


def multiples_of(schedule: Schedule, size: str) -> set[int]:
    """What it matters that a size is a multiple of: the tiles of loops, and vectors of rows or parts, that it is in."""
    axes = [axis for axis, extent in schedule.algorithm.axes.items() if size in extent.names]
    rows = [name for name, array in schedule.algorithm.arrays.items() if size in array.extents[-1].names]
    vectors = [width for name in rows for width in unmapped(schedule.state).widths(name)]
    tiles = [schedule.state.parts[axis][0] for axis in axes]
    weights = {part.weight * n for part in tiles for n in (1, schedule.state.together(part.name))}
    return {1, *weights, *vectors}


def _is_mappable(array: Array, given: Any) -> bool:
    """Whether a tensor map can describe an array: it has elements, and its rows are a multiple of 16 bytes."""
    return 0 not in given.shape and int(given.shape[-1]) * BYTES[array.element] % 16 == 0


def unmapped(state: State) -> State:
    """The same for arrays that tensor maps cannot describe: all threads copy, as many bytes at once as they can."""
    vectors = {name: 16 // BYTES[one.element] for name, one in _by_tma(state).items() if one.element not in FORMATS}
    state = replace(state, vectors={**vectors, **state.vectors}, persistent=False, stream_k=False)
    return replace(state, pipeline=replace(state.pipeline, by="cp.async"), specialized=False, multicast=())


def _by_tma(state: State) -> dict[str, Array]:
    """The arrays that TMA copies."""
    staged = [one.array for one in state.stages if one.at == state.pipeline.at and state.pipeline.by == "tma"]
    return {name: state.algorithm.arrays[name] for name in staged}


def _zeros(arguments: Sequence[object], count: int) -> Any:
    """So many zeros in f32, where the arrays are."""
    tensor = next((one for one in arguments if hasattr(one, "new_zeros")), None)
    return np.zeros(count, np.float32) if tensor is None else tensor.new_zeros(count).float()


def _is_contiguous(array: object) -> bool:
    """Whether the elements of an array are in memory as the algorithm counts them."""
    if hasattr(array, "is_contiguous"):
        return bool(array.is_contiguous())
    flags = getattr(array, "flags", None)
    return flags is None or bool(flags.c_contiguous)

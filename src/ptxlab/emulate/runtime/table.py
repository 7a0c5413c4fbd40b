"""All functions of the runtime, for what compiles it and what calls it: this imports every file here.

`RUNTIME` has what the code of a kernel may call, by name: all that the files here list in `CALLED`. Each function gets
the thread first. `COLLECTIVES` are warp collectives that would make a kernel large. `ENTRIES` the host calls.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

from ptxlab.emulate import runtime
from ptxlab.isa import undefined
from ptxlab.isa.units import (
    multiplication,
    multiplication_scaled,
    tensor_mma,
    tensor_mma_scaled,
    tensor_tile,
    warpgroup_multiplication,
)
from ptxlab.numbers import tensor_core_tiles

from .memory.block_independence import put_back, share_bytes
from .memory.profile import settle_all
from .order.earlier_grids import take_over_accesses
from .order.watched_reads import mark_reads
from .schedule.directed import run_directed
from .schedule.grid import continue_alone, end_broken, observe_anew, run_grid, take_over
from .schedule.search import run_search


def _files() -> Iterator[ModuleType]:
    for found in walk_packages(runtime.__path__, f"{runtime.__name__}."):
        yield import_module(found.name)


RUNTIME: dict[str, Callable[..., Any]] = {
    function.__name__: function for file in _files() for function in getattr(file, "CALLED", ())
}
COLLECTIVES: tuple[Callable[..., Any], ...] = (
    multiplication.multiply_bits, multiplication.multiply_doubles, multiplication.multiply_floats,
    multiplication.multiply_integers, multiplication.multiply_quarters, multiplication_scaled.multiply_scaled,
    undefined.follow_mma, undefined.has_undefined, warpgroup_multiplication.multiply_shared_bits,
    warpgroup_multiplication.multiply_shared_floats, warpgroup_multiplication.multiply_shared_integers,
)  # fmt: skip
# Modules of MMAs, whose loops become vectors.
MULTIPLYING = frozenset(
    module.__name__
    for module in (
        multiplication, multiplication_scaled, tensor_core_tiles, tensor_mma, tensor_mma_scaled, tensor_tile,
        warpgroup_multiplication,
    )
)  # fmt: skip
# Files whose functions few kernels call, or seldom: LLVM takes a quarter of the time for them, and makes slower code.
RARE = frozenset("""
    asynchronous.async_accesses asynchronous.async_stores asynchronous.bulk_copies asynchronous.bulk_issue
    asynchronous.cancellations asynchronous.network asynchronous.recorded_copies asynchronous.reductions
    asynchronous.tensor_boxes asynchronous.tensor_issue
    asynchronous.tensor_maps asynchronous.wgmma memory.block_independence memory.block_lifetime memory.multicast
    memory.profile
    order.cluster_order order.earlier_grids order.lockstep order.matrix_rows order.network_order order.observations
    order.proxies order.reports order.tensor_happens_before order.tensor_map_order order.tensor_order order.undefined
    order.watched_reads
    schedule.cluster_barrier schedule.clusters schedule.directed schedule.search schedule.steps
    tensor_memory.accesses tensor_memory.allocation tensor_memory.collectors
    tensor_memory.commits tensor_memory.copies tensor_memory.execution tensor_memory.metadata tensor_memory.mma
    tensor_memory.operands
    tensor_memory.operations tensor_memory.pairs tensor_memory.scale_factors tensor_memory.shifts
    textures.blending textures.coordinates textures.cubes textures.levels textures.lookups textures.objects
    textures.queries textures.surfaces textures.texels
""".split())  # fmt: skip
ENTRIES: tuple[Callable[..., Any], ...] = (
    run_directed, run_grid, run_search, take_over, continue_alone, observe_anew, end_broken, settle_all, share_bytes,
    put_back, take_over_accesses, mark_reads,
)  # fmt: skip

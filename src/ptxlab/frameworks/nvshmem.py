"""Kernels that call NVSHMEM's device functions, on the GPUs of a node as its processing elements (PEs).

    module = ptxlab.nvshmem.cuda("put.cu")
    job = ptxlab.nvshmem.Job(ptxlab.node(4), module)
    data = job.zeros(64, numpy.int32)

`cuda` compiles a file with NVSHMEM's own headers, device functions inlined. All that these need of NVSHMEM's host
library, which only runs where there are GPUs, is one variable of the module: who this PE is, and where the symmetric
memory of each PE is. A `Job` makes it. Every PE reaches the memory of all others by loads and stores, as with NVLink.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy

from ptxlab import ir
from ptxlab.frameworks.packages import MissingPackageError
from ptxlab.node import Array, Node
from ptxlab.node.arrays import START, STEP
from ptxlab.node.nvshmem import state
from ptxlab.node.nvshmem.state import (
    COUNTER,
    DIRECT,
    FOLDER,
    MOST_TEAMS,
    NETWORK,
    OF_TEAMS,
    OWN_TEAMS,
    TEAM_BYTES,
    NvshmemModule,
)
from ptxlab.syntax.parser import parse
from ptxlab.toolchain import cuda as compile_cuda

# `NVSHMEM_TEAM_WORLD`, `NVSHMEM_TEAM_SHARED`, `NVSHMEMX_TEAM_NODE`, `NVSHMEMX_TEAM_SAME_MYPE_NODE`.
_WORLD, _SHARED, _MACHINE, _ACROSS = range(4)

_QUIET = """.version 8.0
.target sm_75
.address_size 64
.extern .func ptxlab_network_quiet();
.visible .entry quiet()
{
    call.uni ptxlab_network_quiet;
    fence.sc.sys;
    ret;
}
"""


def cuda(
    source: str | Path, target: str = "sm_90", options: Sequence[str] = (), *, as_written: bool = False
) -> ir.Module:
    """The module of a file of CUDA C++ that includes `nvshmem.h`; see `ptxlab.cuda`.

    Waits of NVSHMEM order what other PEs wrote, as its manual says. Its headers have a fence of `.gpu` scope there,
    which does not by PTX's memory model: `as_written` compiles that, and races follow each wait for another PE.
    """
    own = ["-DPTXLAB_AS_WRITTEN"] * as_written
    own += ["-std=c++17", f"-I{FOLDER / 'include'}", f"-I{headers()}", "-include", "nvshmem.h"]
    return compile_cuda(Path(source), target, [*own, *options])


def headers() -> Path:
    """The folder of NVSHMEM's headers."""
    found = state.headers()
    if found is None:
        raise MissingPackageError("kernels with NVSHMEM need its headers: pip install nvidia-nvshmem-cu13")
    return found


class Job:
    """The PEs of a program: one for each GPU of a node, each with the variables of modules for itself."""

    def __init__(self, node: Node, *modules: ir.Module, machines: int = 1) -> None:
        """`modules` are those whose kernels call NVSHMEM.

        The PEs are spread over so many `machines`, as many on each. Those of one reach each other's memory by loads and
        stores. To others goes a network: puts, signals and atomic operations are delivered late, in any order, but for
        `nvshmem_fence`, `nvshmem_quiet`, and the signal of a put with one; `nvshmem_ptr` is null.
        """
        if machines < 1 or len(node) % machines:
            raise ValueError(f"{len(node)} PEs on machines={machines}: as many must be on each of these")
        self.node, self.machines = node, machines
        self._teams: _Teams | None = None
        self._quiet = parse(_QUIET, "quiet.ptx")
        known = [NvshmemModule(module) for module in modules]
        starts = numpy.array([START + rank * STEP for rank in range(len(node))], numpy.uint64)
        each = len(node) // machines
        if any(one.has_teams for one in known):
            self._teams = _Teams(self)
        for device in node:
            first = device.rank // each * each
            near = numpy.zeros_like(starts)
            near[first : first + each] = starts[first : first + each]
            peers = device.array(near, name="peers")
            counter = device.zeros(1, numpy.uint32, name="regions")
            values = {
                "mype": device.rank, "npes": len(node), "node_mype": device.rank - first, "node_npes": each,
                "job_connectivity": DIRECT if machines == 1 else NETWORK, "heap_base": int(starts[device.rank]),
                "heap_size": STEP, "peer_heap_base_p2p": peers.address, COUNTER: counter.address,
            }  # fmt: skip
            if self._teams is not None:
                values |= self._teams.addresses(device.rank)
            for one in known:
                device.set(one.module, state.STATE, one.state(values))
        if self._teams is not None:
            for index, start, stride, size in (
                (_WORLD, 0, 1, len(node)),
                (_SHARED, None, 1, each),
                (_MACHINE, None, 1, each),
                (_ACROSS, None, each, machines),
            ):
                self._teams.make(index, start, stride, size)

    def zeros(
        self, shape: int | Sequence[int], dtype: object = numpy.float32, *, name: str | None = None
    ) -> list[Array]:
        """Symmetric memory: an array of zeros on each PE, which `nvshmem_ptr` and the like find on all of them."""
        self.node.memory.line_up()
        return [device.zeros(shape, dtype, name=name) for device in self.node]

    def team(self, start: int, stride: int, size: int) -> list[int]:
        """A team of some PEs, as `nvshmem_team_split_strided` makes it of all: what each PE is given for it.

        That is a number that kernels take, for PEs that are not of the team `NVSHMEM_TEAM_INVALID`.
        """
        members = range(start, start + stride * size, max(stride, 1))
        if size < 1 or stride < 1 or members[0] < 0 or members[-1] >= len(self.node):
            raise ValueError(
                f"a team of PEs {start}, {start + stride}, …, {size} of them: there are {len(self.node)} PEs"
            )
        if self._teams is None:
            raise ValueError("no kernel of the job uses teams")
        number = self._teams.add(start, stride, size)
        return [number if device.rank in members else -1 for device in self.node]

    def barrier_all(self) -> None:
        """Have the default streams of all PEs wait for each other, as `nvshmemx_barrier_all_on_stream` does.

        What kernels before it have sent is complete then.
        """
        if self.machines > 1:
            for device in self.node:
                device.launch(self._quiet["quiet"], 1, 1, [])
        reached = [device.record() for device in self.node]
        for device in self.node:
            for event in reached:
                device.wait(event)


class _Teams:
    """The teams of a job, through whose memory its PEs synchronize."""

    def __init__(self, job: Job) -> None:
        self.node, self.each = job.node, len(job.node) // job.machines
        self.module = compile_cuda(FOLDER / "teams.cu", options=[f"-I{headers()}"])
        self.size = int(self.module.get("size", dtype=numpy.uint64)[0])
        self.pools = [one.zeros(MOST_TEAMS, numpy.uint64, name="team_pool") for one in self.node]
        self.memory = job.zeros(TEAM_BYTES * MOST_TEAMS, numpy.uint8, name="psync_pool")
        self.counters = [one.array(numpy.repeat([1, 0], MOST_TEAMS), name="sync_counter") for one in self.node]
        self.count = OWN_TEAMS

    def addresses(self, rank: int) -> dict[str, int]:
        """What the variable of a PE says of teams."""
        arrays = self.pools[rank], self.memory[rank], self.counters[rank]
        return dict(zip(OF_TEAMS, (array.address for array in arrays), strict=True))

    def add(self, start: int, stride: int, size: int) -> int:
        """One more team."""
        if self.count == MOST_TEAMS:
            raise ValueError(f"a job has {MOST_TEAMS - OWN_TEAMS} teams besides those of NVSHMEM")
        self.make(self.count, start, stride, size)
        self.count += 1
        return self.count - 1

    def make(self, index: int, start: int | None, stride: int, size: int) -> None:
        """Make a team; without `start` each PE has one of its own, of its machine or across machines."""
        for device, pool in zip(self.node, self.pools, strict=True):
            rank, count = device.rank, len(self.node)
            first = start
            if first is None:
                first = rank % self.each if index == _ACROSS else rank // self.each * self.each
            own, rest = divmod(rank - first, stride)
            made = device.zeros(self.size, numpy.uint8, name="team")
            places = device.zeros(2 * count, numpy.int32, name="places")
            is_in: bool = rest == 0 and 0 <= own < size
            is_near = first // self.each == (first + (size - 1) * stride) // self.each
            given = [
                pool,
                made,
                places,
                index,
                first,
                stride,
                size,
                own if is_in else -1,
                count,
                int(is_near),
            ]
            device.launch(self.module["team"], 1, 1, given)
        self.node.synchronize()

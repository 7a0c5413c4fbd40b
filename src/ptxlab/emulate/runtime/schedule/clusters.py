"""Starting and ending a cluster, blocks that start together; a launch without clusters has clusters of one block."""

from __future__ import annotations

from ptxlab.emulate.abi.quiescence import Watch
from ptxlab.emulate.abi.state import Cluster, Worker
from ptxlab.emulate.runtime.order.vector_clocks import forget
from ptxlab.emulate.runtime.schedule.blocks import begin_block, end_block, move_block, restart_block
from ptxlab.emulate.runtime.schedule.random import permuted, shuffle
from ptxlab.emulate.runtime.schedule.teams import choose_grid
from ptxlab.native import (
    Pointer,
    address_of,
    atomic_add,
    atomic_load,
    boolean,
    calloc,
    cast,
    fill_bytes,
    free,
    native,
    size_of,
    u8,
    u32,
    u64,
)

CLUSTER_SIZE = size_of(Cluster)
WATCH_SIZE = size_of(Watch)


@native
def take_clusters(worker: Pointer[Worker]) -> boolean:
    """Have a cluster to start, if there is one left: those of a chunk are adjacent, and so may what they access."""
    if cast(u64, worker.together.team) != 0:
        return choose_grid(worker)
    if worker.clusters.first == worker.clusters.past:
        worker.clusters.first = min(atomic_add(worker.clusters.next, worker.clusters.chunk), worker.clusters.total)
        worker.clusters.past = min(worker.clusters.first + worker.clusters.chunk, worker.clusters.total)
    return worker.clusters.first < worker.clusters.past


@native
def take_number(worker: Pointer[Worker]) -> u64:
    """The number of that cluster, which now no other worker starts."""
    number: u64 = worker.clusters.first if worker.seed == 0 else permuted(worker, worker.clusters.first)
    worker.clusters.first += 1
    if cast(u64, worker.clusters.numbers) != 0:
        return worker.clusters.numbers[number]
    return number


@native
def has_more(worker: Pointer[Worker]) -> boolean:
    """Whether there are clusters left that no worker has started."""
    if cast(u64, worker.together.team) != 0:
        return choose_grid(worker)
    return worker.clusters.first < worker.clusters.past or atomic_load(worker.clusters.next) < worker.clusters.total


@native
def begin_cluster(worker: Pointer[Worker], number: u64) -> Pointer[Cluster]:
    """A cluster with all its blocks at their first instruction; null if there is no memory for it."""
    cluster = cast(Pointer[Cluster], calloc(1, CLUSTER_SIZE))
    if cast(u64, cluster) == 0:
        return cluster
    cluster.worker = worker
    for rank in range(worker.shape.cluster_size):
        block = begin_block(worker, block_of(worker, number, rank))
        if cast(u64, block) == 0:
            end_cluster(cluster)
            return cast(Pointer[Cluster], 0)
        block.cluster = cluster
        block.rank = rank
        cluster.blocks[rank] = block
        cluster.count = rank + 1
    name_cluster(cluster)
    return cluster


@native
def restart_cluster(cluster: Pointer[Cluster], number: u64) -> None:
    """Make a cluster that has ended another one: its memory is used again."""
    fill_bytes(cast(Pointer[u8], address_of(cluster.watch)), 0, WATCH_SIZE)
    cluster.arrived = 0
    cluster.phase = 0
    cluster.gathered.count = 0
    cluster.known.count = 0
    for rank in range(cluster.count):
        restart_block(cluster.blocks[rank], block_of(cluster.worker, number, rank))
    name_cluster(cluster)


@native
def name_cluster(cluster: Pointer[Cluster]) -> None:
    """With a seed, choose the order of its blocks."""
    if cluster.worker.seed != 0:
        shuffle(cluster.blocks[0], cluster.block_order, cluster.count)


@native
def block_of(worker: Pointer[Worker], number: u64, rank: u32) -> u64:
    """The number in the grid of a block of a cluster."""
    across: u64 = u64(worker.shape.grid.x // worker.shape.cluster.x)
    down: u64 = u64(worker.shape.grid.y // worker.shape.cluster.y)
    x: u64 = number % across * u64(worker.shape.cluster.x) + u64(rank % worker.shape.cluster.x)
    y: u64 = number // across % down * u64(worker.shape.cluster.y) + u64(
        rank // worker.shape.cluster.x % worker.shape.cluster.y
    )
    z: u64 = number // across // down * u64(worker.shape.cluster.z) + u64(
        rank // worker.shape.cluster.x // worker.shape.cluster.y
    )
    return x + u64(worker.shape.grid.x) * (y + u64(worker.shape.grid.y) * z)


@native
def first_number(cluster: Pointer[Cluster]) -> u64:
    """The number in the grid of its first block."""
    return cluster.blocks[0].number


@native
def move_cluster(cluster: Pointer[Cluster], worker: Pointer[Worker]) -> None:
    """Have another worker run a cluster."""
    cluster.worker = worker
    for rank in range(cluster.count):
        move_block(cluster.blocks[rank], worker)


@native
def end_cluster(cluster: Pointer[Cluster]) -> None:
    """Give the memory of a cluster and its blocks back."""
    for rank in range(cluster.count):
        end_block(cluster.blocks[rank])
    forget(address_of(cluster.gathered))
    forget(address_of(cluster.known))
    free(cast(Pointer[u8], cluster))

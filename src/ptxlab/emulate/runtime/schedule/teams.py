"""Grids that run at the same time: which of them starts a cluster next, on behalf of the worker that schedules all.

A grid may start once those that it follows are complete, as far as the SMs of its GPU have capacity for it. Grids that
may start do so in turns, a cluster at a time; with a seed, in a random order.
"""

from __future__ import annotations

from ptxlab.emulate.abi.state import Cluster, Worker
from ptxlab.emulate.runtime.schedule.random import scrambled
from ptxlab.native import Pointer, atomic_add, atomic_load, boolean, cast, native, u32, u64, unlikely


@native(inline=True)
def leader_of(worker: Pointer[Worker]) -> Pointer[Worker]:
    """The worker that schedules the clusters of a worker: itself, unless it is one of a team."""
    if cast(u64, worker.together.team) == 0:
        return worker
    return worker.together.team.workers[0]


@native
def choose_grid(worker: Pointer[Worker]) -> boolean:
    """Choose the grid of which a cluster starts next; false if none has one that may start."""
    team = worker.together.team
    first: u64 = team.started
    if worker.seed != 0:
        first = scrambled(scrambled(worker.seed) + team.started)
    for step in range(team.count):
        number: u32 = u32((first + u64(step)) % u64(team.count))
        grid = team.workers[number]
        if grid.clusters.first < grid.clusters.past and has_room(grid) and may_start(grid):
            team.chosen = number
            return True
    return False


@native
def take_from_grid(worker: Pointer[Worker]) -> Pointer[Worker]:
    """The worker of the grid that was chosen, which starts a cluster now."""
    team = worker.together.team
    team.started += 1
    grid = team.workers[team.chosen]
    team.room[grid.shape.device] -= grid.together.cost
    if grid.together.has_started == 0:
        grid.together.has_started = 1
        grid.together.first_turn = team.time
    return grid


@native(inline=True)
def tick(worker: Pointer[Worker]) -> None:
    """A warp or a thread has a turn: time passes for all grids that run together."""
    if unlikely(cast(u64, worker.together.team) != 0):
        worker.together.team.time += 1


@native
def has_room(grid: Pointer[Worker]) -> boolean:
    """Whether the SMs of a GPU have capacity for one more cluster of a grid."""
    return grid.together.team.room[grid.shape.device] >= grid.together.cost


@native
def note_end(cluster: Pointer[Cluster]) -> None:
    """A cluster has ended: its grid may be complete, and the SMs of its GPU have capacity again."""
    grid = cluster.worker
    atomic_add(grid.clusters.finished, u64(cluster.count))
    if cast(u64, grid.together.team) != 0:
        grid.together.team.room[grid.shape.device] += grid.together.cost
        grid.together.last_turn = grid.together.team.time


@native
def may_start(grid: Pointer[Worker]) -> boolean:
    """Whether all grids that a grid follows are complete."""
    for index in range(grid.together.before_count):
        before = grid.together.team.workers[grid.together.before[index]]
        if atomic_load(before.clusters.finished) != before.clusters.total * u64(before.shape.cluster_size):
            return False
    return True

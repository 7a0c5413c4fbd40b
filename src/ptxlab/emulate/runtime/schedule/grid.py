"""The clusters of a launch, one after the other; those that do nothing but spin wait while others run."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import NO_MEMORY
from ptxlab.emulate.abi.state import Cluster, Worker
from ptxlab.emulate.runtime.asynchronous.network import end_network
from ptxlab.emulate.runtime.order.synchronization import end_history
from ptxlab.emulate.runtime.schedule.clusters import (
    begin_cluster,
    end_cluster,
    first_number,
    has_more,
    move_cluster,
    restart_cluster,
    take_clusters,
    take_number,
)
from ptxlab.emulate.runtime.schedule.quiescence import changes_of, is_still, leap, outlasts_time, watch_anew
from ptxlab.emulate.runtime.schedule.schedule import (
    BROKEN,
    FINISHED,
    SPINNING,
    STILL,
    has_changed,
    report_hang,
    run_cluster,
)
from ptxlab.emulate.runtime.schedule.teams import note_end, take_from_grid
from ptxlab.native import Pointer, atomic_add, atomic_load, atomic_store, boolean, cast, native, u32, u64

LESS = (1 << 64) - 1  # added to a count, it makes that one less


@native
def run_grid(worker: Pointer[Worker]) -> None:
    """Run clusters until none is left, one breaks, the launch is stopped, or no worker can do anything but spin.

    One that is not alone also ends if all it has wait for those of others: one worker continues all of them.
    """
    spare = cast(Pointer[Cluster], 0)
    is_stuck = False
    while atomic_load(worker.stop) == 0:
        moved = False
        if worker.clusters.waiting < worker.clusters.capacity:
            if take_clusters(worker):
                moved = True
                cluster = begin_next(worker, spare)
                if cast(u64, cluster) == 0:
                    break
                spare = cast(Pointer[Cluster], 0)
                outcome: u32 = advance(worker, cluster)
                if outcome == FINISHED:
                    spare = cluster
                    note_end(cluster)
                elif outcome == SPINNING or outcome == STILL:  # noqa: SIM109 - native functions know no tuples
                    worker.clusters.residents[worker.clusters.waiting] = cluster
                    worker.clusters.waiting += 1
                    worker.history.is_serial = 1  # the next cluster starts before this one ends
                else:
                    report_stop(worker, cluster)
                    break
            elif worker.clusters.waiting == 0:
                break
        before: u32 = worker.clusters.waiting
        still: u32 = visit_residents(worker)
        moved = moved or worker.clusters.waiting != before
        if has_to_leave(worker, still):
            break
        is_stuck = note_stuck(worker, is_stuck, moved)
        if is_stuck and atomic_load(worker.clusters.stuck) == worker.clusters.stuck_limit:
            break
    end_grid(worker, spare, is_stuck)


@native
def begin_next(worker: Pointer[Worker], spare: Pointer[Cluster]) -> Pointer[Cluster]:
    """Start a cluster, in the memory of another one if there is one to spare; null if there is no memory for it."""
    grid = worker
    if cast(u64, worker.together.team) != 0:
        grid = take_from_grid(worker)
    number: u64 = take_number(grid)
    cluster = spare
    if cast(u64, cluster) != 0 and cluster.worker != grid:
        end_cluster(cluster)
        cluster = cast(Pointer[Cluster], 0)
    if cast(u64, cluster) == 0:
        cluster = begin_cluster(grid, number)
        if cast(u64, cluster) == 0:
            worker.fault.kind = NO_MEMORY
            atomic_store(worker.stop, 1)
    else:
        restart_cluster(cluster, number)
    if cast(u64, cluster) != 0:
        cluster.turn = grid.clusters.first - 1
    return cluster


@native
def visit_residents(worker: Pointer[Worker]) -> u32:
    """Let each cluster that waits have a turn; how many can continue only if others change something."""
    position: u32 = 0
    still: u32 = 0
    while position < worker.clusters.waiting and atomic_load(worker.stop) == 0:
        resident = worker.clusters.residents[position]
        outcome: u32 = advance(worker, resident)
        if outcome == FINISHED:
            drop_resident(worker, position)
            end_cluster(resident)
        elif outcome == SPINNING:
            position += 1
        elif outcome == STILL:
            position += 1
            still += 1
        else:
            report_stop(worker, resident)
            break
        if has_changed(worker):
            break
    return still


@native
def drop_resident(worker: Pointer[Worker], position: u32) -> None:
    """A cluster has ended."""
    note_end(worker.clusters.residents[position])
    worker.clusters.waiting -= 1
    worker.clusters.residents[position] = worker.clusters.residents[worker.clusters.waiting]


@native
def has_to_leave(worker: Pointer[Worker], still: u32) -> boolean:
    """Find a way to continue if all clusters wait for others: with more of them, or later; true if there is none."""
    if still == 0 or still != worker.clusters.waiting:
        return False
    if has_more(worker) and still < worker.clusters.limit:
        if still >= worker.clusters.capacity:
            worker.clusters.capacity = min(worker.clusters.capacity * 2, worker.clusters.limit)
    elif worker.clusters.is_alone != 0:
        continue_together(worker, still)
    elif not has_more(worker) or cast(u64, worker.together.team) != 0:
        return True
    return False


@native
def note_stuck(worker: Pointer[Worker], is_stuck: boolean, moved: boolean) -> boolean:
    """Count the workers that can do nothing but spin; whether this one is among them now."""
    if moved == is_stuck:
        atomic_add(worker.clusters.stuck, LESS if moved else u64(1))
    return not moved


@native
def end_grid(worker: Pointer[Worker], spare: Pointer[Cluster], is_stuck: boolean) -> None:
    """Let the others know that this worker can do nothing more, and give memory back."""
    if not is_stuck:
        atomic_add(worker.clusters.stuck, 1)
    if atomic_load(worker.stop) != 0 and cast(u64, worker.together.team) == 0:  # of a team, all are explained
        leave_residents(worker)
    if cast(u64, spare) != 0:
        end_cluster(spare)


@native
def advance(worker: Pointer[Worker], cluster: Pointer[Cluster]) -> u32:
    """Run a cluster; in a trial, one that waits for others breaks it, since one core is to run them together."""
    outcome: u32 = run_cluster(cluster)
    if outcome == STILL and worker.clusters.stuck_limit != 0:
        report_hang(cluster)
        return BROKEN
    return outcome


@native
def leave_residents(worker: Pointer[Worker]) -> None:
    """Give back the clusters that wait; if none broke, one of them is kept to be explained."""
    for left in range(worker.clusters.waiting):
        resident = worker.clusters.residents[left]
        if cast(u64, worker.progress.broken) == 0:
            report_stop(worker, resident)
        elif cast(u64, worker.progress.broken) != cast(u64, resident):
            end_cluster(resident)
    worker.clusters.waiting = 0


@native
def continue_together(worker: Pointer[Worker], count: u32) -> None:
    """Let time pass for clusters of which each waits for the others; or say that they hang.

    All others have ended, or else there is no memory for them to start: then it is not known whether these hang.
    """
    first: u32 = 0
    in_vain = True
    for index in range(count):
        cluster = worker.clusters.residents[index]
        if not is_still(cluster):
            return
        if first_number(cluster) < first_number(worker.clusters.residents[first]):
            first = index
        in_vain = outlasts_time(cluster) and in_vain
    if in_vain:
        report_hang(worker.clusters.residents[first])
        if has_more(worker):
            worker.fault.kind = NO_MEMORY
            worker.fault.value = u64(count) * u64(worker.shape.cluster_size)
        report_stop(worker, worker.clusters.residents[first])
        return
    for index in range(count):
        leap(worker.clusters.residents[index])


@native
def take_over(worker: Pointer[Worker], other: Pointer[Worker]) -> None:
    """Make the clusters of another worker, all of which wait for others, clusters of this one."""
    for index in range(other.clusters.waiting):
        cluster = other.clusters.residents[index]
        move_cluster(cluster, worker)
        worker.clusters.residents[worker.clusters.waiting] = cluster
        worker.clusters.waiting += 1
    other.clusters.waiting = 0


@native
def continue_alone(worker: Pointer[Worker]) -> None:
    """Observe all clusters again, now that no other worker has any: what those have changed is not counted here."""
    worker.clusters.is_alone = 1
    observe_anew(worker)


@native
def observe_anew(worker: Pointer[Worker]) -> u32:
    """Observe all clusters again, since others than kernels may change memory; how often kernels have done so far."""
    for index in range(worker.clusters.waiting):
        watch_anew(worker.clusters.residents[index])
    return u32(changes_of(worker))


@native
def report_stop(worker: Pointer[Worker], cluster: Pointer[Cluster]) -> None:
    """Stop all workers, and keep the cluster for the report."""
    atomic_store(worker.stop, 1)
    worker.progress.broken = cluster


@native
def end_broken(worker: Pointer[Worker]) -> None:
    """Give back the memory of the clusters that were kept, and what the detectors remembered."""
    leave_residents(worker)
    if cast(u64, worker.progress.broken) != 0:
        end_cluster(worker.progress.broken)
        worker.progress.broken = cast(Pointer[Cluster], 0)
    end_history(worker)
    end_network(worker)

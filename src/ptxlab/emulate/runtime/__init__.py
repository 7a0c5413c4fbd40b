"""The part of the emulator that runs beside the code of a kernel, native like it: memory, scheduling, barriers.

`RUNTIME` lists what the code of a kernel may call, by name; each gets the thread first. `ENTRIES` the host calls.
"""

from collections.abc import Callable
from typing import Any

from .asynchronous.async_copies import arrive_after_copies, commit_copies, fill_shared, start_copy, wait_for_copies
from .asynchronous.async_stores import start_async_store
from .asynchronous.bulk_copies import commit_transfers, wait_for_transfers
from .asynchronous.bulk_issue import check_prefetch, start_exchange, start_load, start_store
from .asynchronous.cancellations import start_cancel
from .asynchronous.mbarrier_memory import check_intact
from .asynchronous.mbarriers import (
    arrive_at_phase,
    complete_bytes,
    drop_from_phase,
    expect_bytes,
    initialise_phase,
    invalidate_phase,
    layout_of_phase,
    wait_for_phase,
)
from .asynchronous.tensor_issue import check_map
from .asynchronous.wgmma import commit_products, compare_products, read_matrix, wait_for_products
from .memory.block_independence import put_back, share_bytes
from .memory.memory import (
    call_host,
    enter,
    fail,
    find_callee,
    find_memory,
    grow_stack,
    leave,
    owner_of,
    read_clock,
    restore_stack,
    without_own_rank,
)
from .memory.profile import note_request, settle_all
from .order.cluster_order import pass_init_fence
from .order.proxies import pass_proxy_fence
from .order.races import note_cluster, note_generic, note_global, note_local, note_shared
from .order.release_acquire import pass_fence
from .order.synchronization import release_to_phase
from .order.tensor_order import fence_after, fence_before, release_tensor_work, wait_for_cells
from .schedule.barrier import arrive_at_barrier
from .schedule.cluster_barrier import arrive_at_cluster, wait_at_cluster
from .schedule.directed import run_directed
from .schedule.grid import end_broken, go_on_alone, run_grid, take_over
from .schedule.schedule import thread_exit
from .schedule.search import run_search
from .schedule.steps import log_access, log_service
from .tensor_memory.accesses import access_cells, read_cell, route_lanes, write_cell
from .tensor_memory.allocation import allocate_columns, free_columns, relinquish_columns
from .tensor_memory.commits import start_commit
from .tensor_memory.copies import start_tensor_copy
from .tensor_memory.mma import start_mma

RUNTIME: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        arrive_after_copies, arrive_at_barrier, arrive_at_cluster, arrive_at_phase, call_host, check_intact, check_map,
        check_prefetch, commit_copies, commit_products, commit_transfers, compare_products, complete_bytes,
        drop_from_phase, enter, expect_bytes, fail, fill_shared, find_callee, find_memory, grow_stack,
        initialise_phase, invalidate_phase, layout_of_phase, leave, log_access, log_service,
        note_cluster, note_generic, note_global, note_local, note_request, note_shared,
        owner_of, pass_fence, pass_init_fence, pass_proxy_fence, read_clock,
        read_matrix, release_to_phase, restore_stack, start_async_store, start_cancel,
        start_copy, start_exchange, start_load, start_store, thread_exit,
        wait_at_cluster, wait_for_copies, wait_for_phase, wait_for_products, wait_for_transfers, without_own_rank,
        # Tensor memory.
        access_cells, allocate_columns, fence_after, fence_before, free_columns, read_cell, release_tensor_work,
        relinquish_columns, route_lanes, start_commit, start_mma, start_tensor_copy, wait_for_cells, write_cell,
    )
}  # fmt: skip
# Files whose functions few kernels call, or seldom: LLVM takes a quarter of the time for them, and makes slower code.
RARE = frozenset("""
    asynchronous.async_accesses asynchronous.async_stores asynchronous.bulk_copies asynchronous.bulk_issue
    asynchronous.cancellations asynchronous.reductions asynchronous.tensor_issue asynchronous.tensor_maps
    asynchronous.wgmma memory.block_lifetime memory.profile order.cluster_order order.proxies order.reports
    order.tensor_happens_before order.tensor_order schedule.cluster_barrier schedule.clusters schedule.directed
    tensor_memory.accesses tensor_memory.allocation tensor_memory.commits tensor_memory.copies tensor_memory.execution
    tensor_memory.mma tensor_memory.operands tensor_memory.operations
""".split())  # fmt: skip
ENTRIES: tuple[Callable[..., Any], ...] = (
    run_directed, run_grid, run_search, take_over, go_on_alone, end_broken, settle_all, share_bytes, put_back,
)  # fmt: skip

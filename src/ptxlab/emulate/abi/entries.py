"""The functions of the runtime that the host calls, by symbol: importing them takes longer than most launches."""

from __future__ import annotations


def _symbol(name: str) -> str:
    return f"ptxlab.emulate.runtime.{name}"


RUN_GRID = _symbol("schedule.grid.run_grid")
RUN_SEARCH = _symbol("schedule.search.run_search")
RUN_DIRECTED = _symbol("schedule.directed.run_directed")
TAKE_OVER = _symbol("schedule.grid.take_over")
CONTINUE_ALONE = _symbol("schedule.grid.continue_alone")
OBSERVE_ANEW = _symbol("schedule.grid.observe_anew")
END_BROKEN = _symbol("schedule.grid.end_broken")
SETTLE_ALL = _symbol("memory.profile.settle_all")
SHARE_BYTES = _symbol("memory.block_independence.share_bytes")
PUT_BACK = _symbol("memory.block_independence.put_back")
MARK_READS = _symbol("order.watched_reads.mark_reads")
TAKE_OVER_ACCESSES = _symbol("order.earlier_grids.take_over_accesses")

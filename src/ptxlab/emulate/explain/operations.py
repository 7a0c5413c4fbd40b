"""Asynchronous operations as diagnostics name them, and how threads know that each is complete."""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.isa.effects import Effects, Step


@dataclass(frozen=True)
class Operation:
    """What an instruction starts."""

    name: str
    completion: str

    def __str__(self) -> str:
        """`a copy`, `an MMA`"""
        return one(self.name)


def one(name: str) -> str:
    """`a copy`, `an MMA`"""
    return f"an {name}" if name == "MMA" else f"a {name}"


_WARP = "a {0} is complete for its own warp after `{1}`, for others after a later barrier"
_COMMIT = "the {0} is complete when the mbarrier of a `tcgen05.commit` after it completes"
_THREAD_COPY = Operation(
    "copy", "the copy is complete for its thread after `cp.async.wait_group`, for others after a later barrier"
)
_BULK_COPY = Operation(
    "copy", "the copy is complete when its mbarrier completes, or after `cp.async.bulk.wait_group` in its own thread"
)
_STORE = Operation("store", "the store is complete when its mbarrier completes")
_MMA = Operation("MMA", _COMMIT.format("MMA"))

# By what an instruction does with a unit of `isa.asynchronous`.
_OPERATIONS = {
    Step("async_copy", "start"): _THREAD_COPY,
    Step("async_copy", "arrive"): _THREAD_COPY,
    Step("bulk", "start"): _BULK_COPY,
    Step("bulk", "put"): _STORE,
    Step("bulk", "cancel"): _STORE,
    Step("wgmma", "start"): Operation("MMA", "the MMA is complete after `wgmma.wait_group`"),
    Step("tensor_memory", "multiply"): _MMA,
    Step("tensor_memory", "commit"): _MMA,
    Step("tensor_memory", "copy"): Operation("copy", _COMMIT.format("copy")),
    Step("tensor_memory", "load"): Operation("load", _WARP.format("load", "tcgen05.wait::ld")),
    Step("tensor_memory", "store"): Operation("store", _WARP.format("store", "tcgen05.wait::st")),
    Step("tensor_memory", "free"): Operation("deallocation", _COMMIT.format("deallocation")),
    Step("mbarrier", "complete"): Operation("`complete_tx`", ""),
}


def operation_of(effects: Effects) -> Operation:
    """What an instruction starts that has such effects."""
    return next(_OPERATIONS[step] for step in effects.steps if step in _OPERATIONS)

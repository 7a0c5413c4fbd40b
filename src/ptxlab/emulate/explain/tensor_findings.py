"""Unsynchronized accesses to tensor memory, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import state
from ptxlab.emulate.explain.causes import synchronizations_before
from ptxlab.isa.tensor_memory import COLUMNS
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.explain.accesses import Party
    from ptxlab.emulate.host.running import Launch

_NAMES = {"ld": "load", "st": "store", "mma": "MMA", "cp": "copy", "shift": "shift", "dealloc": "deallocation"}
_DOES = {state.LOAD: "reads", state.STORE: "writes", state.ATOMIC: "changes"}
_WHERE = {"load": "load of tensor memory", "store": "store to tensor memory"}
_DONE = {
    "load": "a load is complete for its own warp after `tcgen05.wait::ld`, for others after a later barrier",
    "store": "a store is complete for its own warp after `tcgen05.wait::st`, for others after a later barrier",
}
_COMMIT = "the {} is complete when the mbarrier of a `tcgen05.commit` after it completes"


def explain_tensor_race(
    launch: Launch, earlier: Party, later: Party, first: str, second: str, cells: str, is_started: bool
) -> Diagnostic:
    """Operations on the same tensor memory without order; `is_started`: the first is only not known to be done."""
    if "deallocation" in (_work(launch, earlier), _work(launch, later)):
        return _explain_use_after_free(launch, earlier, later, first, second, cells)
    before, after = _work(launch, earlier), _work(launch, later)
    span = launch.span_of(earlier.instruction)
    done = _DONE.get(before, _COMMIT.format(before))
    still, label, notes = "still ", f"before the {before} was known to be complete", [done]
    if not is_started:
        still, label, notes = "", f"not ordered with the {before}", ["no barrier or mbarrier orders the two", done]
    if launch.seed:
        notes.append(f"replay with `--seed {launch.seed}`")
    return error(
        "data-race",
        ("" if is_started else "unsynchronized: ")
        + f"{one(after)} {_DOES[later.kind]} tensor memory that {one(before)} {still}{_DOES[earlier.kind]}",
        launch.span_of(later.instruction),
        f"{second} started it at {cells}, {label}",
        others=[] if span is None else [Label(span, f"{first} started the {before}")],
        notes=notes,
    )


def _explain_use_after_free(
    launch: Launch, earlier: Party, later: Party, first: str, second: str, cells: str
) -> Diagnostic:
    """Operations that a deallocation does not wait for: they may use what is no longer the block's."""
    use, free, user, freer = earlier, later, first, second
    if _work(launch, earlier) == "deallocation":
        use, free, user, freer = later, earlier, second, first
    work = _work(launch, use)
    span = launch.span_of(free.instruction)
    notes = [
        f"nothing makes sure that the {work} is complete when the memory is freed",
        _DONE.get(work, _COMMIT.format(work)),
    ]
    if launch.seed:
        notes.append(f"replay with `--seed {launch.seed}`")
    return error(
        "use-after-free",
        f"{one(work)} may use tensor memory after `tcgen05.dealloc` has freed it",
        launch.span_of(use.instruction),
        f"{user} started it at {cells}",
        others=[] if span is None else [Label(span, f"{freer} frees it")],
        notes=notes,
        helps=["`bar.sync`, or another barrier of all warps that use the memory, before `tcgen05.dealloc`"],
    )


def explain_missing_fence(
    launch: Launch, earlier: Party, later: Party, first: str, second: str, cells: str
) -> Diagnostic:
    """An operation on tensor memory that may run ahead of the synchronization before it."""
    before, after = _work(launch, earlier), _work(launch, later)
    span = launch.span_of(earlier.instruction)
    waits = sorted(synchronizations_before(launch, later.instruction))
    where = "between the synchronization and this line"
    if len(waits) == 1:
        where = f"after {launch.name_line(waits[0], later.instruction)}, where the threads synchronize"
    return warning(
        "missing-tensor-fence",
        f"{one(_WHERE.get(after, after))} may run ahead of the synchronization that orders it after "
        f"{one(_WHERE.get(before, before))}",
        launch.span_of(later.instruction),
        f"{second} started it at {cells}, with no `tcgen05.fence::after_thread_sync` before it",
        others=[] if span is None else [Label(span, f"{first} started the {before}")],
        notes=["operations on tensor memory are ordered after barriers and mbarriers only by such a fence"],
        helps=[f"`tcgen05.fence::after_thread_sync;` {where}"],
    )


def one(name: str) -> str:
    """`a copy`, `an MMA`"""
    return f"an {name}" if name == "MMA" else f"a {name}"


def name_cells(address: int, bytes: int) -> str:
    """Which cells of a lane these are: `lane 32, columns 0..64`."""
    lane, column = divmod(address // 4, COLUMNS)
    return f"lane {lane}, columns {column}..{column + bytes // 4}"


def _work(launch: Launch, party: Party) -> str:
    words = launch.compiled.places[party.instruction][1].opcode.modifiers
    return next(_NAMES[word] for word in words if word in _NAMES)

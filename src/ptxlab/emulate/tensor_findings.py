"""Accesses to tensor memory without order, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate import state
from ptxlab.isa.tensor_memory import COLUMNS
from ptxlab.report import Diagnostic, Label, error, warning

if TYPE_CHECKING:
    from ptxlab.emulate.findings import Party
    from ptxlab.emulate.running import Launch

_NAMES = {"ld": "load", "st": "store", "mma": "product", "cp": "copy", "shift": "shift", "dealloc": "deallocation"}
_DOES = {state.LOAD: "reads", state.STORE: "writes", state.ATOMIC: "changes"}
_WAIT = {
    "load": "`tcgen05.wait::ld` in its warp tells that a load is done, a barrier behind it tells other warps",
    "store": "`tcgen05.wait::st` in its warp tells that a store is done, a barrier behind it tells other warps",
    "deallocation": "what is given back may be allocated by another block at once",
}
_COMMIT = "the mbarrier of a `tcgen05.commit` behind it tells that a {} is done"


def explain_tensor_race(
    launch: Launch, earlier: Party, later: Party, first: str, second: str, cells: str
) -> Diagnostic:
    """Work on tensor memory that uses cells which other work still uses."""
    before, after = _work(launch, earlier), _work(launch, later)
    span = launch.span_of(earlier.instruction)
    notes = [_WAIT.get(before, _COMMIT.format(before))]
    if launch.seed:
        notes.append(f"replay with `--seed {launch.seed}`")
    return error(
        "data-race",
        f"a {after} {_DOES[later.kind]} tensor memory that a {before} still {_DOES[earlier.kind]}",
        launch.span_of(later.instruction),
        f"{second} began it at {cells}, not knowing that the {before} is done",
        others=[] if span is None else [Label(span, f"{first} began the {before}")],
        notes=notes,
    )


def explain_missing_fence(
    launch: Launch, earlier: Party, later: Party, first: str, second: str, cells: str
) -> Diagnostic:
    """Work on tensor memory that may run ahead of the synchronisation before it."""
    before, after = _work(launch, earlier), _work(launch, later)
    span = launch.span_of(earlier.instruction)
    return warning(
        "missing-tensor-fence",
        f"a {after} of tensor memory may run ahead of the synchronisation that puts it behind a {before}",
        launch.span_of(later.instruction),
        f"{second} began it at {cells}, with no `tcgen05.fence::after_thread_sync` before",
        others=[] if span is None else [Label(span, f"{first} began the {before}")],
        notes=["what is begun on tensor memory waits for barriers and mbarriers only behind such a fence"],
        helps=["`tcgen05.fence::after_thread_sync;` between the synchronisation and this line"],
    )


def name_cells(address: int, bytes: int) -> str:
    """Which cells of a lane these are: `lane 32, columns 0..64`."""
    lane, column = divmod(address // 4, COLUMNS)
    return f"lane {lane}, columns {column}..{column + bytes // 4}"


def _work(launch: Launch, party: Party) -> str:
    words = launch.compiled.places[party.instruction][1].opcode.modifiers
    return next(_NAMES[word] for word in words if word in _NAMES)

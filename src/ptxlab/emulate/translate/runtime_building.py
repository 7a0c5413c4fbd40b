"""The runtime from source: all of it, or in haste what one kernel needs. It is imported where the cache has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ptxlab.emulate.runtime.asynchronous.bulk_copies import finish_transfers, next_transfer
from ptxlab.emulate.runtime.asynchronous.network import deliver_network, finish_network, network_of
from ptxlab.emulate.runtime.memory.profile import settle_all
from ptxlab.emulate.runtime.memory.recording import is_launch_recorded
from ptxlab.emulate.runtime.order.earlier_grids import take_over_accesses
from ptxlab.emulate.runtime.schedule.directed import run_directed
from ptxlab.emulate.runtime.schedule.schedule import deliver_operations, deliver_transfers
from ptxlab.emulate.runtime.table import COLLECTIVES, ENTRIES, MULTIPLYING, RARE, RUNTIME
from ptxlab.emulate.runtime.tensor_memory.execution import finish_operations
from ptxlab.emulate.runtime.tensor_memory.operations import next_operation
from ptxlab.emulate.translate.building import packed
from ptxlab.native.apart import compile_at_once
from ptxlab.native.engine import VECTORS, compile_text
from ptxlab.native.functions import signature
from ptxlab.native.translate import callees, emit, reachable

# What completes asynchronous operations, and does nothing where there are none, by what each of them starts with.
COMPLETING = {
    next_transfer: (deliver_transfers, finish_transfers),
    network_of: (deliver_network, finish_network),
    next_operation: (deliver_operations, finish_operations),
}
# What the host calls for launches that wait for all of the runtime: those of `explore`, profiles and chains.
PATIENT = {run_directed, settle_all, take_over_accesses}


def compile_hastily(records: bool, calls: Sequence[str]) -> bytes:
    """Compile what the host and a kernel need of the runtime, and do not optimize it; `calls` are in `Calls`."""
    collectives = {signature(function).symbol: function for function in COLLECTIVES}
    called = [RUNTIME.get(name) or collectives[name] for name in calls]
    started = {*reachable(called, [function for functions in COMPLETING.values() for function in functions])}
    idle = [function for start, functions in COMPLETING.items() if start not in started for function in functions]
    entries = [function for function in ENTRIES if function not in PATIENT]
    known = _known(records) | dict.fromkeys(idle, False)
    return packed([compile_text(emit(list(dict.fromkeys([*entries, *called])), known=known), speed=0)])


def _known(records: bool) -> dict[Callable[..., Any], bool]:
    """Where nothing is recorded, nothing asks whether it is."""
    return {} if records else {is_launch_recorded: False}


def compile_runtime(records: bool) -> bytes:
    """Compile the runtime; what few kernels run with less effort, so that the first launch does not wait for it.

    One that `records` is for launches that are recorded, each of them once: it is made with less effort as a whole.

    Many changes of the source leave the LLVM IR as it was: what was made of that is kept as well.
    """
    roots = [*RUNTIME.values(), *COLLECTIVES, *ENTRIES]
    everything = reachable(roots)
    texts = []
    for speed in (1, VECTORS) if records else (2, 1, VECTORS):
        own = [function for function in everything if _effort(function, records) == speed]
        others = [function for function in everything if _effort(function, records) != speed]
        called = _called(others)
        doors = [function for function in own if function in roots or function in called]
        elsewhere = [function for function in others if not signature(function).inline]
        texts.append((emit(doors, elsewhere=elsewhere, known=_known(records)), speed))
    return packed(compile_at_once(texts))


def _called(functions: Iterable[Callable[..., object]]) -> set[Callable[..., Any]]:
    """What functions call, also from within what is inlined into them."""
    found: set[Callable[..., Any]] = set()
    pending = list(functions)
    while pending:
        for callee in callees(pending.pop()):
            if callee not in found:
                found.add(callee)
                if signature(callee).inline:
                    pending.append(callee)
    return found


def _effort(function: Callable[..., object], records: bool) -> int:
    """How much a function is optimized: less if few kernels call it, as those of other packages, which serve MMAs."""
    module = function.__module__
    if module in MULTIPLYING:
        return VECTORS
    is_rare = not module.startswith("ptxlab.emulate.") or module.removeprefix("ptxlab.emulate.runtime.") in RARE
    return 1 if records or is_rare else 2

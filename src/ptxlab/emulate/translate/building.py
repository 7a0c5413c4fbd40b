"""Machine code from source: the runtime, and one kernel. It is imported where nothing in the cache serves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ptxlab import ir
from ptxlab.check.launch import registers_at_start
from ptxlab.device.record import Recorded
from ptxlab.emulate.runtime.asynchronous.bulk_copies import next_transfer
from ptxlab.emulate.runtime.memory.recording import is_launch_recorded
from ptxlab.emulate.runtime.schedule.schedule import deliver_operations, deliver_transfers
from ptxlab.emulate.runtime.table import COLLECTIVES, ENTRIES, MULTIPLYING, RARE, RUNTIME
from ptxlab.emulate.runtime.tensor_memory.operations import next_operation
from ptxlab.emulate.translate import effort
from ptxlab.emulate.translate.arithmetic import Arithmetic
from ptxlab.emulate.translate.refuse import refuse
from ptxlab.emulate.translate.unit import Unit
from ptxlab.ir.shapes import match_of
from ptxlab.native.apart import compile_at_once
from ptxlab.native.cache import Provisional
from ptxlab.native.engine import VECTORS, compile_text
from ptxlab.native.functions import signature
from ptxlab.native.translate import callees, emit, reachable

# What lets asynchronous operations continue, by what each of them starts with.
DELIVERED = {next_transfer: deliver_transfers, next_operation: deliver_operations}


def compile_hastily(records: bool, calls: Sequence[str]) -> bytes:
    """Compile what the host and a kernel need of the runtime, and do not optimize it; `calls` are in `Calls`."""
    collectives = {signature(function).symbol: function for function in COLLECTIVES}
    called = [RUNTIME.get(name) or collectives[name] for name in calls]
    reached = {*reachable(called)}
    known = _known(records) | {deliver: False for start, deliver in DELIVERED.items() if start not in reached}
    return _packed([compile_text(emit(list(dict.fromkeys([*ENTRIES, *called])), known=known), speed=0)])


def _known(records: bool) -> dict[Callable[..., Any], bool]:
    """Where nothing is recorded, nothing asks whether it is."""
    return {} if records else {is_launch_recorded: False}


def compile_runtime(records: bool) -> bytes:
    """Compile the runtime; what few kernels run with less effort, so that the first launch does not wait for it.

    One that `records` is for launches that are recorded.

    Many changes of the source leave the LLVM IR as it was: what was made of that is kept as well.
    """
    roots = [*RUNTIME.values(), *COLLECTIVES, *ENTRIES]
    everything = reachable(roots)
    texts = []
    for speed in (2, 1, VECTORS):
        own = [function for function in everything if _effort(function) == speed]
        others = [function for function in everything if _effort(function) != speed]
        called = _called(others)
        doors = [function for function in own if function in roots or function in called]
        elsewhere = [function for function in others if not signature(function).inline]
        texts.append((emit(doors, elsewhere=elsewhere, known=_known(records)), speed))
    return _packed(compile_at_once(texts))


def _called(functions: Iterable[Callable[..., Any]]) -> set[Callable[..., Any]]:
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


def _effort(function: Callable[..., object]) -> int:
    """How much a function is optimized: less if few kernels call it, as those of other packages, which serve MMAs."""
    module = function.__module__
    if module in MULTIPLYING:
        return VECTORS
    return (
        2 if module.startswith("ptxlab.emulate.") and module.removeprefix("ptxlab.emulate.runtime.") not in RARE else 1
    )


def translate_kernel(
    module: ir.Module,
    kernel: ir.Function,
    checks: bool,
    profile: bool,
    preemption: int,
    arithmetic: Arithmetic,
    record: Recorded | None,
    until: float | None,
    together: bool = False,
) -> bytes:
    """A kernel as machine code, and what running it needs to know."""
    refuse(module, kernel)
    begin = partial(Unit, module, kernel, checks, profile, preemption, arithmetic=arithmetic, record=record)
    begin = partial(begin, together=together)
    unit, codes = effort.make(begin, until)
    facts = {
        "calls": sorted(unit.calls.runtime_functions),
        "hints": unit.hints,
        "pairs": unit.pairs,
        "contracted": unit.contracted,
        "counters": unit.counting.counters,
        "traffic": unit.counting.traffic,
        "amounts": unit.counting.amounts,
        "profile_sites": unit.counting.profile_sites,
        "exchange_words": unit.calls.exchange_words,
        "frame_sizes": unit.frame_sizes,
        "registers": -(-(registers_at_start(kernel) or 0) // 8) * 8,
        "local_sizes": unit.local_sizes,
        "talks": unit.talks,
        "lanes": unit.together and not unit.apart and not unit.flat,
        "apart": unit.apart,
        "never_waits": all(
            match is None or not match.effects.barrier for match in map(match_of, kernel.instructions())
        ),
        "single_counters": unit.single_counters,
        "clock": "read_clock" in unit.calls.runtime_functions,
        "stack": unit.uses_stack,
        "written": unit.tracking.written,
        "changes": sorted(unit.counting.changes),
        "looks": [
            counter
            for far in (True, False)
            for counter in sorted(unit.counting.looks)
            if unit.counting.looks[counter] is far
        ],
        "far": sum(unit.counting.looks.values()),
        "timed_slots": unit.timed_slots,
        "address_slots": unit.address_slots,
        "segments": [] if unit.recording is None else unit.recording.table(),
    }
    packed = _packed([json.dumps(facts).encode(), *codes])
    return Provisional(packed) if unit.hurried else packed


def _packed(parts: Sequence[bytes]) -> bytes:
    """Parts one after another, each after its size."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)

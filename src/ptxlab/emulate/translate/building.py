"""One kernel from source. It is imported where the cache does not have its machine code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from ptxlab import ir
from ptxlab.check.launch import registers_at_start
from ptxlab.device.record import Recorded
from ptxlab.emulate.translate import effort
from ptxlab.emulate.translate.arithmetic import Arithmetic
from ptxlab.emulate.translate.refuse import refuse
from ptxlab.emulate.translate.unit import Unit
from ptxlab.ir.shapes import match_of
from ptxlab.isa.effects import Effects
from ptxlab.native.cache import Provisional


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
        "never_waits": not any(
            match is not None and _may_wait(match.effects, unit.tracking.checks)
            for match in map(match_of, kernel.instructions())
        ),
        "group": unit.group,
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
    made = packed([json.dumps(facts).encode(), *codes])
    return Provisional(made) if unit.hurried else made


def packed(parts: Sequence[bytes]) -> bytes:
    """Parts one after another, each after its size."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _may_wait(effects: Effects, checks: bool) -> bool:
    """Whether lanes may stop at an instruction, or it changes what detectors know of their threads."""
    if effects.barrier or effects.converges:
        return True
    return checks and any(access.kind == "update" for access in effects.accesses)

"""What the units beside the threads did: TMA copies, MMAs, tensor memory; and how many waves of blocks it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.abi.amounts import COLLECTED, EXCHANGED, FLOPS, LOADED, MULTICAST, OPERANDS, STORED
from ptxlab.isa import Match
from ptxlab.isa.gpus import SMS
from ptxlab.isa.occupancy import limits_of, occupancy
from ptxlab.isa.units.tensor_memory import COLUMNS
from ptxlab.values import Json

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

COPIES = (LOADED, MULTICAST, STORED, EXCHANGED)


def count_units(running: RunningLaunch, times: Sequence[int], counters: Sequence[int]) -> Json:
    """The counters of those units that the kernel used, and the waves of its blocks."""
    amounts: dict[str, int] = {}
    operations: dict[int, int] = {}
    for number, name, counter in running.compiled.facts["amounts"]:
        amounts[name] = amounts.get(name, 0) + counters[counter]
        if name == FLOPS:
            operations[number] = counters[counter]
    found: Json = {}
    copied = {name: amounts[name] for name in COPIES if amounts.get(name)}
    if copied:
        found["tma"] = copied
    operands = {name: amounts[name] for name in (OPERANDS, COLLECTED) if amounts.get(name)}
    multiplied = _mmas(running.compiled.matches, times, operations, operands)
    if multiplied:
        found["mmas"] = multiplied
    columns = max(worker.record.get("tensor_columns") for worker in running.workers)
    if columns:
        found["tensor_memory"] = {"columns": columns}
    waves = _waves(running, columns)
    if waves is not None:
        found["waves"] = waves
    return found


def _mmas(
    matches: Sequence[Match | None], times: Sequence[int], described: dict[int, int], operands: dict[str, int]
) -> dict[str, dict[str, int]]:
    """How many MMAs each unit did, and their multiplications and additions.

    Those that an instruction descriptor describes also have the bytes of their `operands`.
    """
    found: dict[str, dict[str, int]] = {}
    for number, match in enumerate(matches):
        size = match.effects.mma if match is not None and times[number] else None
        if size is None:
            continue
        count = times[number] // size.threads
        here = found.setdefault(size.unit, {"count": 0, "flops": 0})
        here["count"] += count
        here["flops"] += described.get(number, 0) if size.operations is None else count * size.operations
        if size.operations is None:
            here |= operands
    return found


def _waves(running: RunningLaunch, columns: int) -> Json | None:
    """How often the GPU is filled with blocks, as far as threads, shared and tensor memory decide; None: not known.

    Registers are left out: only ptxas knows how many a thread has.
    """
    gpu = running.compiled.arithmetic.gpu
    held = occupancy(gpu.target, math.prod(running.block), 0, running.shared_size)
    if gpu.name not in SMS or limits_of(gpu.target) is None or held is None or held.blocks == 0:
        return None
    blocks, limiter = held.blocks, held.limiter
    if columns and COLUMNS // columns < blocks:
        blocks, limiter = COLUMNS // columns, "tensor memory"
    resident = blocks * SMS[gpu.name]
    return {
        "blocks": running.total,
        "blocks_per_sm": blocks,
        "limiter": limiter,
        "resident": resident,
        "gpu": gpu.name,
        "waves": running.total / resident,
    }

"""What a launch executed and moved, from how often each basic block ran: exact, and free of charge.

An instruction counts each time a thread executes it. One whose guard does not hold does nothing and does not count;
branches and returns count each time they are reached.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.device.fidelity import Fidelity
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.amounts import is_counted_apart
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.unit_counters import count_units
from ptxlab.isa import Match
from ptxlab.isa.evidence import Evidence, evidence_of
from ptxlab.isa.opcode import Candidate
from ptxlab.native import offset_of
from ptxlab.values import Json

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

KINDS = {address_spaces.LOAD: "read", address_spaces.STORE: "written", address_spaces.ATOMIC: "updated"}
TALLIES = (
    "global_requests",
    "sectors",
    "ideal_sectors",
    "cache_lines",
    "fetched",
    "shared_requests",
    "wavefronts",
    "ideal_wavefronts",
)
# The class of an instruction, by its chapter of the manual; a chapter that is not listed is its own class.
_CLASSES = {
    "arithmetic": "integer floating_point half mixed_precision alternate extended_precision video logic compare "
    "convert",
    "move": "move miscellaneous stack",
    "memory": "memory multimem texture surface",
    "atomic": "atomic",
    "copy": "async_copy bulk_copy tensor_copy tensormap",
    "control": "control",
    "barrier": "barrier mbarrier mbarrier_wait cluster",
    "warp": "warp",
    "tensor": "matrix matrix_move matrix_scaled matrix_sparse matrix_wmma wgmma tcgen05 tcgen05_mma tcgen05_scaled",
}
_CLASS = {chapter: name for name, chapters in _CLASSES.items() for chapter in chapters.split()}


def count(running: RunningLaunch) -> tuple[Json, Fidelity]:
    """What was executed: instructions and bytes, by kind and by line; and how faithful it was."""
    compiled = running.compiled
    code = [instruction for _, instruction in compiled.instructions]
    counters = [sum(found) for found in zip(*(worker.counters for worker in running.workers), strict=True)]
    times = _times(code, compiled.facts["counters"], counters)
    lines: dict[int, dict[str, int]] = {}
    at = [running.line_of(number) or 0 for number in range(len(code))]
    by_instruction: dict[str, int] = {}
    by_class: dict[str, int] = {}
    by_form: dict[Candidate | None, int] = {}
    for number, instruction in enumerate(code):
        if times[number]:
            match = compiled.matches[number]
            _add(by_instruction, instruction.opcode.mnemonic, times[number])
            _add(by_class, class_of(match), times[number])
            _add(by_form, None if match is None else match.candidate, times[number])
            _add(lines.setdefault(at[number], {"instructions": 0}), "instructions", times[number])
    bytes: dict[str, dict[str, int]] = {}
    for number, space, kind, size, counter in compiled.facts["traffic"]:
        moved = size * (times[number] if counter < 0 else counters[counter])
        if moved:
            _add(bytes.setdefault(space, {}), KINDS[kind], moved)
            _add(lines[at[number]], "bytes", moved)
    found = {
        "instructions": sum(times),
        "by_class": _descending(by_class),
        "by_instruction": _descending(by_instruction),
        "bytes": bytes,
        "lines": dict(sorted(lines.items())),
        **count_units(running, times, counters),
    }
    if running.is_together:
        first = compiled.facts["single_counters"]
        found["together"] = sum(_times(code, compiled.facts["counters"][first:], counters[first:]))
    if running.profiles:
        found["requests"] = _requests(running, at, lines)
        found["patterns"] = _patterns(running, at)
    return found, fidelity_of(running, by_form)


def fidelity_of(running: RunningLaunch, by_form: dict[Candidate | None, int]) -> Fidelity:
    """What is known of the results of what was executed; a call has none of its own."""
    compiled = running.compiled
    counts: dict[str, dict[str, int]] = {kind: {} for kind in Evidence}
    for candidate, times in by_form.items():
        if candidate is not None:
            kind = evidence_of(candidate, compiled.arithmetic.architecture)
            _add(counts[kind], ".".join(candidate.form.name), times)
    return Fidelity(
        compiled.arithmetic.gpu.name,
        counts[Evidence.MEASURED],
        counts[Evidence.DEFINED],
        counts[Evidence.MODELLED],
        counts[Evidence.APPROXIMATE],
        contract=compiled.arithmetic.contract,
        pairs=compiled.facts["pairs"],
        contracted=compiled.facts["contracted"],
    )


def _times(code: list[ir.Instruction], blocks: list[tuple[int, int]], counters: list[int]) -> list[int]:
    """How often each instruction was executed."""
    times = [0] * len(code)
    for (start, end), count in zip(blocks, counters, strict=False):
        if start == end and start >= 0:
            times[start] += count
        for number in range(start, end):
            if not is_counted_apart(code[number]):
                times[number] += count
    return times


def _requests(running: RunningLaunch, at: list[int], lines: dict[int, dict[str, int]]) -> dict[str, int]:
    """What the requests of all warps came to, in total and added to each line."""
    total = dict.fromkeys(TALLIES, 0)
    for site, number in enumerate(running.compiled.facts["profile_sites"]):
        for name in TALLIES:
            found = sum(tallies.get(name, site) for _, _, tallies in running.profiles)
            if found:
                total[name] += found
                _add(lines.setdefault(at[number], {"instructions": 0}), name, found)
    total["split_requests"] = sum(record.get("split") for record, _, _ in running.profiles)
    return total


def _patterns(running: RunningLaunch, at: list[int]) -> dict[int, Json]:
    """For each line that accesses memory, the costliest request: its bytes a lane, and the address of each lane."""
    from ptxlab.emulate.runtime.memory.profile import Request, Tally

    found: dict[int, tuple[int, Json]] = {}
    for site, number in enumerate(running.compiled.facts["profile_sites"]):
        for _, _, tallies in running.profiles:
            cost = tallies.get("cost", site)
            if cost > found.get(at[number], (0, {}))[0]:
                request = StructArray.at(
                    Request, tallies.address + site * tallies.stride + offset_of(Tally, "costliest")
                )
                addresses = (ctypes.c_uint64 * 32).from_address(request.address + offset_of(Request, "addresses"))
                found[at[number]] = cost, _pattern(request, addresses)
    return {line: pattern for line, (_, pattern) in sorted(found.items())}


def _pattern(request: StructArray, addresses: ctypes.Array[ctypes.c_uint64]) -> Json:
    lanes = request.get("lanes")
    return {
        "space": "shared" if request.get("shared") else "global",
        "size": request.get("size"),
        "addresses": [addresses[lane] if lanes >> lane & 1 else None for lane in range(32)],
    }


def class_of(match: Match | None) -> str:
    """The kind of work that an instruction is."""
    if match is None:
        return "control"
    return _CLASS.get(match.form.chapter, match.form.chapter)


def _add(counts: dict[Any, int], key: object, more: int) -> None:
    counts[key] = counts.get(key, 0) + more


def _descending(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

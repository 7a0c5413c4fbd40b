"""What a recorded launch must be for the rest of `trace` to rely on: a file may be damaged, or a stranger's.

`description_problem` is asked before the kernel is read, `content_problem` after: what is wrong, or None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device.trace_format import NO_BLOCK, TURN, WRITTEN
from ptxlab.values import Json

if TYPE_CHECKING:
    from ptxlab.trace.columns import Columns, Segment, Slot
    from ptxlab.trace.program import RecordedProgram

_TEXTS = ("name", "text", "kernel", "parameters")
_EXTENTS = {"grid": (2**31 - 1, 65535, 65535), "block": (1024, 1024, 64), "cluster": (16, 16, 16)}
_NUMBERS = {"seed": 1 << 64, "shared": 1 << 24, "local": 1 << 24, "limit": 1 << 64}  # and what is more than possible
_ACCESS = re.compile(r"(global|shared|local|param|const|generic|cluster) (\d{1,9})")
_ACCESSES = ("load", "store", "update")
_MOST = 1 << 31  # bytes of the payload of a segment
_LAST_EVENT = TURN


def _numbers(given: object, *limits: int) -> bool:
    """Whether something is a list of integers, each from 0 to below its limit."""
    return (
        isinstance(given, list)
        and len(given) == len(limits)
        and all(type(one) is int and 0 <= one < limit for one, limit in zip(given, limits, strict=True))
    )


def _is_list(given: object, holds: Callable[[Any], bool]) -> bool:
    return isinstance(given, list) and all(map(holds, given))


def _is_text(given: object) -> bool:
    return isinstance(given, str)


def description_problem(given: object) -> str | None:
    """What is wrong with the description by itself."""
    if not isinstance(given, dict):
        return "its description is not an object"
    wrong = [name for name in _TEXTS if not _is_text(given.get(name))]
    wrong += [name for name, limit in _NUMBERS.items() if not _numbers([given.get(name)], limit)]
    for name, most in _EXTENTS.items():
        if not _numbers(given.get(name), *(extent + 1 for extent in most)) or not all(given[name]):
            wrong.append(name)
    wrong += [name for name, of in (("regions", _is_region), ("segments", _is_segment))
              if not _is_list(given.get(name), of)]  # fmt: skip
    chains, calls = (given.get(name, []) for name in ("chains", "calls"))  # older files have none
    if not _is_list(chains, lambda one: one != [] and _is_list(one, _is_frame)):
        wrong.append("chains")
    elif not _is_list(calls, lambda one: _numbers(one, 1 << 62, len(chains))):
        wrong.append("calls")
    if not _is_place(given.get("together")):
        wrong.append("together")
    if not wrong and not re.fullmatch("([0-9a-f]{2})*", given["parameters"]):
        wrong.append("parameters")
    if not wrong and np.prod(given["block"]) > 1024:
        wrong.append("block")
    return f"`{wrong[0]}` of its description is missing or impossible" if wrong else None


def _is_place(given: object) -> bool:
    """Whether something says which of the launches that ran at the same time a launch is, if there were others."""
    if given is None:
        return True
    numbers = ("number", "count", "rank", "stream")
    return (
        isinstance(given, dict)
        and given.keys() == {*numbers, "title", "is_kernel"}
        and _numbers([given[name] for name in numbers], *[1 << 16] * len(numbers))
        and _is_text(given["title"])
        and isinstance(given["is_kernel"], bool)
    )


def _is_region(given: object) -> bool:
    return (
        isinstance(given, dict)
        and _numbers([given.get("base"), given.get("size")], 1 << 62, 1 << 62)
        and _is_text(given.get("name"))
        and _is_text(given.get("dtype"))
        and _is_list(given.get("shape"), lambda one: _numbers([one], 1 << 62))
        and len(given["shape"]) <= 64
    )


def _is_segment(given: object) -> bool:
    return (
        isinstance(given, dict)
        and _numbers([given.get(name) for name in ("function", "flags", "size")], 1 << 24, 4, _MOST)
        and _is_list(given.get("steps"), lambda one: _is_list(one, lambda each: type(each) is int) and len(one) == 2)
        and _is_list(given.get("slots"), _is_slot)
    )


def _is_frame(given: Any) -> bool:
    is_right = isinstance(given, list) and len(given) == 3 and _is_text(given[0]) and _is_text(given[2])
    return is_right and _numbers(given[1:2], 1 << 31)


def _is_slot(given: object) -> bool:
    return (
        isinstance(given, list)
        and len(given) == 7
        and _is_text(given[1])
        and _is_text(given[2])
        and all(type(given[at]) is int for at in (0, 3, 4, 5, 6))
    )


def content_problem(columns: Columns, program: RecordedProgram, description: Json) -> str | None:
    """What is wrong with segments, which are of the kernel, and with entries, events and memory of the launch."""
    for segment in columns.segments:
        if not _is_of(segment, program):
            return "a segment is not of the kernel"
    blocks = int(np.prod([int(one) for one in description["grid"]], dtype=object))
    threads = blocks * int(np.prod(description["block"]))
    if len(columns) and int(columns.thread.max()) >= threads:
        return "it has a thread that the launch does not have"
    if not 0 <= columns.steps <= columns.first_step[-1]:
        return "it has fewer steps than its header says"
    events = columns.events
    written = int(np.where(events["kind"] == WRITTEN, events["size"], 0).sum(dtype=np.int64))
    is_wrong = (events["kind"] < 1) | (events["kind"] > _LAST_EVENT) | (events["thread"] >= threads)
    is_wrong |= (events["block"] >= blocks) & (events["block"] != NO_BLOCK)
    is_wrong |= (events["instruction"] >= len(program.instructions)) | (events["time"] >= 1 << 62)
    if is_wrong.any() or (events["address"] >= 1 << 62).any() or written > len(columns.data):
        return "it has an event that the launch cannot have"
    sizes = [region["size"] for region in description["regions"] if region["size"]]
    if sizes != [len(data) for data in columns.memory]:
        return "its memory is not of the sizes that its description has"
    return None


def _is_of(segment: Segment, program: RecordedProgram) -> bool:
    """Whether a segment is of a function of the kernel, and its parts are inside its payload."""
    if segment.function >= len(program.functions):
        return False
    own = program.numbers_of(segment.function)
    return all(number in own and -1 <= guard < segment.size for number, guard in segment.steps) and all(
        slot.instruction in own
        and slot.offset >= 0
        and slot.bytes >= 0
        and -1 <= slot.guard < segment.size
        and 0 <= slot.order <= len(segment.steps)
        and slot.offset + slot.bytes <= segment.size
        and _is_right(slot, segment, program)
        for slot in segment.slots
    )


def _is_right(slot: Slot, segment: Segment, program: RecordedProgram) -> bool:
    """Whether what a slot holds is known, and has as many bytes as it says."""
    if slot.role == "register":
        type = program.find_type(segment.function, slot.what)
        return type is not None and slot.bytes == max(type.width // 8, 1)
    if slot.role in _ACCESSES:
        found = _ACCESS.fullmatch(slot.what)
        stored = int(found[2]) if found and slot.role != "load" else 0
        return found is not None and slot.bytes in (4, 8) and slot.offset + slot.bytes + stored <= segment.size
    return slot.role in ("guard", "value")


def read_findings(data: bytes) -> list[Json] | None:
    """The findings in a chunk of the file; None if they cannot be read."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    return found if _is_list(found, _is_finding) else None


def _is_finding(given: object) -> bool:
    texts, lists = ("level", "code", "message", "text"), {"labels", "notes", "helps", "accesses"}
    return (
        isinstance(given, dict)
        and given.keys() - {"place"} == {*texts, "line", *lists}
        and all(_is_text(given[name]) for name in (*texts, *given.keys() & {"place"}))
        and given["level"] in ("error", "warning")
        and _numbers([given["line"]], 1 << 62)
        and _is_list(given["notes"], _is_text)
        and _is_list(given["helps"], _is_text)
        and _is_list(given["labels"], lambda one: isinstance(one, list) and len(one) == 2 and _numbers(one[:1], 1 << 62)
                     and _is_text(one[1]))
        and _is_list(given["accesses"], _is_access)
    )  # fmt: skip


def _is_access(given: object) -> bool:
    return (
        isinstance(given, dict)
        and {*given} - {"rank", "launch"}
        in ({"line", "block", "thread"}, {"line", "block", "thread", "address", "bytes"})
        and all(_numbers([one], 1 << 40 if name in ("block", "thread") else 1 << 62) for name, one in given.items())
    )

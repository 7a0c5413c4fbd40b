"""What was found of a program, as diagnostics: of host code on its lines, of kernels as a launch reports them."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import replace

from ptxlab.ir.mangled import plain
from ptxlab.programs.lines import HostLines
from ptxlab.programs.log import AllocationRecord, HostFinding, Log
from ptxlab.report import Diagnostic, Label, error, warning

_NOTES, _OF_FREED = ("leak", "missing-device", "out-of-memory", "failed-launch"), ("use-after-free", "double-free")
_ALLOCATION = re.compile(r"(?<![\w])allocation (\d+)\b")


def findings_of(log: Log, lines: HostLines, status: int) -> list[Diagnostic]:
    """All findings, those of kernels first, each once."""
    lines.read([*(one.frames for one in log.host), *log.launched_at.values()])
    found = [_of_device(one, log, lines) for one in _distinct(log.device)]
    seen: set[tuple[str, str]] = set()
    is_without_ptx = any(one.code == "no-ptx" for one in log.device)  # so that no launch succeeds
    for one in log.host:
        if one.code == "unchecked-error" and is_without_ptx:
            continue
        made = _of_host(one, log, lines)
        place = made.labels[0].span.start if made.labels else None
        key = made.code, made.message if place is None else f"{made.labels[0].span.source.name}:{place}"
        if key not in seen:
            seen.add(key)
            found.append(made)
    if status < 0 and not any(one.code in ("program-crash", "host-access", "use-after-free") for one in log.host):
        found.append(error("program-crash", f"the host code of the program was ended by {signal_name(status)}", None))
    return found


def signal_name(status: int) -> str:
    """`SIGSEGV`, for the status of a program that a signal ended."""
    return signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"


def _distinct(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Findings that say the same of other launches are left out."""
    kept: dict[object, Diagnostic] = {}
    for one in found:
        spans = tuple((label.span.source.name, label.span.start, label.span.end) for label in one.labels)
        kept.setdefault((one.code, spans or one.message), one)
    return list(kept.values())


def _of_host(one: HostFinding, log: Log, lines: HostLines) -> Diagnostic:
    make = warning if one.code in _NOTES else error
    span = lines.span(one.frames)
    notes = []
    others: list[Label] = []
    if one.allocation is not None:
        record = log.allocations[one.allocation - 1]
        freed = record.freed if one.code in _OF_FREED else ()
        for frames, words in ((record.made, "allocated here"), (freed, "freed here")):
            at = lines.span(frames) if frames else None
            if at is not None and span is not None and at.source is span.source and at.start != span.start:
                others.append(Label(at, words))
            elif frames and lines.spell(frames):
                notes.append(f"{words.replace(' here', '')} at {lines.spell(frames)}")
    if span is None and (where := lines.spell(one.frames)):
        notes.insert(0, f"at {where}")
    if one.code not in _NOTES and (caller := lines.caller(one.frames)):
        notes.append(f"called at {caller}")
    message = re.sub(r"`(_Z\w+)`", lambda found: f"`{plain(found[1])}`", one.message)
    made = make(one.code, message, span, "", others=others, notes=notes[:3], helps=[one.help] if one.help else [])
    return replace(made, level="note") if one.code in _NOTES else made


def _of_device(one: Diagnostic, log: Log, lines: HostLines) -> Diagnostic:
    """A finding of a kernel, with the places of allocations that it names, and of the launch."""
    texts = [one.message, *(label.text for label in one.labels), *one.notes]
    named = dict.fromkeys(int(number) for text in texts for number in _ALLOCATION.findall(text))
    notes = [note for number in named if (note := _spell(number, log.allocations, lines, texts)) is not None]
    freed = [number for number in named if one.code in _OF_FREED and 1 <= number <= len(log.allocations)]
    places = ((number, lines.spell(log.allocations[number - 1].freed)) for number in freed)
    notes += [f"allocation {number} was freed at {where}" for number, where in places if where]
    launched = log.launched_at.get(next(at for at, other in enumerate(log.device) if other is one), ())
    if launched and (where := lines.spell(launched)):
        notes.append(f"launched at {where}")
    return replace(one, notes=(*one.notes, *notes))


def _spell(number: int, allocations: Sequence[AllocationRecord], lines: HostLines, said: Sequence[str]) -> str | None:
    """The size of an allocation, unless it is said already, and where it was made."""
    if not 1 <= number <= len(allocations):
        return None
    record = allocations[number - 1]
    where = lines.spell(record.made)
    if any(f"allocation {number} has" in text for text in said):
        return f"allocation {number} was made at {where}" if where else None
    return f"allocation {number} has {record.size:,} bytes{f', allocated at {where}' if where else ''}"

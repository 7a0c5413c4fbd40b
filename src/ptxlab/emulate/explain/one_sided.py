"""Synchronization of which there is one side only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.explain.found import Found, replay
from ptxlab.emulate.runtime.order import one_sided
from ptxlab.emulate.runtime.order.observations import READ_FENCED
from ptxlab.report import Diagnostic, warning


def explain_one_sided(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Values that may be older than what a thread has observed: one report for each pair of a write and its read."""
    first: dict[tuple[int, int], Found] = {}
    for one in found:
        first.setdefault((one.record.observation.read, one.record.observation.write), one)
    yield from map(_explain, first.values())


def _explain(found: Found) -> Diagnostic:
    before, after = found.parties
    message = "a strong read may return an older value: only one of two threads synchronizes"
    harm = "an older value may be read"
    if after.kind == address_spaces.ATOMIC:
        message = "an atomic operation may come before one that it should follow: only one of two threads synchronizes"
        harm = "it may come first"
    read, write = found.record.observation.read, found.record.observation.write
    texts = {
        before.instruction: f"{before.who} {before.did} {found.bytes}",
        write: "this is written after it",
        read: "this is observed first" if read != write else "this is written after it, and observed first",
    }
    labels = [found.label(at, text) for at, text in texts.items() if at != after.instruction]
    note, help = _missing(found)
    return warning(
        "one-sided-synchronization",
        message,
        found.span,
        f"{after.who} {after.did} them; {harm}",
        others=chain.from_iterable(labels),
        notes=[note, *replay(found.launch)],
        helps=[help],
    )


def _missing(found: Found) -> tuple[str, str]:
    """Which side there is, and what the other one lacks."""
    seen = found.record.observation
    side, read, write = seen.side, found.line(seen.read), found.line(seen.write)
    if side in (READ_FENCED, one_sided.READ_ACQUIRES):
        acquires = f"{read} acquires" if side == one_sided.READ_ACQUIRES else f"a fence after {read} acquires"
        note = f"{acquires}, but the write on {write} that it observes is not released"
        return note, f"`.release` on {write} or a fence before it, with a scope that includes both threads"
    releases = f"a fence before {write}" if side == one_sided.WRITE_FENCED else write
    note = f"{releases} releases, but the read on {read} that observes it acquires nothing"
    return note, f"`.acquire` on {read} or a fence after it, with a scope that includes both threads"

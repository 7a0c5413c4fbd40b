"""Synchronization of which there is one side only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.accesses import bytes_of, parties_of, replay
from ptxlab.emulate.explain.snapshots import thread_name
from ptxlab.emulate.runtime.order import one_sided
from ptxlab.emulate.runtime.order.observations import READ_FENCED
from ptxlab.report import Diagnostic, Label, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_one_sided(launch: RunningLaunch, found: StructArray, numbers: list[int]) -> Iterator[Diagnostic]:
    """Values that may be older than what a thread has observed: one report for each pair of a write and its read."""
    pairs = {(found.get("third_instruction", one), found.get("observed_write", one)): one for one in reversed(numbers)}
    for number in sorted(pairs.values()):
        yield _explain(launch, found, number)


def _explain(launch: RunningLaunch, found: StructArray, number: int) -> Diagnostic:
    before, after = parties_of(found, number)
    message = "a strong read may return an older value: only one of two threads synchronizes"
    harm = "an older value may be read"
    if after.kind == address_spaces.ATOMIC:
        message = "an atomic operation may come before one that it should follow: only one of two threads synchronizes"
        harm = "it may come first"
    read, write = found.get("third_instruction", number), found.get("observed_write", number)
    texts = {
        before.instruction: f"{thread_name(launch, before.block, before.thread)} {before.did} "
        f"{bytes_of(launch, found, number)}",
        write: "this is written after it",
        read: "this is observed first" if read != write else "this is written after it, and observed first",
    }
    spans = [(launch.span_of(at), text) for at, text in texts.items() if at != after.instruction]
    note, help = _missing(launch, found, number)
    return warning(
        "one-sided-synchronization",
        message,
        launch.span_of(after.instruction),
        f"{thread_name(launch, after.block, after.thread)} {after.did} them; {harm}",
        others=[Label(span, text) for span, text in spans if span is not None],
        notes=[note, *replay(launch)],
        helps=[help],
    )


def _missing(launch: RunningLaunch, found: StructArray, number: int) -> tuple[str, str]:
    """Which side there is, and what the other one lacks."""
    beside, side = found.get("instruction", number), found.get("missing", number)
    read, write = (
        launch.name_line(found.get(name, number), beside) for name in ("third_instruction", "observed_write")
    )
    if side in (READ_FENCED, one_sided.READ_ACQUIRES):
        acquires = f"{read} acquires" if side == one_sided.READ_ACQUIRES else f"a fence after {read} acquires"
        note = f"{acquires}, but the write on {write} that it observes is not released"
        return note, f"`.release` on {write} or a fence before it, with a scope that includes both threads"
    releases = f"a fence before {write}" if side == one_sided.WRITE_FENCED else write
    note = f"{releases} releases, but the read on {read} that observes it acquires nothing"
    return note, f"`.acquire` on {read} or a fence after it, with a scope that includes both threads"

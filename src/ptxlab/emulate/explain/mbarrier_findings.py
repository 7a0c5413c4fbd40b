"""Findings about mbarriers that are not hangs: a wait for another phase than the one that brings the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.mbarrier_hangs import name_mbarrier
from ptxlab.emulate.explain.operations import operation_of
from ptxlab.emulate.explain.snapshots import thread_name
from ptxlab.emulate.runtime.order import reports
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_stale_phase(launch: RunningLaunch, found: StructArray, number: int) -> Diagnostic:
    """A read after a wait that was over before the phase that brings what is read had started."""
    read, write, wait = (found.get(name, number) for name in ("instruction", "other_instruction", "third_instruction"))
    mbarrier = name_mbarrier(launch, found.get("address", number))
    effects = launch.compiled.effects(read)
    subject = f"{operation_of(effects)} reads" if effects.steps else "a thread reads"
    texts = [
        (wait, "this wait is over at once: it is for the parity of the phase before phase 0"),
        (write, "what phase 0 brings is written here, after that"),
    ]
    return error(
        "stale-phase",
        f"{subject} shared memory before the phase that brings the data",
        launch.span_of(read),
        f"{thread_name(launch, found.get('block', number), found.get('thread', number))} reads what was there "
        f"before phase 0 of {mbarrier}",
        others=[Label(span, text) for at, text in texts if (span := launch.span_of(at)) is not None],
        notes=["a later phase of the same mbarrier is seen by no wait: what it brought is lost"],
        helps=["wait for parity 0 first, and flip the parity once for each time that the ring is through"],
    )


def describe_wait(launch: RunningLaunch, found: StructArray, number: int) -> list[str]:
    """A note on the wait of a race that was over too early, if there is one."""
    wait, phases = found.get("third_instruction", number), found.get("wait_phases", number)
    if not wait or found.get("kind", number) != reports.RACE:
        return []
    line = launch.name_line(wait - 1, found.get("instruction", number))
    mbarrier = name_mbarrier(launch, found.get("wait", number))
    if weak := found.get("weak", number):
        what = "wait" if weak == reports.WEAK_WAIT else "arrival"
        return [f"the {what} on {line} hands nothing over: it is `.relaxed`, or its scope is too small"]
    if not phases:
        return [
            f"the wait on {line} was over at once, before phase 0 of {mbarrier}: parity 1 is of the phase before it"
        ]
    return [
        f"the wait on {line} was over by phase {phases - 1} of {mbarrier}; what is awaited here comes with a later one"
    ]

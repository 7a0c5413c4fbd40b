"""A launch that was stopped, by its time limit or by Ctrl-C: which loop it was in, and which threads waited."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import thread_parts
from ptxlab.emulate.explain.polling import spin_around
from ptxlab.emulate.explain.snapshots import WAITING, ThreadSnapshot, do, snapshot_of, thread_name
from ptxlab.isa import Jump
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch


def explain_stop(launch: RunningLaunch, outcome: str, timeout: float | None) -> Diagnostic:
    """Where the kernel was."""
    snapshots = [snapshot for worker in launch.workers if (snapshot := snapshot_of(launch, worker)) is not None]
    launch = launch.of(snapshots[0].number) if snapshots else launch
    reason = f"after {timeout:g} seconds" if outcome == "timeout" and timeout is not None else "by Ctrl-C"
    message = f"the kernel was stopped {reason}"
    done = f"{launch.finished.value} of {launch.total} blocks had ended"
    running = [(snapshot, thread) for snapshot in snapshots for thread in snapshot.threads if _runs(thread)]
    running = running or [
        (snapshot, thread) for snapshot in snapshots for thread in snapshot.threads if thread.status in WAITING
    ]
    if not running:
        return error(
            outcome, message, launch.compiled.module.name_span(launch.compiled.kernel), "this kernel", notes=[done]
        )
    at, _ = Counter(thread.instruction for _, thread in running).most_common(1)[0]
    snapshot = next(snapshot for snapshot, thread in running if thread.instruction == at)
    spinning = [thread for other, thread in running if other is snapshot and thread.instruction == at]
    others, loops = _loop(launch, at)
    helps = ["let the loop end, or raise the time limit"] if loops and outcome == "timeout" else []
    waiting = [thread for thread in snapshot.threads if thread.status in WAITING and thread not in spinning]
    notes = [done]
    if waiting:
        line = launch.name_line(waiting[0].instruction, at)
        notes.append(f"{do(waiting, snapshot.threads, 'waits', 'wait')} meanwhile, on {line}")
    verb = "was here"
    if loops:
        verb = "jumps back here" if launch.compiled.instructions[at][1].opcode.jump is Jump.BRANCH else "loops here"
    return error(
        outcome,
        message,
        launch.span_of(at),
        f"{thread_name(launch, snapshot.number, spinning[0].number)} {verb}{_and_others(len(spinning))}",
        others=others,
        notes=notes,
        helps=helps,
    )


def _runs(thread: ThreadSnapshot) -> bool:
    """Whether a thread could continue; one that has not executed anything yet has not started."""
    return thread.status in (thread_parts.READY, thread_parts.YIELDED) and thread.instruction != 0


def _loop(launch: RunningLaunch, at: int) -> tuple[list[Label], bool]:
    """What is said of the loop around an instruction; false if there is none."""
    spin = spin_around(launch, at)
    if spin is None:
        return [], False
    labels: list[Label] = []
    for number, text in ((spin.start, "the loop starts here"), (spin.look, "it reads memory here")):
        span = None if number is None or number == at else launch.span_of(number)
        if span is not None and all(label.span != span for label in labels):
            labels.append(Label(span, text))
    return labels, True


def _and_others(count: int) -> str:
    return f", and {count - 1} others of its block do" if count > 1 else ""

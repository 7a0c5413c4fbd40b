"""Kernels that wait for the host while the host does not wait for them: both continue in turns.

A kernel that polls what host code writes can't run to its end when the program asks for what it has done so far. It
runs in a thread of its own, and the program continues as soon as no kernel can, until the program waits for the end of
one: if no kernel can continue then, it hangs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ptxlab.programs.queue import Queued, QueuedLaunch
from ptxlab.programs.threads import asleep

if TYPE_CHECKING:
    from ptxlab.programs.runs import Ended, Runner

_PAUSE = 0.0005  # seconds that the host has before kernels ask again whether it has written something
_IDLE = 1.0  # seconds without processor time after which the other threads of a program are taken to wait, too
COMPLETE, SOME_RUN, INCOMPLETE = range(3)
"""What is left of what was issued: nothing, something else than what was asked for, some of what was asked for."""


@dataclass(frozen=True)
class Asked:
    """What the program asks for: the operations that a clock comes after, all without one."""

    waits: bool
    """Whether it waits until they are complete."""
    clock: Sequence[int] | None

    def has(self, one: Queued) -> bool:
        """Whether an operation is among them."""
        stream = one.order.stream
        return self.clock is None or (stream < len(self.clock) and one.order.count <= self.clock[stream])


class Turn:
    """Operations that run in a thread of their own, and may wait for the host."""

    def __init__(self, turns: Turns, operations: Sequence[Queued], asked: Asked) -> None:
        self._turns, self.operations, self.asked = turns, operations, asked
        self.stops = 0  # how often no thread could continue
        self.changes = 0
        self.ended: Ended | None = None
        self.failure: BaseException | None = None
        self._complete: set[int] = set()  # operations, by their positions
        self._together: Sequence[int] = ()
        self._is_stopped = False
        self._seen: tuple[int, dict[Turn, int]] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        turns = self._turns
        try:
            with turns.baton:
                self.ended = turns.runner.run_queue(self.operations, self)
        except BaseException as wrong:  # which is raised again in the thread that asks
            self.failure = wrong
        with turns.changed:
            turns.changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Whether it has run to its end, or failed."""
        return self.ended is not None or self.failure is not None

    @property
    def left(self) -> list[Queued]:
        """The operations that are not complete."""
        return [one for at, one in enumerate(self.operations) if at not in self._complete]

    @property
    def is_awaited(self) -> bool:
        """Whether the host waits for some of it."""
        return self.asked.waits and any(map(self.asked.has, self.left))

    @property
    def has_stopped(self) -> bool:
        """Whether it is over, or waits for a host that does not wait for it."""
        return self.is_over or (self._is_stopped and not self.is_awaited)

    def let_continue(self, asked: Asked) -> None:
        """Have it run until it waits for a host that does not wait for it."""
        self.asked, self._is_stopped, self._seen = asked, False, None

    def end(self) -> None:
        """Wait for its thread."""
        self._thread.join()

    def begin(self, part: Sequence[Queued]) -> None:
        """Note what runs now, at the same time; what it has run before is complete."""
        self._complete.update(self._together)
        positions = {id(one): at for at, one in enumerate(self.operations)}
        self._together = [positions[id(one)] for one in part]

    def check(self, finished: int, total: int) -> None:
        """Stop, if the program has ended."""
        if self._turns.closing.is_set():
            raise KeyboardInterrupt

    def may_host_write(self, changes: int, are_complete: Sequence[bool]) -> bool:
        """Let host code and other kernels run, where no thread can continue; whether one of these may still write."""
        turns = self._turns
        self.check(0, 0)
        with turns.changed:
            self.stops += 1
            self.changes = changes
            self._complete.update(
                at for at, is_complete in zip(self._together, are_complete, strict=True) if is_complete
            )
            if self.is_awaited and self._is_stuck():
                return False
            self._is_stopped = True
            turns.changed.notify_all()
        turns.baton.release()
        try:
            turns.closing.wait(_PAUSE)
        finally:
            turns.baton.acquire()
        return True

    def _is_stuck(self) -> bool:
        """Whether all kernels have had a turn, and nothing has changed, while the host waits."""
        others = [one for one in self._turns.running if one is not self and not one.is_over]
        changes = self.changes + sum(one.changes for one in others)
        if self._seen is None or self._seen[0] != changes:
            self._seen = changes, {one: one.stops for one in others}
            return False
        before = self._seen[1]
        have_had_turn = all(one.stops > before.get(one, -1) for one in others)
        return have_had_turn and not self._turns.may_other_threads_write()


class Turns:
    """What a process has issued and has not waited for, as it runs."""

    def __init__(self, runner: Runner, process: int) -> None:
        self.runner = runner
        self.baton = threading.Lock()  # of the one whose kernels run
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self.running: list[Turn] = []
        self._process = process
        self._time, self._since = 0, 0.0
        self._asleep: dict[int, int] | None = None  # threads that sleep until a time, since then
        self._sleepers: dict[int, int] = {}  # those of which it is known that they sleep for long

    def run(self, queue: list[Queued], asked: Asked) -> tuple[Ended, int]:
        """Run what is queued, which is taken from the queue: what came of it, and what is left."""
        output = ""
        while True:
            ready = self._take(queue)
            if not self.running and not any(map(_talks, ready)):
                status, printed = self.runner.run_queue(ready)
                return (status, output + printed), COMPLETE
            if ready:
                self.running.append(Turn(self, ready, asked))
            over = self._await(asked)
            output += "".join(printed for _, printed in over)
            status = next((status for status, _ in over if status), 0)
            if status:
                queue.clear()
            if status or not over or not queue:
                break
        left = [*(one for turn in self.running for one in turn.left), *queue]
        state = INCOMPLETE if any(map(asked.has, left)) else SOME_RUN if left else COMPLETE
        return (status, output), state

    def close(self) -> None:
        """Stop what runs: the program has ended."""
        self.closing.set()
        for turn in self.running:
            turn.end()
        self.running.clear()

    def _take(self, queue: list[Queued]) -> list[Queued]:
        """Take from the queue what comes after nothing that still runs."""
        before = [one for turn in self.running for one in turn.left]
        ready, held = [], []
        for one in queue:
            if any(one.order.comes_after(other.order) for other in before):
                before.append(one)
                held.append(one)
            else:
                ready.append(one)
        queue[:] = held
        return ready

    def _await(self, asked: Asked) -> list[Ended]:
        """Wait until all is over but what waits for the host; what came of what is over."""
        for turn in self.running:
            turn.let_continue(asked)
        self._since, self._asleep = monotonic(), None
        try:
            with self.changed:
                self.changed.wait_for(lambda: all(turn.has_stopped for turn in self.running))
        except BaseException:
            self.close()
            raise
        over = [turn for turn in self.running if turn.is_over]
        self.running = [turn for turn in self.running if not turn.is_over]
        for turn in over:
            turn.end()
            if turn.failure is not None:
                raise turn.failure
        return [turn.ended for turn in over if turn.ended is not None]

    def may_other_threads_write(self) -> bool:
        """Whether threads of the program, beside the one that waits, are at work, or asleep until a time.

        One that wakes again and again has had its chance to write.
        """
        try:
            if len(list(Path(f"/proc/{self._process}/task").iterdir())) == 1:
                return False
            fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return False  # it has ended
        time, now = int(fields[11]) + int(fields[12]), asleep(self._process)
        have_woken = any(now.get(thread) != count for thread, count in self._sleepers.items())
        if time != self._time or have_woken or self._asleep is None:
            self._time, self._since, self._asleep, self._sleepers = time, monotonic(), now, {}
        if monotonic() - self._since < _IDLE:
            return True
        self._sleepers = {thread: count for thread, count in now.items() if self._asleep.get(thread) == count}
        return bool(self._sleepers)


def _talks(one: Queued) -> bool:
    """Whether an operation may wait for what the host writes."""
    return isinstance(one, QueuedLaunch) and one.loaded.talks_to_host(one.kernel)

"""Ranks of one program as threads, one of which runs at a time: the same program is the same run.

A rank runs until it waits for a collective, or for what was launched; then the next one runs. When all of them wait,
what was launched on all GPUs runs at the same time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence


class EndedError(Exception):
    """Another rank has failed: this one ends, too."""


class Turns:
    """Whose turn it is among ranks that run in threads."""

    def __init__(self, count: int, run_launched: Callable[[], bool]) -> None:
        """`run_launched` runs what was launched on all GPUs; false if that is nothing."""
        self.count, self._run_launched = count, run_launched
        self._changed = threading.Condition()
        self._local = threading.local()
        self._turn: int | None = None
        self._ended: set[int] = set()
        self._until: dict[int, Callable[[], bool]] = {}  # what each rank waits for
        self._why: dict[int, str] = {}
        self._failure: BaseException | None = None

    @property
    def rank(self) -> int:
        """The rank that the thread is; 0 for a thread that is not one of them."""
        return int(getattr(self._local, "rank", 0))

    @property
    def device(self) -> int:
        """The GPU that the thread has chosen: that of its rank, unless it says otherwise."""
        return int(getattr(self._local, "device", self.rank))

    @device.setter
    def device(self, device: int) -> None:
        self._local.device = device

    @property
    def is_rank(self) -> bool:
        """Whether this thread is one of the ranks that run."""
        return getattr(self._local, "is_rank", False)

    def run(self, work: Callable[[int], object]) -> list[object]:
        """Run `work` for each rank; what each returned. Raises what the first that fails raises."""
        results: list[object] = [None] * self.count
        self._ended, self._until, self._failure, self._turn = set(), {}, None, 0

        def one(rank: int) -> None:
            self._local.rank, self._local.is_rank = rank, True
            try:
                self._await_turn(rank)
                results[rank] = work(rank)
                self.wait(lambda: False, "its end", ends=True)
            except EndedError:
                pass
            except BaseException as problem:  # also what ends a thread: it is raised where `run` was called
                with self._changed:
                    self._failure = self._failure or problem
                    self._changed.notify_all()

        threads = [threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(self.count)]
        before = {name: os.environ.get(name) for name in _VARIABLES}
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        if self._failure is not None:
            raise self._failure
        return results

    def wait(self, is_over: Callable[[], bool], why: str, *, ends: bool = False) -> None:
        """Let other ranks run until `is_over`; `why` is what a message says of a rank that waits forever."""
        with self._changed:
            rank = self.rank
            if ends:
                self._ended.add(rank)
            else:
                self._until[rank], self._why[rank] = is_over, why
            self._pass_on(rank)
            self._changed.notify_all()
        if not ends:
            self._await_turn(rank)

    def _pass_on(self, rank: int) -> None:
        """Choose who runs next; run what was launched where all wait."""
        while True:
            following = [(rank + step) % self.count for step in range(1, self.count + 1)]
            ready = [one for one in following if one not in self._ended and self._is_ready(one)]
            if ready:
                self._turn = ready[0]
                return
            if self._run_launched():
                continue
            if len(self._ended) < self.count:
                raise RuntimeError(self._stuck())
            self._turn = None
            return

    def _is_ready(self, rank: int) -> bool:
        return rank not in self._until or self._until[rank]()

    def _stuck(self) -> str:
        waits = [f"rank {rank} waits for {self._why[rank]}" for rank in sorted(self._until) if rank not in self._ended]
        ended = f"; {_ranks(sorted(self._ended))} ended" if self._ended else ""
        return f"no rank can continue: {', '.join(waits)}{ended}"

    def _await_turn(self, rank: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == rank or self._failure is not None)
            if self._failure is not None:
                raise EndedError
            self._until.pop(rank, None)
            os.environ.update(zip(_VARIABLES, (str(rank), str(rank), str(self.count), str(self.count)), strict=True))


_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")  # as torchrun sets them


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} {'have' if len(ranks) > 1 else 'has'}"

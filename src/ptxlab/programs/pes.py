"""The processes of a program that are PEs of NVSHMEM: they share device memory, and what they launch runs together.

A PE that waits for what it has launched is answered once all others wait, too: then all that was launched runs at the
same time. Collectives are left until each PE of the team has called them, and what follows these on their stream.

What runs later because a host has waited is not ordered after what *other* PEs did: only a barrier of NVSHMEM does
that. So operations are kept until one, in a `History`. Where those of several PEs ran one after the other, all of them
run once more from the memory that there was, at the same time, for what the detectors find.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.node.nvshmem import state
from ptxlab.programs.device_memory import PART, DeviceMemory
from ptxlab.programs.history import History
from ptxlab.programs.log import HostFinding
from ptxlab.programs.messages import MessageReader, Writer
from ptxlab.programs.queue import Call, Queued, QueuedCopy, QueuedLaunch
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.programs.modules import LoadedModule
    from ptxlab.programs.runs import Runner
    from ptxlab.programs.session import Process

_HANG = 702


@dataclass(frozen=True)
class Places:
    """How many PEs there are, and on how many machines."""

    count: int
    machines: int = 1

    @property
    def each(self) -> int:
        """How many are on a machine."""
        return self.count // self.machines

    def machine_of(self, pe: int) -> range:
        """The PEs of a machine."""
        first = pe // self.each * self.each
        return range(first, first + self.each)


class Pes:
    """The PEs of a program, by their processes."""

    def __init__(self, layout: Places, memory: DeviceMemory) -> None:
        self.layout, self.memory = layout, memory
        self.runner: Runner | None = None
        self.queue: list[Queued] = []
        self.history = History(memory, layout.machines > 1)
        self._processes: dict[int, Process] = {}
        self._waiting: set[int] = set()
        self._ended: set[int] = set()
        self._called: Counter[tuple[int, Call]] = Counter()  # collectives, by PE and team
        self._states: dict[int, dict[str, int]] = {}
        self._symmetric: dict[int, list[tuple[int, int]]] = {}  # by PE: what is allocated on all, by place and size
        self._teams: dict[tuple[int, ...], int] = {}  # numbers of teams
        self._made: Counter[tuple[int, ...]] = Counter()

    def add_process(self, pe: int, process: Process) -> None:
        """A PE that has called CUDA for the first time."""
        self._processes[pe] = process

    # What NVSHMEM's host functions ask for.

    def initialize(self, pe: int, given: MessageReader) -> None:
        """Have the modules of a PE know where its memory is, and who it is."""
        peers, counter, teams, memory, counters = (given.number() for _ in range(5))
        here = self.layout.machine_of(pe)
        self._states[pe] = {
            "mype": pe, "npes": self.layout.count, "node_mype": pe - here.start, "node_npes": len(here),
            "job_connectivity": state.DIRECT if self.layout.machines == 1 else state.NETWORK,
            "heap_base": self.memory.part_of(pe), "heap_size": PART, "peer_heap_base_p2p": peers,
            "team_pool": teams, "psync_pool": memory, "sync_counter": counters, state.COUNTER: counter,
        }  # fmt: skip
        for loaded in self._processes[pe].modules.loaded:
            self.set_state(pe, loaded)

    def set_state(self, pe: int, loaded: LoadedModule) -> None:
        """Write the variable of a module that NVSHMEM's device functions read."""
        if pe not in self._states or not state.NvshmemModule.is_one(loaded.module):
            return
        placed = layout.Variables(loaded.module, [])
        held = loaded.emulated(pe).memory.of(placed, placed.by_name[state.STATE])
        made = state.NvshmemModule(loaded.module).state(self._states[pe])
        ctypes.memmove(held, made, len(made))

    def team(self, pe: int, given: MessageReader) -> Writer:
        """The number of a team, which is the same for all PEs that make it."""
        of = given.number(), given.number(), given.number()
        self._made[pe, *of] += 1
        number = self._teams.setdefault((*of, self._made[pe, *of]), state.OWN_TEAMS + len(self._teams))
        return Writer(int(number >= state.MOST_TEAMS)).number(number)

    def allocated(self, pe: int, address: int, size: int) -> HostFinding | None:
        """Note symmetric memory of a PE; what is wrong with it, where another PE has asked for other sizes."""
        own = self._symmetric.setdefault(pe, [])
        own.append((self.memory.in_part(address), size))
        other = next((one for one, given in self._symmetric.items() if one != pe and len(given) >= len(own)), None)
        if other is None or self._symmetric[other][len(own) - 1] == own[-1]:
            return None
        there = self._symmetric[other][len(own) - 1][1]
        message = f"PE {pe} allocates {size:,} bytes of symmetric memory where PE {other} allocates {there:,}"
        return HostFinding("bad-library-call", message, "all PEs call `nvshmem_malloc` with the same size", ())

    # Operations.

    def add(self, one: Queued) -> None:
        """An operation that a PE has issued."""
        if isinstance(one, QueuedLaunch) and one.call is not None and one.call.members:
            key = one.order.process, one.call.of_team
            self._called[key] += 1
            one = replace(one, number=self._called[key])
        self.queue.append(one)

    def wait(self, pe: int) -> None:
        """Answer a PE once all that it has issued is complete."""
        assert self.runner is not None
        own = [one for one in self.queue if one.order.process == pe]
        if all(isinstance(one, QueuedCopy) for one in own):  # which wait for no other PE
            self.queue = [one for one in self.queue if one.order.process != pe]
            self.history.begin(own)
            self.history.add(own)
            status, output = self.runner.run_in_order(own)
            self._answer(pe, status, output)
            return
        self._waiting.add(pe)
        self._advance()

    def end(self, pe: int) -> None:
        """A PE has ended."""
        self._ended.add(pe)
        self._waiting.discard(pe)
        if len(self._ended) < self.layout.count:
            self._advance()
        elif self.runner is not None:
            self.history.judge(self.runner)

    def _advance(self) -> None:
        """Run what was launched, where all PEs wait; answer those whose operations are complete."""
        assert self.runner is not None or not self._waiting
        while self._waiting and len(self._waiting | self._ended) == self.layout.count:
            assert self.runner is not None
            ready, held = self._split()
            status, output = 0, ""
            wrong = list(self._mismatches(ready))
            if wrong:
                self.runner.note(wrong, ())
                status = _HANG
            elif ready:
                status, output, held = self._run(ready, held)
                self.queue = held
            kept = {one.order.process for one in held}
            released = self._waiting if status else self._waiting - kept
            if not released:
                if not ready:
                    self.runner.note([self._stuck(held)], ())
                    status, released = _HANG, self._waiting
                else:
                    continue
            for number, pe in enumerate(sorted(released)):
                self._answer(pe, status, output if number == 0 else "")
            self._waiting -= released
            return

    def _run(self, ready: list[Queued], held: list[Queued]) -> tuple[int, str, list[Queued]]:
        """Run operations at the same time: the error, what they print, and what is left then.

        Kernels may wait for what a PE launches once it has waited for others: these are left over then.
        """
        assert self.runner is not None
        put_back = self.history.kept(ready)

        def continues(rest: Sequence[Queued]) -> bool:
            stuck = {one.order.process for one in (*rest, *held)}
            return any(pe not in stuck for pe in self._waiting)

        while True:
            self.history.begin(ready)
            (status, output), rest = self.runner.run_pes(ready, continues)
            if not rest or status:
                break
            put_back()
            ready = [one for one in ready if not any(one is other for other in rest)]
            held = [one for one in self.queue if not any(one is other for other in ready)]
        self.history.add(ready)
        self._reach_barrier(ready)
        return status, output, held

    def _answer(self, pe: int, status: int, output: str) -> None:
        self._processes[pe].connection.sendall(Writer(status).number(0).text(output).number(0).finished())

    def _split(self) -> tuple[list[Queued], list[Queued]]:
        """What may run now, and what waits for a collective that not all PEs of its team have called."""
        ready: list[Queued] = []
        held: list[Queued] = []
        for one in self.queue:
            follows = any(one.order.comes_after(other.order) for other in held)
            (held if follows or self._missing(one) else ready).append(one)
        return ready, held

    def _missing(self, one: Queued) -> list[int]:
        """The PEs that have not called a collective."""
        if not isinstance(one, QueuedLaunch) or one.call is None:
            return []
        call = one.call.of_team
        return [pe for pe in one.call.members if self._called[pe, call] < one.number]

    def _mismatches(self, ready: Sequence[Queued]) -> Iterator[Diagnostic]:
        """Collectives that meet others."""
        assert self.runner is not None
        first: dict[object, QueuedLaunch] = {}
        for one in ready:
            if not isinstance(one, QueuedLaunch) or one.call is None or not one.call.members:
                continue
            other = first.setdefault((one.call.of_team, one.number), one)
            assert other.call is not None
            if other.call.kind == one.call.kind:
                continue
            span, there = self.runner.span_of(one.frames), self.runner.span_of(other.frames)
            named = f"`{one.call.name}` on PE {one.order.process} meets `{other.call.name}` on PE {other.order.process}"
            others = [] if there is None else [Label(there, f"PE {other.order.process} calls this")]
            helps = ["have all PEs of a team call the same collectives in the same order"]
            yield error(
                "bad-library-call", named, span, f"PE {one.order.process} calls this", others=others, helps=helps
            )

    def _stuck(self, held: Sequence[Queued]) -> Diagnostic:
        """Why no PE can continue."""
        assert self.runner is not None
        waits: dict[int, QueuedLaunch] = {}
        for one in held:
            if isinstance(one, QueuedLaunch) and self._missing(one):
                waits.setdefault(one.order.process, one)
        (pe, first), *rest = sorted(waits.items())
        assert first.call is not None
        missing = self._missing(first)
        others = [
            Label(at, f"PE {other} waits here")
            for other, one in rest
            if other in missing and (at := self.runner.span_of(one.frames)) is not None
        ]
        said = [f"PE {one} has ended" for one in missing if one in self._ended]
        said += [f"PE {other} waits in `{one.call.name}`" for other, one in rest if other in missing and one.call]
        return error(
            "hang", f"PE {pe} waits in `{first.call.name}`, which {_names(missing)} not call",
            self.runner.span_of(first.frames), f"PE {pe} waits here", others=others[:2], notes=["; ".join(said)],
            helps=["have all PEs of the team call it, in the same order as its other collectives"],
        )  # fmt: skip

    def _reach_barrier(self, ran: Sequence[Queued]) -> None:
        """Forget what is before a barrier of all PEs, once that was judged."""
        assert self.runner is not None
        last: dict[int, QueuedLaunch] = {}
        for one in ran:
            if isinstance(one, QueuedLaunch) and one.call is not None and one.call.is_barrier(self.layout.count):
                last[one.order.process] = one
        if (len(last) == self.layout.count and self.history.is_before(last)) or self.history.is_full:
            self.history.judge(self.runner)


def _names(pes: Sequence[int]) -> str:
    """`PE 1 does`, `PEs 1, 2 do`"""
    return f"PE {pes[0]} does" if len(pes) == 1 else f"PEs {', '.join(map(str, pes))} do"

"""A finding of the detectors as its explainers read it: its record, and the two accesses that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.findings import Finding, FoundAccess
from ptxlab.emulate.explain.memory_names import name_bytes
from ptxlab.emulate.explain.operations import network_operation_of, operation_of
from ptxlab.emulate.explain.paths import Paths
from ptxlab.emulate.explain.snapshots import access_fact, thread_name
from ptxlab.emulate.runtime.order import shadow
from ptxlab.isa.async_operation import AsyncOperation
from ptxlab.isa.effects import Effects
from ptxlab.report import Label, Span
from ptxlab.report.reader import spell_option

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_DOES = {address_spaces.LOAD: "reads", address_spaces.STORE: "writes", address_spaces.ATOMIC: "changes"}
_DID = {address_spaces.LOAD: "read", address_spaces.STORE: "wrote", address_spaces.ATOMIC: "changed"}


@dataclass(frozen=True)
class Party:
    """One of the two accesses of a finding."""

    launch: RunningLaunch
    instruction: int
    thread: int
    block: int
    flags: int

    @property
    def kind(self) -> int:
        return self.flags & shadow.KIND

    @property
    def does(self) -> str:
        """`reads`, `writes` or `changes`"""
        return _DOES[self.kind]

    @property
    def did(self) -> str:
        """`read`, `wrote` or `changed`"""
        return _DID[self.kind]

    @property
    def is_copy(self) -> bool:
        """Whether it is done in the background: by `cp.async`, or by another asynchronous operation."""
        return bool(self.flags & shadow.COPY)

    @property
    def is_async(self) -> bool:
        """Whether it is done through the async proxy."""
        return bool(self.flags & shadow.ASYNC)

    @property
    def who(self) -> str:
        """`thread (1,0,0) of block (2,0,0)`"""
        return thread_name(self.launch, self.block, self.thread)

    @property
    def effects(self) -> Effects:
        """What its instruction does."""
        return self.launch.compiled.effects(self.instruction)

    @property
    def network(self) -> AsyncOperation | None:
        """The operation of the network that it is part of, if it is."""
        return network_operation_of(self.launch.compiled.instructions[self.instruction][1]) if self.is_async else None

    @property
    def operation(self) -> AsyncOperation:
        """The asynchronous operation that it is part of."""
        return self.network or operation_of(self.effects)

    def is_by_thread_of(self, other: Party) -> bool:
        """Whether both are by one thread."""
        return (self.block, self.thread) == (other.block, other.thread)

    def fact(self) -> dict[str, int]:
        """Where it is, for programs: see `access_fact`."""
        return access_fact(self.launch, self.instruction, self.block, self.thread)


@dataclass(frozen=True, eq=False)
class Found:
    """A finding; which parts its record has depends on its kind."""

    launch: RunningLaunch
    record: Finding
    paths: Paths

    @property
    def kind(self) -> int:
        """Of those of `abi.findings`."""
        return self.record.kind

    @property
    def space(self) -> int:
        return self.record.space

    @cached_property
    def access(self) -> Party:
        """What was found, of a race the later access."""
        return _party_of(self.launch, self.record.access)

    @cached_property
    def other(self) -> Party:
        """What came before."""
        return _party_of(self.launch, self.record.other)

    @property
    def parties(self) -> tuple[Party, Party]:
        """The two accesses, the one that came first in front."""
        return self.other, self.access

    @property
    def instruction(self) -> int:
        """The one that it was found at."""
        return self.record.access.instruction

    @property
    def span(self) -> Span | None:
        """Where that is in the text."""
        return self.launch.span_of(self.instruction)

    @property
    def instructions(self) -> tuple[int, int]:
        """Those of both accesses."""
        return self.record.other.instruction, self.record.access.instruction

    @cached_property
    def bytes(self) -> str:
        """The bytes, or words of tensor memory, that it is about."""
        record = self.record
        return name_bytes(self.launch, record.space, record.address, record.bytes, record.access.block)

    def label(self, instruction: int, text: str) -> list[Label]:
        """A label at another instruction, if that has a line."""
        span = self.launch.span_of(instruction)
        return [] if span is None else [Label(span, text)]

    def line(self, instruction: int) -> str:
        """`line 12`: see `RunningLaunch.name_line`."""
        return self.launch.name_line(instruction, self.instruction)


def _party_of(launch: RunningLaunch, access: FoundAccess) -> Party:
    return Party(launch.of(access.block), access.instruction, access.thread, access.block, access.flags)


def replay(launch: RunningLaunch) -> list[str]:
    """A note on how to see what a launch found again, where that needs a seed."""
    return ["replay with " + spell_option(f"--seed {launch.seed}", f"seed={launch.seed}")] if launch.seed else []

"""A fault of a thread as its explainers read it: the fields of `faults.Fault`, and the instruction it happened at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.snapshots import BlockSnapshot, access_fact, snapshot_of, thread_name
from ptxlab.isa.effects import Effects
from ptxlab.report import Diagnostic, Label, error

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch
    from ptxlab.emulate.host.worker import HostWorker

ACCESSES = {address_spaces.LOAD: "read", address_spaces.STORE: "write", address_spaces.ATOMIC: "atomic operation"}


@dataclass(frozen=True)
class FaultSnapshot:
    """The first fault of a worker; which fields it has depends on its kind."""

    launch: RunningLaunch
    worker: HostWorker

    @property
    def record(self) -> StructArray:
        return self.worker.fault

    @cached_property
    def kind(self) -> int:
        return self.record.get("kind")

    @cached_property
    def address(self) -> int:
        return self.record.get("address")

    @cached_property
    def size(self) -> int:
        return self.record.get("size")

    @cached_property
    def reason(self) -> int:
        """Of the enumeration that its kind has in `abi.faults`."""
        return self.record.get("reason")

    @cached_property
    def value(self) -> int:
        """The number that is wrong."""
        return self.record.get("value")

    @cached_property
    def signed_value(self) -> int:
        """The number that is wrong, where it may be negative."""
        return self.value - (self.value >> 63 << 64)

    @cached_property
    def limit(self) -> int:
        """What `value` may be at most, or must agree with."""
        return self.record.get("limit")

    @cached_property
    def thread(self) -> int:
        return self.record.get("thread")

    @cached_property
    def block(self) -> int:
        return self.record.get("block")

    @cached_property
    def number(self) -> int:
        """The number of the instruction."""
        return self.record.get("instruction")

    @property
    def instruction(self) -> ir.Instruction:
        return self.launch.compiled.instructions[self.number][1]

    @property
    def effects(self) -> Effects:
        """What the instruction does."""
        return self.launch.compiled.effects(self.number)

    @property
    def who(self) -> str:
        """`thread (1,0,0) of block (2,0,0)`"""
        return thread_name(self.launch, self.block, self.thread)

    @property
    def access(self) -> str:
        """`read`, `write` or `atomic operation`"""
        return ACCESSES[self.record.get("access")]

    @property
    def snapshot(self) -> BlockSnapshot:
        """The block of the thread."""
        found = snapshot_of(self.launch, self.worker)
        assert found is not None
        return found

    def error(
        self,
        code: str,
        message: str,
        label: str = "",
        *,
        others: Iterable[Label] = (),
        notes: Iterable[str] = (),
        helps: Iterable[str] = (),
    ) -> Diagnostic:
        """An error at the instruction; its label names the thread, unless another one is given."""
        span = self.launch.span_of(self.number)
        found = error(code, message, span, label or self.who, others=others, notes=notes, helps=helps)
        return replace(found, facts={"accesses": [access_fact(self.launch, self.number, self.block, self.thread)]})

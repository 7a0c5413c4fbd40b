"""A step of a recorded launch: one instruction of one thread, what it did, and the state after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ptxlab.trace.barriers import BarrierState, MbarrierState
from ptxlab.trace.program import Value

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

Index = int | Sequence[int]


@dataclass(frozen=True)
class MemoryAccess:
    """Bytes that an instruction read or wrote."""

    kind: str
    space: str
    owner: int
    address: int
    size: int


@dataclass(frozen=True)
class ReportedFinding:
    """What a launch found, as it was reported."""

    level: str
    code: str
    message: str
    line: int
    text: str
    """As it is printed."""
    labels: Sequence[tuple[int, str]] = ()
    """Lines of the PTX, and what is said about them; the first is the one that matters most."""
    notes: Sequence[str] = ()
    helps: Sequence[str] = ()
    accesses: Sequence[dict[str, int]] = ()
    """The accesses that it is about: `line`, `block` and `thread` of each; of a race `address` and `bytes`, too.

    Of launches that ran at the same time, `rank` and `launch` are the GPU and the number of the launch.
    """
    place: str = ""
    """Where it is shown: `gemm.cu:30`, `gemm.cu:30 (called from line 42)`."""


@dataclass(frozen=True)
class Write:
    """A value that was written: to a register or to memory, by which step, or after it by an asynchronous operation."""

    step: int
    line: int
    instruction: str
    block: int
    thread: int
    value: Value | bytes
    is_asynchronous: bool = False
    by: str = ""
    """The launch, where that is another one, which ran at the same time: `rank 1`."""


@dataclass(frozen=True)
class InstructionStep:
    """One instruction of one thread, and the state after it."""

    trace: Trace = field(repr=False)
    number: int
    block: int
    """The number of the block in the grid."""
    thread: int
    """The number of the thread in its block."""
    function: str
    line: int
    instruction: str
    executed: bool
    """Whether its guard held."""
    results: dict[str, Value]
    accesses: tuple[MemoryAccess, ...]

    @property
    def warp(self) -> int:
        return self.thread // 32

    @property
    def lane(self) -> int:
        return self.thread % 32

    @property
    def depth(self) -> int:
        """How many calls its function is inside of: 0 in the kernel itself."""
        return self.trace.depth(self.number)

    @property
    def active(self) -> int:
        """The lanes of its warp that execute the instruction as often up to there, a bit for each."""
        return self.trace.active(self.number)

    def registers(self, thread: Index | None = None, block: Index | None = None) -> dict[str, Value]:
        """The registers of a thread after this step, by default of its own."""
        if thread is None and block is None:
            thread, block = self.thread, self.block
        return self.trace.registers(thread or 0, block=self.block if block is None else block, step=self.number)

    def memory(self, space: str, block: Index | None = None, thread: Index | None = None) -> Any:
        """Memory after this step; see `Trace.memory`."""
        at = self.block if block is None else block
        return self.trace.memory(space, block=at, thread=self.thread if thread is None else thread, step=self.number)

    def barriers(self) -> list[MbarrierState | BarrierState]:
        """The barriers after this step."""
        return self.trace.barriers(step=self.number)

    def __str__(self) -> str:
        shown = ", ".join(f"{name} = {value}" for name, value in self.results.items())
        skipped = "" if self.executed else "(not executed) "
        where = f"{self.number:>8}  block {self.block} thread {self.thread}  line {self.line}: {skipped}"
        return where + self.instruction + (f"  → {shown}" if shown and self.executed else "")

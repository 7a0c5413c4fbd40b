"""A recorded launch as a value: its steps, and what was in registers, memory and barriers at any of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxlab.device.layout import shared_variables
from ptxlab.device.trace_file import COMPLETE, ENDS, TraceError, TraceFile
from ptxlab.ir.mangled import title
from ptxlab.services import service
from ptxlab.trace import registers as registers_of
from ptxlab.trace.accesses import NAMES, SHARED, SPACES, Accesses, unwritten
from ptxlab.trace.barriers import BarriersByBlock, BarrierState, MbarrierState
from ptxlab.trace.columns import Columns
from ptxlab.trace.program import RecordedProgram, Value
from ptxlab.trace.steps import Index, InstructionStep, MemoryAccess, ReportedFinding, Write
from ptxlab.trace.validation import content_problem, description_problem

if TYPE_CHECKING:
    from ptxlab.timelines import Timeline
    from ptxlab.trace.difference import Difference
    from ptxlab.trace.origin import Origin
    from ptxlab.trace.tensor_words import TensorWords
    from ptxlab.trace.warp_steps import WarpSteps


@dataclass(frozen=True)
class Together:
    """Which of the launches that ran at the same time a launch is."""

    number: int
    count: int
    rank: int
    stream: int
    title: str
    """`rank 1`, or `the copy to x of rank 1`."""
    is_kernel: bool


class Trace:
    """A recorded launch."""

    def __init__(self, file: TraceFile) -> None:
        self.path = file.path
        self.description = file.description
        problem = description_problem(file.description)
        if problem is not None:
            raise TraceError(f"`{file.path}` is damaged: {problem}")
        self.program = RecordedProgram(file.description)  # meanwhile the file is decompressed
        self.columns = Columns(file)
        problem = content_problem(self.columns, self.program, file.description)
        if problem is not None:
            raise self.columns.damaged(problem)
        self.accesses = Accesses(self.columns, file.description)
        self.steps: int = file.steps
        """How many steps there are."""
        self.end = ENDS[file.end]
        """Why it ends where it does."""
        self.is_complete = file.end == COMPLETE
        """Whether the kernel ran to its end."""
        self.findings = [ReportedFinding(**found) for found in self.columns.findings]
        """What the launch found: races, hangs, faults."""
        self.grid = tuple(file.description["grid"])
        self.block = tuple(file.description["block"])
        self.seed: int = file.description["seed"]

        place = file.description.get("together")
        self.together = None if place is None else Together(**place)
        """Which of the launches that ran at the same time it is; None if it ran by itself."""

    @classmethod
    def open(cls, path: str | Path) -> Trace:
        """Read a recorded launch; a file that is something else, damaged or of another version raises `TraceError`.

        A launch that ran with others is read with them: they are in the same folder.
        """
        found = cls(TraceFile(path))
        if found.together is None:
            return found
        from ptxlab.trace.traces import Traces

        return Traces.open(Path(path).parent)[found.together.number]

    def __repr__(self) -> str:
        name = title(self.description["kernel"])
        return f"<trace of `{name}`: {self.steps:,} steps of {len(self.columns.threads):,} threads; {self.end}>"

    def lab(self, height: int = 720) -> Any:
        """The launch as a page to look around in, in a notebook; needs `ptxlab[notebook]`."""
        return widget().Lab(self, height)

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import table_html, title_html

        rows = [
            ["kernel", title(self.description["kernel"])],
            ["grid, block", f"{self.grid}, {self.block}"],
            ["steps", f"{self.steps:,} of {len(self.columns.threads):,} threads"],
            ["end", self.end],
            *(["finding", f"{found.code}: {found.message}"] for found in self.findings),
        ]
        return title_html("a recorded launch") + table_html(rows, has_header=False)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[InstructionStep]:
        return (self.step(number) for number in range(self.steps))

    # Steps.

    def step(self, number: int) -> InstructionStep:
        """The step of a number, in the order of execution; from the end if it is negative."""
        if not -self.steps <= number < self.steps:
            raise IndexError(f"step {number}: there are steps 0 to {self.steps - 1}")
        number %= self.steps
        columns = self.columns
        entry, index = columns.locate(number)
        segment = columns.segment_of(entry)
        instruction, guard = segment.steps[index]
        thread = int(columns.thread[entry])
        block, own = divmod(thread, self.accesses.threads_in_block)
        return InstructionStep(
            self,
            number,
            block,
            own,
            self.program.functions[segment.function].name,
            self.program.line(instruction),
            self.program.text(instruction),
            columns.holds(entry, guard),
            self._results(entry, instruction),
            tuple(self.accesses_at(entry, instruction)),
        )

    def instruction_at(self, number: int) -> int:
        """The number in the program of the instruction of a step."""
        entry, index = self.columns.locate(number)
        return self.columns.segment_of(entry).steps[index][0]

    def _results(self, entry: int, instruction: int) -> dict[str, Value]:
        """What an instruction wrote to registers, in the entry where it is complete."""
        found: dict[str, Value] = {}
        for at in self._parts(entry, instruction):
            segment = self.columns.segment_of(at)
            for slot in segment.slots:
                if slot.instruction == instruction and slot.role == "register" and self.columns.holds(at, slot.guard):
                    data = self.columns.bytes_at(at, slot)
                    found[slot.what] = self.program.value(segment.function, slot.what, data)
        return found

    def accesses_at(self, entry: int, instruction: int) -> Iterator[MemoryAccess]:
        """What an instruction accessed, in the entry where it is complete."""
        for at in self._parts(entry, instruction):
            segment = self.columns.segment_of(at)
            for slot in segment.slots:
                if slot.instruction != instruction or slot.role not in ("load", "store", "update"):
                    continue
                if self.columns.holds(at, slot.guard):
                    named, size = slot.what.split()
                    address = np.array([int.from_bytes(self.columns.bytes_at(at, slot), "little")], np.int64)
                    found = self.accesses.resolve(named, address, self.columns.thread[at : at + 1])
                    space, owner, place = (int(one[0]) for one in found)
                    yield MemoryAccess(slot.role, NAMES[space], owner, place, int(size))

    def _parts(self, entry: int, instruction: int) -> list[int]:
        """The entries in which an instruction that is complete in an entry was executed: it may have waited."""
        own = self.columns.entries_by(int(self.columns.thread[entry]))
        position = int(np.searchsorted(own, entry))
        found = [entry]
        while position > 0:
            position -= 1
            before = int(own[position])
            segment = self.columns.segment_of(before)
            if instruction in segment.index_of or not any(slot.instruction == instruction for slot in segment.slots):
                break
            found.insert(0, before)
        return found

    def steps_of(self, thread: Index = 0, block: Index | None = None) -> npt.NDArray[np.int64]:
        """The numbers of the steps of a thread."""
        entries = self.columns.entries_by(self.number_of(thread, block))
        first, past = self.columns.first_step[entries], self.columns.first_step[entries + 1]
        found = [np.arange(a, b) for a, b in zip(first, past, strict=True)]
        numbers = np.concatenate(found) if found else np.zeros(0, np.int64)
        recorded: npt.NDArray[np.int64] = numbers[numbers < self.steps]
        return recorded

    def steps_at(self, line: int) -> npt.NDArray[np.int64]:
        """The numbers of the steps at a line of the PTX, of all threads."""
        found = []
        for number, segment in enumerate(self.columns.segments):
            for index, (instruction, _) in enumerate(segment.steps):
                if self.program.line(instruction) == line:
                    found.append(self.columns.first_step[self.columns.entries_of(number)] + index)
        numbers = np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)
        recorded: npt.NDArray[np.int64] = numbers[numbers < self.steps]
        return recorded

    def depth(self, step: int) -> int:
        """How many calls the function of a step is inside of: 0 in the kernel itself."""
        entry, index = self.columns.locate(step)
        first = 2 * int(self.columns.first_step[entry]) + 2 * index + 1
        return registers_of.depth_of(self.columns, int(self.columns.thread[entry]), first)

    def active(self, step: int) -> int:
        """The lanes of a warp that execute the instruction of a step as often as its thread has, a bit for each."""
        entry, _ = self.columns.locate(step)
        number, thread = int(self.columns.segment[entry]), int(self.columns.thread[entry])
        instruction = self.instruction_at(step)
        entries = self.columns.entries_of(number)
        times = int((self.columns.thread[entries[entries <= entry]] == thread).sum())
        block, own = divmod(thread, self.accesses.threads_in_block)
        first = block * self.accesses.threads_in_block + own // 32 * 32
        mask = 0
        guard = dict(self.columns.segments[number].steps)[instruction]
        for lane in range(32):
            executed = entries[self.columns.thread[entries] == first + lane]
            if len(executed) >= times and self.columns.holds(int(executed[times - 1]), guard):
                mask |= 1 << lane
        return mask

    # Threads.

    def number_of(self, thread: Index, block: Index | None = None) -> int:
        """The number of a thread in the grid, by its number or index in its block; by default of the first block."""
        if block is None:
            blocks = self.blocks
            block = blocks[0] if blocks else 0
        return _flat(block, self.grid) * self.accesses.threads_in_block + _flat(thread, self.block)

    @cached_property
    def blocks(self) -> list[int]:
        """The numbers of the blocks of which anything is recorded."""
        return sorted({thread // self.accesses.threads_in_block for thread in self.columns.threads})

    def key_after(self, step: int | None) -> int:
        """Up to where the state after a step goes, or that at the end."""
        return 2 * (self.steps if step is None else step + 1) + (step is None)

    # State.

    def registers(self, thread: Index = 0, *, block: Index | None = None, step: int | None = None) -> dict[str, Value]:
        """The registers of a thread, in the function that it runs, after a step or at the end; those that are known."""
        number = self.number_of(thread, block)
        found = registers_of.last_writes(self.columns, number, self.key_after(step))
        return {name: self.value_of(found[name]) for name in sorted(found, key=registers_of.by_number)}

    def value_of(self, written: registers_of.Written) -> Value:
        """The value of a write to a register."""
        segment = self.columns.segment_of(written.entry)
        return self.program.value(
            segment.function, written.slot.what, self.columns.bytes_at(written.entry, written.slot)
        )

    def history(self, register: str, thread: Index = 0, *, block: Index | None = None) -> list[Write]:
        """All that a thread wrote to a register, in order."""
        number = self.number_of(thread, block)
        found = registers_of.history(self.columns, number, register)
        if not found and not any(register in names for names in self.program.registers):
            raise KeyError(f"there is no register `{register}` in `{self.description['kernel']}`")
        return [self._as_write(written) for written in found if written.key // 2 < self.steps]

    def _as_write(self, written: registers_of.Written) -> Write:
        block, own = divmod(int(self.columns.thread[written.entry]), self.accesses.threads_in_block)
        at = written.slot.instruction
        return Write(
            written.key // 2, self.program.line(at), self.program.text(at), block, own, self.value_of(written)
        )  # fmt: skip

    def memory(
        self, space: str, *, block: Index | None = None, thread: Index = 0, step: int | None = None
    ) -> dict[str, npt.NDArray[Any]] | npt.NDArray[np.uint8]:
        """Memory after a step or at the end: `global` as arrays by name; `shared` and `local` as bytes.

        It is as the recorded threads have left it, and the asynchronous operations that they have started.
        """
        if space not in SPACES:
            raise ValueError(f"memory({space!r}): expected one of {', '.join(SPACES)}")
        key = self.key_after(step)
        if space in ("global", "const"):
            return {region.short: region.array(self._content(region.base, region.data, key))
                    for region in self.accesses.regions}  # fmt: skip
        if space == "param":
            return np.frombuffer(self.accesses.parameters, np.uint8)
        number = self.number_of(thread, block)
        if space == "shared":
            content, owner = unwritten(0, self.accesses.shared_size), number // self.accesses.threads_in_block
        else:
            content, owner = unwritten(0, self.accesses.local_size), number
        self.accesses.image(SPACES[space], owner, 0, content, key)
        return content

    def _content(self, base: int, data: bytes, key: int) -> npt.NDArray[np.uint8]:
        content = np.frombuffer(data, np.uint8).copy()
        self.accesses.image(SPACES["global"], 0, base, content, key)
        return content

    def barriers(self, *, step: int | None = None) -> list[MbarrierState | BarrierState]:
        """The barriers of the recorded blocks after a step, or at the end."""
        return self.recorded_barriers.at(self.key_after(step))

    @cached_property
    def recorded_barriers(self) -> BarriersByBlock:
        """All that happened to barriers."""
        return BarriersByBlock(self)

    # Where values come from.

    def address(self, name: str, *index: int) -> int:
        """The address of an element of an array or variable: `trace.address("c", 3, 5)`."""
        for region in self.accesses.regions:
            if region.short == name:
                content = region.array(np.frombuffer(region.data, np.uint8))
                if len(index) not in (0, content.ndim):
                    raise IndexError(f"`{name}` has the shape {content.shape}; {len(index)} indices were given")
                at = int(np.ravel_multi_index(index, content.shape)) if index else 0
                return region.base + at * content.itemsize
        for variable, start in shared_variables(self.program.variables):
            if name in (variable.name, variable.title):
                return start + (index[0] if index else 0)
        raise KeyError(f"there is no array or variable `{name}` in the recorded launch")

    def last_write(
        self, address: int, size: int = 1, *, space: str = "global", block: Index | None = None, thread: Index = 0,
        step: int | None = None,
    ) -> Write | None:  # fmt: skip
        """The last write to some bytes before the end, or up to a step; None: they are as they were before."""
        number = self.number_of(thread, block)
        code = SPACES[space]
        owner = number // self.accesses.threads_in_block if code == SHARED else number if space == "local" else 0
        rows = self.accesses.writes.touching(code, owner, address, size)
        rows = rows.take(rows.key < self.key_after(step))
        if not len(rows):
            return None
        at, event = int(rows.instruction[-1]), int(rows.event[-1])
        data = self.accesses.bytes_of(rows, len(rows) - 1)
        peer = self.accesses.peer_write(event)
        if peer is not None:
            return Write(int(rows.key[-1]) // 2 - 1, peer.line, peer.text, peer.block, peer.thread, data, by=peer.title)
        by = int(self.columns.events["thread"][event] if event >= 0 else self.columns.thread[rows.entry[-1]])
        where, own = divmod(by, self.accesses.threads_in_block)
        number_of_step = int(rows.key[-1]) // 2 - (event >= 0)
        return Write(number_of_step, self.program.line(at), self.program.text(at), where, own, data, event >= 0)

    def origin(
        self, what: str | int, thread: Index = 0, *, block: Index | None = None, space: str = "global", size: int = 4,
        step: int | None = None,
    ) -> Origin:  # fmt: skip
        """Where a value comes from: of a register of a thread, or of bytes of memory at an address.

        `str()` of it shows the chain of instructions back to arrays, parameters and constants.
        """
        from ptxlab.trace.finder import Finder

        finder, key, number = Finder(self), self.key_after(step), self.number_of(thread, block)
        if isinstance(what, str):
            return finder.of_register(number, what, key)
        code = SPACES[space]
        owner = number // self.accesses.threads_in_block if code == SHARED else number if space == "local" else 0
        return finder.of_memory(code, owner, what, size, key)

    def tensor_memory(self, block: Index = 0, step: int | None = None, type: str = "f32") -> Any:
        """The words of a block's tensor memory after a step, by lane and column; those that are not known are masked.

        Known is what warps have stored, copied or loaded; a load says what was there before it, too. What MMAs leave,
        such as partial sums, is computed again from what they read.
        """
        found = self.tensor_words.before(_flat(block, self.grid), self.key_after(step))
        return found.view(np.float32) if type == "f32" else found

    @cached_property
    def tensor_words(self) -> TensorWords:
        """What knows the words of tensor memory."""
        from ptxlab.trace.tensor_words import TensorWords

        return TensorWords(self.warp_steps)

    @cached_property
    def warp_steps(self) -> WarpSteps:
        """The launch as warps execute it."""
        from ptxlab.trace.warp_steps import WarpSteps

        return WarpSteps(self)

    def perfetto(self, path: str | Path) -> None:
        """Write what warps, copies and tensor cores did when, as a `.pftrace` that https://ui.perfetto.dev opens."""
        self.timeline().perfetto(path)

    def timeline(self) -> Timeline:
        """What warps, copies and tensor cores did when, in steps; `ptxlab.draw.timeline` draws it."""
        from ptxlab.trace.timeline import timeline_of

        return timeline_of(self)

    def diff(self, other: Trace) -> Difference | None:
        """The first step at which two runs differ, of the same kernel or of two versions of it; None if none does."""
        from ptxlab.trace.difference import difference

        return difference(self, other)


def widget() -> ModuleType:
    """The module of the page in a notebook."""
    try:
        return service("widget")
    except ModuleNotFoundError as missing:
        if missing.name not in ("anywidget", "traitlets"):
            raise
        raise ModuleNotFoundError("the page in a notebook needs `pip install 'ptxlab[notebook]'`") from None


def _flat(index: Index, extents: Sequence[int]) -> int:
    """The number of a block or a thread by its index."""
    if isinstance(index, int | np.integer):
        return int(index)
    x, y, z = (*index, 0, 0)[:3]
    return int(x + extents[0] * (y + extents[1] * z))

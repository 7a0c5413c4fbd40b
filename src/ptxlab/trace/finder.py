"""What finds where a value of a recorded launch comes from: the instruction that wrote it last, and what that one read.

Which registers and bytes those are of an instruction of several lanes, `lanes.py` says, and of the tensor cores that
read shared memory or tensor memory themselves, `tensor_cores.py` and `tensor_memory.py`.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ptxlab import ir
from ptxlab.device.trace_format import READ
from ptxlab.trace import calls, lanes, tensor_cores, tensor_memory
from ptxlab.trace.accesses import GLOBAL, LOCAL, NAMES, PARAM, SHARED, Region, Rows
from ptxlab.trace.columns import Columns
from ptxlab.trace.operands import Use, uses_of
from ptxlab.trace.origin import Origin, Part, Place, Sources, Stored
from ptxlab.trace.program import Value
from ptxlab.trace.registers import Written, last_write
from ptxlab.trace.thread_steps import ThreadSteps

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace


class Finder:
    """What finds origins in one recorded launch."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.columns = trace.columns
        self.accesses = trace.accesses
        self.program = trace.program
        self._uses: dict[int, list[Use]] = {}
        self._known: dict[object, Origin] = {}
        self._rows: dict[tuple[int, int], Rows] = {}
        self._ends: dict[tuple[int, int], list[int]] = {}
        self.tensor_writers: dict[int, list[tensor_memory.Words]] = {}
        self.thread_steps: dict[int, ThreadSteps] = {}

    def node(
        self, what: str, value: Value | bytes | None, step: int | None, line: int, instruction: str,
        role: str = "value",
        *, array: tuple[str, str] | None = None, at: Written | Stored | None = None, place: Place | None = None,
        find: Sources = list,
    ) -> Origin:  # fmt: skip
        """A value that is found here."""
        return Origin(what, value, step, line, instruction, role, array, at, place, self, find)

    # Names.

    def name_thread(self, thread: int) -> str:
        """`thread 5`, with its block if several are recorded."""
        block, own = divmod(thread, self.accesses.threads_in_block)
        return f"thread {own}" + (f" of block {block}" if len(self.trace.blocks) > 1 else "")

    def name_memory(self, space: int, owner: int, address: int, size: int) -> str:
        """The array and the element, or the bytes of shared or local memory."""
        if space in (GLOBAL, NAMES.index("const")):
            region = self.accesses.region_at(address)
            return f"global memory at {address:#x}" if region is None else region.element(address, size)
        of = f" of block {owner}" if space == SHARED and len(self.trace.blocks) > 1 else ""
        return f"bytes {address}..{address + size} of {NAMES[space]} memory{of}"

    def region_of(self, place: Place) -> Region | None:
        """The array or variable that some bytes of memory are of."""
        return self.accesses.region_at(place[2]) if place[0] in (GLOBAL, NAMES.index("const")) else None

    def uses(self, instruction: int) -> list[Use]:
        """The registers of an instruction."""
        if instruction not in self._uses:
            self._uses[instruction] = uses_of(
                self.program.instructions[instruction][1], self.program.match(instruction)
            )
        return self._uses[instruction]

    # Registers.

    def of_register(self, thread: int, name: str, key: int, role: str = "value", part: Part = None) -> Origin:
        """The origin of what a register of a thread holds before `key`, or of some bytes of it."""
        what = f"{name} of {self.name_thread(thread)}"
        written = last_write(self.columns, thread, name, key)
        if written is None:
            return self.node(what, None, None, 0, "is not recorded, or was never written", role)
        if part == (0, written.slot.bytes):
            part = None
        known = (written.entry, written.slot.offset, role, part)
        if known not in self._known:
            at, when = written.slot.instruction, written.key
            self._known[known] = self.node(
                what,
                self.trace.value_of(written),
                when // 2,
                self.program.line(at),
                self.program.text(at),
                role,
                at=written,
                find=lambda: self._of_result(written.entry, at, name, when, part),
            )
        return self._known[known]

    def value(self, thread: int, name: str, key: int) -> int | None:
        """The bits of a register of a thread before `key`; None if they are not known."""
        written = last_write(self.columns, thread, name, key)
        return None if written is None else int.from_bytes(self.columns.bytes_at(written.entry, written.slot), "little")

    def operand(self, thread: int, instruction: int, name: str, key: int) -> int | None:
        """The bits of an operand that is one register or a constant; None if they are not known."""
        match = self.program.match(instruction)
        assert match is not None
        for expected, operand in zip(match.expected, self.program.instructions[instruction][1].operands, strict=True):
            if expected.name == name and isinstance(operand, ir.Immediate):
                return operand.value
        register = next((use.name for use in self.uses(instruction) if use.operand == name), None)
        return None if register is None else self.value(thread, register, key)

    def _of_result(self, entry: int, instruction: int, name: str, key: int, part: Part) -> list[Origin]:
        """The sources of a register that an instruction wrote, or of some bytes of it."""
        thread = int(self.columns.thread[entry])
        uses = self.uses(instruction)
        index = next((use.index for use in uses if use.role == "result" and use.name == name), 0)
        around = [self.of_register(thread, use.name, key, use.role) for use in uses if use.role in ("address", "guard")]
        step = lanes.Executed(thread, entry, instruction, key)
        for explain in (lanes.sources, tensor_cores.sources, tensor_memory.loaded):
            found = explain(self, step, index, part)
            if found is not None:
                return found + around
        returned = calls.returned(self, step, name)
        if returned is not None:
            return returned + around
        packed = lanes.packed(self, step, part)
        values = [self.of_register(thread, use.name, key) for use in uses if use.role == "value"]
        return [*self._loaded(step, index, part), *(values if packed is None else packed), *around]

    def _loaded(self, step: lanes.Executed, index: int, part: Part) -> list[Origin]:
        """What an instruction loaded for one of its results, or for some bytes of it."""
        found = []
        count = max(1, sum(use.role == "result" for use in self.uses(step.instruction)))
        for access in self.trace.accesses_at(step.entry, step.instruction):
            if access.kind == "store":
                continue
            each = access.size // count if access.size % count == 0 else access.size
            start = access.address + (index * each if each * count == access.size else 0)
            offset, size = part if part is not None and sum(part) <= each else (0, each)
            passed = calls.loaded(self, step, start + offset - access.address, size)
            if passed is not None:
                found += passed
                continue
            found.append(self.of_memory(NAMES.index(access.space), access.owner, start + offset, size, step.key))
        return found

    # Lanes of a warp.

    def peer(self, step: lanes.Executed, lane: int) -> tuple[int, int] | None:
        """Another thread of the warp that executed an instruction together with this one, and its `key` then."""
        block, own = divmod(step.thread, self.accesses.threads_in_block)
        thread = block * self.accesses.threads_in_block + own // 32 * 32 + lane
        mine, theirs = self.completions(step.thread, step.instruction), self.completions(thread, step.instruction)
        if step.key not in mine:
            return None
        turn = mine.index(step.key)
        return (thread, theirs[turn]) if turn < len(theirs) else None

    def completions(self, thread: int, instruction: int) -> list[int]:
        """When a thread completed an instruction: the keys, in order."""
        known = thread, instruction
        if known not in self._ends:
            self._ends[known] = self.completions_in(self.columns, thread, instruction)
        return self._ends[known]

    @staticmethod
    def completions_in(columns: Columns, thread: int, instruction: int) -> list[int]:
        """The same, of any launch."""
        found: list[int] = []
        for number, segment in enumerate(columns.segments):
            index = segment.index_of.get(instruction)
            if index is not None:
                own = columns.held(columns.entries_by_segment(thread, number), segment.steps[index][1])
                found += (2 * (columns.first_step[own] + index) + 1).tolist()
        return sorted(found)

    # Memory.

    def of_memory(self, space: int, owner: int, address: int, size: int, key: int, role: str = "value") -> Origin:
        """The origin of bytes of memory before `key`."""
        parts = self._parts(space, owner, address, size, key)
        if len(parts) == 1:
            return self._of_part(space, owner, *parts[0], role)
        what = self.name_memory(space, owner, address, size)
        return self.node(
            what, None, None, 0, "was written in several parts", role,
            find=lambda: [self._of_part(space, owner, *part, role) for part in parts],
        )  # fmt: skip

    def _writes(self, space: int, owner: int) -> Rows:
        if (space, owner) not in self._rows:
            rows = self.accesses.writes
            self._rows[space, owner] = rows.take((rows.space == space) & (rows.owner == owner))
        return self._rows[space, owner]

    def _parts(self, space: int, owner: int, address: int, size: int, key: int) -> list[tuple[int, int, int]]:
        """The parts of some bytes that were last written together: address, size, and the row; -1: never."""
        rows = self._writes(space, owner)
        near = np.flatnonzero((rows.address < address + size) & (rows.address + rows.size > address) & (rows.key < key))
        last = np.full(size, -1)
        for row in near[-64 * size :]:
            start, end = int(rows.address[row]) - address, int(rows.address[row] + rows.size[row]) - address
            last[max(start, 0) : end] = row
        cuts = [0, *(np.flatnonzero(np.diff(last)) + 1).tolist(), size]
        return [(address + a, b - a, int(last[a])) for a, b in pairwise(cuts)]

    def _of_part(self, space: int, owner: int, address: int, size: int, row: int, role: str) -> Origin:
        what = self.name_memory(space, owner, address, size)
        if row < 0:
            return self._initial(space, owner, address, size, role)
        rows = self._writes(space, owner)
        at, when, event = int(rows.instruction[row]), int(rows.key[row]), int(rows.event[row])
        offset = address - int(rows.address[row])
        value = self.accesses.bytes_of(rows, row)[offset : offset + size]
        peer = self.accesses.peer_write(event)
        if peer is not None:
            text = f"written by {peer.title}, line {peer.line}: {peer.text}"
            return self.node(what, value, None, 0, text, role, place=(space, owner, address, size))
        find = self._of_copy if event >= 0 else self._of_store
        return self.node(
            what, value, when // 2 - (event >= 0), self.program.line(at), self.program.text(at), role,
            at=Stored(rows, row, offset, size), place=(space, owner, address, size),
            find=lambda: find(rows, row, offset, size),
        )  # fmt: skip

    def _initial(self, space: int, owner: int, address: int, size: int, role: str) -> Origin:
        """Bytes that no recorded thread wrote: what the host gave, or nothing."""
        what, place = self.name_memory(space, owner, address, size), (space, owner, address, size)
        if space == PARAM:
            layout = self.program.parameters
            for parameter in self.program.kernel.parameters:
                start = layout.offsets[id(parameter)]
                if start <= address < start + max(parameter.type.width // 8, 1) * max(parameter.elements or 1, 1):
                    data = self.accesses.parameters[address : address + size]
                    text = f"parameter `{parameter.title}`"
                    return self.node(
                        text,
                        _number(parameter, data),
                        None,
                        0,
                        "as it was given",
                        role,
                        array=(parameter.name, text),
                        place=place,
                    )
        region = self.accesses.region_at(address) if space in (GLOBAL, NAMES.index("const")) else None
        if region is not None:
            data = region.data[address - region.base : address - region.base + size]
            return self.node(what, data, None, 0, "as it was given", role, array=(region.short, what), place=place)
        text = "nothing that is recorded has written it" if space in (SHARED, LOCAL) else "is not known"
        return self.node(what, None, None, 0, text, role, place=place)

    def _of_store(self, rows: Rows, row: int, offset: int, size: int) -> list[Origin]:
        """The sources of bytes that a store or an atomic operation wrote."""
        entry, at, key = int(rows.entry[row]), int(rows.instruction[row]), int(rows.key[row])
        thread = int(self.columns.thread[entry])
        uses = self.uses(at)
        step = lanes.Executed(thread, entry, at, key)
        around = [self.of_register(thread, use.name, key, use.role) for use in uses if use.role in ("address", "guard")]
        moved = lanes.stored(self, step, offset, size)
        if moved is not None:
            return moved + around
        values = [use for use in uses if use.role == "value"]
        is_update = any(access.kind == "update" for access in self.trace.accesses_at(entry, at))
        if is_update:
            space, owner = int(rows.space[row]), int(rows.owner[row])
            before = self.of_memory(space, owner, int(rows.address[row]) + offset, size, key)
            return [*(self.of_register(thread, use.name, key) for use in values), before, *around]
        count = lanes.elements_of(self.program, at, values[0].operand) if values else 1
        each = max(1, int(rows.size[row]) // count)
        found = []
        for use in values:
            low, high = max(offset - use.index * each, 0), min(offset + size - use.index * each, each)
            if low < high:
                found.append(self.of_register(thread, use.name, key, "value", (low, high - low)))
        return found + around

    def _of_copy(self, rows: Rows, row: int, offset: int, size: int) -> list[Origin]:
        """The sources of bytes that an asynchronous operation wrote: what it read, and what it was started with."""
        events = self.columns.events
        event = events[int(rows.event[row])]
        start = int(event["offset"]) + offset
        same = (events["kind"] == READ) & (events["operation"] == event["operation"])
        same &= (events["thread"] == event["thread"]) & (events["instruction"] == event["instruction"])
        same &= events["time"] <= event["time"]
        found = []
        for read in events[same][::-1]:
            low, high = int(read["offset"]), int(read["offset"]) + int(read["size"])
            if low < start + size and high > start:
                first, past = max(low, start), min(high, start + size)
                is_global = int(read["block"]) == (1 << 64) - 1
                space, owner = (GLOBAL, 0) if is_global else (SHARED, int(read["block"]))
                at = int(read["address"]) + first - low
                found.append(self.of_memory(space, owner, at, past - first, int(rows.key[row])))
                break
        return [*found, *self._of_issue(int(event["thread"]), int(event["instruction"]), int(event["time"]), not found)]

    def _of_issue(self, thread: int, instruction: int, time: int, is_value: bool) -> list[Origin]:
        """What an asynchronous operation was started with: its addresses, or what it stores itself."""
        keys = [
            key for key in self.completions(thread, instruction) if key < 2 * int(self.columns.first_step[time]) + 2
        ]
        if not keys:
            return []
        found = []
        for use in self.uses(instruction):
            if use.role != "result":
                role = "value" if is_value and use.role == "value" else "address" if use.role == "value" else use.role
                found.append(self.of_register(thread, use.name, keys[-1], role))
        return found


def _number(parameter: ir.Variable, data: bytes) -> Value | bytes:
    """What the bytes of a parameter are, where it is one number that Python has."""
    kind, size = parameter.type.kind, parameter.type.width // 8
    if len(data) != size or parameter.dimensions or parameter.vector > 1 or parameter.type.lanes > 1:
        return data
    if kind != "f":
        return int.from_bytes(data, "little", signed=kind == "s")
    code = {"f16": "<e", "f32": "<f", "f64": "<d"}.get(parameter.type.name)
    return data if code is None else float(struct.unpack(code, data)[0])

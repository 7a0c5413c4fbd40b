"""A litmus test as a PTX kernel.

An instance of the test has a few blocks; a launch has many instances, each with its own word of every variable. A
thread of the test is lane 0 of a warp, or a lane; a warp that has a barrier goes through the code of its thread as a
whole. At its end a thread stores its registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.litmus.placements import Placement, constant
from ptxlab.litmus.program import (
    Atomic,
    Barrier,
    Branch,
    ClusterBarrier,
    Compute,
    Fence,
    Instruction,
    Label,
    Litmus,
    Load,
    Move,
    Operand,
    Store,
    Thread,
)

WARP = 32
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
RED_ORDERS = {"acq_rel": "release", "acquire": "relaxed"}  # PTX has no others; a reduction does not acquire anyway
SPINS = 2000  # how long threads of an instance wait for each other, at most, on a GPU
FUEL = 100_000  # backward jumps of a thread on a GPU; then it leaves, and says so

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry litmus(.param .u64 memory, .param .u64 results, .param .u32 instances, .param .u64 scratch)
{
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel that runs instances of a test: its text, and the shape of a launch of one instance."""

    text: str
    blocks: int
    threads: int
    cluster: int | None
    locations: tuple[str, ...]
    initial: tuple[int, ...]
    slots: tuple[tuple[int, str], ...]  # results that are registers, each by its thread and its name
    final: tuple[str, ...]  # results that are locations, of tests in shared memory
    limited: bool  # the last result says that a thread has left a loop that did not end


def write_kernel(test: Litmus, placement: Placement, stress: bool = False) -> Kernel:
    """The kernel of a test; with `stress`, threads of an instance start together, after a few accesses elsewhere."""
    return _Writer(test, placement, stress).write()


class _Writer:
    def __init__(self, test: Litmus, placement: Placement, stress: bool) -> None:
        self.test, self.placement, self.stress = test, placement, stress
        self.space = "shared::cluster" if placement.shared else "global"
        self.words = [name for name in test.locations if test.variables[name].expected is None]
        self.mbarriers = [name for name in test.locations if test.variables[name].expected is not None]
        ctas = [thread.position.at("cta") for thread in test.threads]
        self.units = [ctas[:number].count(cta) for number, cta in enumerate(ctas)]
        width = 1 if placement.lanes else WARP
        self.threads = (max(self.units) + 1) * width
        self.slots = [(number, name) for number, thread in enumerate(test.threads) for name in thread.registers]
        self.lines: list[str] = []

    def write(self) -> Kernel:
        self._prologue()
        for number, thread in enumerate(self.test.threads):
            self._thread(number, thread)
        self._epilogue()
        declarations = self._declarations()
        text = HEAD + "\n".join(f"    {line}" for line in (*declarations, *self.lines)) + "\n}\n"
        placement = self.placement
        return Kernel(
            text,
            len(placement.blocks),
            self.threads,
            placement.cluster_size if placement.clustered else None,
            tuple(self.words),
            tuple(self.test.variables[name].initial for name in self.words),
            tuple(self.slots),
            tuple(self.words) if placement.shared else (),
            self.stress,
        )

    def _emit(self, *lines: str) -> None:
        self.lines.extend(lines)

    def _declarations(self) -> list[str]:
        lines = [
            ".reg .pred %p, %leader;",
            ".reg .b32 %n, %m, %c, %block, %unit, %lane, %instance, %instances, %fuel;",
            ".reg .b64 %memory, %results, %scratch, %d, %e;",
        ]
        lines += [f".reg .b64 %a_{name};" for name in self.test.locations if not self.placement.shared]
        lines += [f".reg .b32 %a_{name};" for name in self.test.locations if self.placement.shared]
        lines += [f".reg .b32 %t{number}_{name};" for number, name in self.slots]
        if self.placement.shared:
            lines += [f".shared .align 4 .b32 s_{name};" for name in self.words]
        return lines + [f".shared .align 8 .b64 s_{name};" for name in self.mbarriers]

    def _prologue(self) -> None:
        size = len(self.placement.blocks)
        shift = 0 if self.placement.lanes else 5
        self._emit(
            "ld.param.u64 %memory, [memory];",
            "ld.param.u64 %results, [results];",
            "ld.param.u32 %instances, [instances];",
            "ld.param.u64 %scratch, [scratch];",
            "mov.u32 %n, %ctaid.x;",
            *self._on_node(),
            f"div.u32 %instance, %n, {size};",
            f"rem.u32 %block, %n, {size};",
            "mov.u32 %n, %tid.x;",
            f"shr.u32 %unit, %n, {shift};",
            f"and.b32 %lane, %n, {0 if self.placement.lanes else WARP - 1};",
            "setp.eq.u32 %leader, %lane, 0;",
        )
        for number, name in enumerate(self.words):
            if not self.placement.shared:
                self._emit(
                    f"mad.lo.u32 %n, %instances, {number}, %instance;",
                    f"mad.wide.u32 %a_{name}, %n, 4, %memory;",
                )
        if self.placement.shared:
            self._share()
        if self.stress:
            self._disturb()
        for number, thread in enumerate(self.test.threads):
            block = self.placement.blocks.index(thread.position.at("cta"))
            code = block * (self.threads + 1) + self.units[number]
            self._emit(
                f"mad.lo.u32 %n, %block, {self.threads + 1}, %unit;",
                f"setp.eq.u32 %p, %n, {code};",
                f"@%p bra thread{number};",
            )
        self._emit("bra done;")

    def _on_node(self) -> list[str]:
        """On several GPUs there is one instance: in place of their number, the first block of each GPU is given."""
        return ["add.u32 %n, %n, %instances;", "mov.u32 %instances, 1;"] if self.placement.gpus else []

    def _share(self) -> None:
        """Give shared variables their initial values, and all threads their addresses in the first block."""
        for name in (*self.words, *self.mbarriers):
            self._emit(f"mov.u32 %a_{name}, s_{name};", f"mapa.shared::cluster.u32 %a_{name}, %a_{name}, 0;")
        self._emit("mov.u32 %n, %tid.x;", "or.b32 %n, %n, %block;", "setp.ne.u32 %p, %n, 0;", "@%p bra shared;")
        for name in self.words:
            self._emit(f"st.shared.u32 [s_{name}], {self.test.variables[name].initial};")
        for name in self.mbarriers:
            self._emit(f"mbarrier.init.shared.b64 [s_{name}], {self.test.variables[name].expected};")
        self._emit("shared:", *self._everyone())

    def _everyone(self) -> list[str]:
        """All threads of the blocks synchronize."""
        if self.placement.clustered:
            return ["barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;"]
        return ["barrier.cta.sync 15;"]

    def _disturb(self) -> None:
        """Access other memory for a while, each thread its own, then wait for the other threads of the instance."""
        self._emit(
            "mad.lo.u32 %n, %instance, 0x9E3779B1, %unit;",
            "mad.lo.u32 %n, %n, 0x85EBCA77, %block;",
            "shr.u32 %m, %n, 27;",
            "disturb:",
            "and.b32 %n, %n, 0xFFFC;",
            "cvt.u64.u32 %d, %n;",
            "add.u64 %d, %scratch, %d;",
            "ld.volatile.global.u32 %c, [%d];",
            "st.volatile.global.u32 [%d], %m;",
            "mad.lo.u32 %n, %n, 5, 4096;",
            "sub.u32 %m, %m, 1;",
            "setp.ge.s32 %p, %m, 0;",
            "@%p bra disturb;",
            "setp.ne.u32 %p, %lane, 0;",
            "@%p bra started;",
            f"mul.wide.u32 %d, %instance, {4};",
            "add.u64 %d, %scratch, %d;",
            "add.u64 %d, %d, 65536;",
            "atom.relaxed.gpu.global.add.u32 %n, [%d], 1;",
            f"mov.u32 %m, {SPINS};",
            "wait:",
            "ld.relaxed.gpu.global.u32 %n, [%d];",
            f"setp.ge.u32 %p, %n, {self._leaders()};",
            "@%p bra started;",
            "sub.u32 %m, %m, 1;",
            "setp.ne.u32 %p, %m, 0;",
            "@%p bra wait;",
            "started:",
        )

    def _leaders(self) -> int:
        return len(self.placement.blocks) * (self.threads if self.placement.lanes else self.threads // WARP)

    def _epilogue(self) -> None:
        if self.stress:
            last = len(self.slots) + (len(self.words) if self.placement.shared else 0)
            self._emit("tired:", *self._result(last, "1"))
        self._emit("done:")
        if self.placement.shared:
            self._emit(*self._everyone())
            self._emit("mov.u32 %n, %tid.x;", "or.b32 %n, %n, %block;", "setp.ne.u32 %p, %n, 0;", "@%p bra end;")
            for number, name in enumerate(self.words):
                self._emit(f"ld.shared.u32 %n, [s_{name}];", *self._result(len(self.slots) + number, "%n"))
            self._emit("end:")
        self._emit("ret;")

    def _result(self, slot: int, register: str, guard: str = "") -> list[str]:
        return [
            f"mad.lo.u32 %c, %instances, {slot}, %instance;",
            "mad.wide.u32 %e, %c, 4, %results;",
            f"{guard}st.global.u32 [%e], {register};",
        ]

    def _thread(self, number: int, thread: Thread) -> None:
        self._emit(f"thread{number}:")
        whole = any(isinstance(one, Barrier) for one in thread.instructions)
        if not whole:
            self._emit("@!%leader bra done;")
        for name in thread.registers:
            self._emit(f"mov.u32 %t{number}_{name}, {thread.initial.get(name, 0)};")
        branches = whole and any(isinstance(one, Branch) for one in thread.instructions)
        writer = _ThreadWriter(self, number, thread, "@%leader " if whole else "", branches)
        if self.stress:
            self._emit(f"mov.u32 %fuel, {FUEL};")
        passed: set[str] = set()
        for one in thread.instructions:
            if self.stress and isinstance(one, Branch) and one.label in passed:
                self._emit("sub.u32 %fuel, %fuel, 1;", "setp.eq.u32 %p, %fuel, 0;", "@%p bra tired;")
            if isinstance(one, Label):
                passed.add(one.name)
            self._emit(*writer.lines(one))
        for slot, (owner, name) in enumerate(self.slots):
            if owner == number:
                self._emit(*self._result(slot, f"%t{number}_{name}", "@%leader " if whole else ""))
        self._emit("bra done;")


class _ThreadWriter:
    """The instructions of one thread; `guard` leaves memory to lane 0, `shares` gives what it reads to all lanes."""

    def __init__(self, kernel: _Writer, number: int, thread: Thread, guard: str, shares: bool) -> None:
        self.kernel, self.number, self.thread, self.guard, self.shares = kernel, number, thread, guard, shares

    def lines(self, one: Instruction) -> list[str]:
        """The PTX of an instruction."""
        match one:
            case Load():
                return self._load(one)
            case Store():
                code = f"st{self._order(one.order, one.scope)}.{self.kernel.space}.u32"
                return [f"{self.guard}{code} [%a_{one.variable}], {self._operand(one.value)};"]
            case Atomic():
                return self._atomic(one)
            case Fence():
                return [f"{self.guard}fence.{one.order}.{self.kernel.placement.scope(one.scope)};"]
            case Barrier():
                return self._barrier(one)
            case ClusterBarrier():
                kind = "wait" if one.waits else "arrive"
                order = "acquire" if one.waits else "relaxed" if one.order == "relaxed" else "release"
                return [f"barrier.cluster.{kind}.{order};"]
            case Move():
                return [f"mov.u32 {self._register(one.register)}, {self._operand(one.operand)};"]
            case Compute():
                return [self._compute(one)]
            case Branch(comparison=None):
                return [f"bra l{self.number}_{one.label};"]
            case Branch():
                assert one.comparison is not None
                left, right = (self._operand(operand) for operand in one.operands)
                if not left.startswith("%"):
                    left, move = "%c", [f"mov.u32 %c, {left};"]
                else:
                    move = []
                test = f"setp.{COMPARISONS[one.comparison]}.s32 %p, {left}, {right};"
                return [*move, test, f"@%p bra l{self.number}_{one.label};"]
            case Label():
                return [f"l{self.number}_{one.name}:"]
        raise AssertionError(one)

    def _register(self, name: str) -> str:
        return f"%t{self.number}_{name}"

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, int):
            return str(operand)
        return self._register(operand) if operand in self.thread.registers else "0"

    def _order(self, order: str, scope: str | None) -> str:
        return "" if scope is None else f".{order}.{self.kernel.placement.scope(scope)}"

    def _share(self, register: str) -> list[str]:
        return [f"shfl.sync.idx.b32 {register}, {register}, 0, 31, 0xFFFFFFFF;"] if self.shares else []

    def _load(self, one: Load) -> list[str]:
        register = self._register(one.register)
        if self.kernel.test.variables[one.variable].expected is None:
            code = f"ld{self._order(one.order, one.scope)}.{self.kernel.space}.u32"
            return [f"{self.guard}{code} {register}, [%a_{one.variable}];", *self._share(register)]
        wait = f"mbarrier.test_wait.parity.{one.order}.{one.scope}.shared::cta.b64"
        return [f"{wait} %p, [s_{one.variable}], 0;", f"selp.u32 {register}, 1, 0, %p;", *self._share(register)]

    def _atomic(self, one: Atomic) -> list[str]:
        address = f"[%a_{one.variable}]"
        if self.kernel.test.variables[one.variable].expected is not None:
            return [f"{self.guard}mbarrier.arrive.{one.order}.{one.scope}.shared::cluster.b64 _, {address};"]
        operands = [self._operand(operand) for operand in one.operands]
        operation = one.operation
        lines = []
        if operation == "sub":
            operation = "add"
            lines = [f"neg.s32 %c, {operands[0]};" if operands[0].startswith("%") else f"mov.s32 %c, -{operands[0]};"]
            operands = ["%c"]
        type = {"cas": "b32", "exch": "b32", "and": "b32", "or": "b32", "xor": "b32"}.get(operation, "u32")
        order = one.order if one.register is not None else RED_ORDERS.get(one.order, one.order)
        code = f"{order}.{self.kernel.placement.scope(one.scope)}.{self.kernel.space}.{operation}.{type}"
        if one.register is None:
            return [*lines, f"{self.guard}red.{code} {address}, {operands[0]};"]
        register = self._register(one.register)
        return [
            *lines,
            f"{self.guard}atom.{code} {register}, {address}, {', '.join(operands)};",
            *self._share(register),
        ]

    def _barrier(self, one: Barrier) -> list[str]:
        kind = "arrive" if one.arrives_only else "sync"
        count = self._count(one)
        return [*count[0], f"barrier.cta.{kind} {self._operand(one.number)}, {count[1]};"]

    def _count(self, one: Barrier) -> tuple[list[str], str]:
        """How many threads a barrier is for: whole warps."""
        if isinstance(one.count, int):
            return [], str(one.count * WARP)
        if one.count is not None:
            return [f"mul.lo.u32 %c, {self._operand(one.count)}, {WARP};"], "%c"
        cta = self.thread.position.at("cta")
        near = [thread for thread in self.kernel.test.threads if thread.position.at("cta") == cta]
        return [], str(WARP * sum(constant(self.thread, one.number) in _barriers(thread) for thread in near))

    def _compute(self, one: Compute) -> str:
        register = self._register(one.register)
        operands = ", ".join(self._operand(operand) for operand in one.operands)
        code = {"mul": "mul.lo.s32", "and": "and.b32", "or": "or.b32", "xor": "xor.b32"}
        return f"{code.get(one.operation, f'{one.operation}.s32')} {register}, {operands};"


def _barriers(thread: Thread) -> set[int | None]:
    return {constant(thread, one.number) for one in thread.instructions if isinstance(one, Barrier)}

"""A kernel whose threads take each step from an array: what they can do, and how a random launch of it is made.

A step is what to do and its operands: `%a` an offset, which grows by `%d` with each thread, `%b` and `%e` values, `%c`
a number of an mbarrier, a block or a group, `%x` and `%y` 64 bits. Thread `i` of a launch runs program `roles[i]`.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import ptxlab
from ptxlab import ir

MOST = 20  # steps of a program
PROGRAMS = 8
THREADS = 256
WORDS = 12  # of a step
DATA = 2048  # bytes of each array that threads access

_HEAD = f"""
.visible .entry k(.param .u64 data, .param .u64 other, .param .u64 out, .param .u64 programs, .param .u64 roles
    PARAMETERS)
{{
    .reg .pred %p<4>;
    .reg .b16 %w<4>;
    .reg .b32 %op, %a, %b, %c, %d, %e, %s, %m, %r<8>, %last, %acc, %left, %t, %lin;
    .reg .b64 %g, %f, %x, %y, %at, %l<8>, %data, %other, %out;
    .shared .align 8 .b64 bars[4];
    ld.param.u64 %data, [data];
    ld.param.u64 %other, [other];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mad.lo.u32 %lin, %r0, %r1, %t;
    ld.param.u64 %l0, [roles];
    cvt.u64.u32 %l1, %lin;
    add.u64 %l0, %l0, %l1;
    ld.global.u8 %r2, [%l0];
    ld.param.u64 %at, [programs];
    mad.wide.u32 %at, %r2, {MOST * WORDS * 4}, %at;
    mov.u32 %acc, 0;
    mov.u32 %last, 0;
    mov.u32 %left, {MOST};
    add.u64 %data, %data, {DATA // 2};
    START
next:
    setp.eq.u32 %p0, %left, 0;
    @%p0 bra end;
    sub.u32 %left, %left, 1;
    ld.global.v4.u32 {{%op, %a, %b, %c}}, [%at];
    ld.global.v2.u32 {{%d, %e}}, [%at+16];
    ld.global.v2.u64 {{%x, %y}}, [%at+32];
    add.u64 %at, %at, {WORDS * 4};
    mad.lo.u32 %a, %d, %t, %a;
    mov.u32 %s, area;
    add.u32 %s, %s, %a;
    mov.u32 %m, bars;
    mad.lo.u32 %m, %c, 8, %m;
    cvt.u64.u32 %l0, %a;
    add.u64 %g, %data, %l0;
    add.u64 %f, %other, %l0;
"""
_TAIL = """
end:
    mad.wide.u32 %out, %lin, 4, %out;
    st.global.u32 [%out], %acc;
    ret;
}
"""


@dataclass(frozen=True)
class Machine:
    """What a thread can do: the instructions of each step, by its name."""

    target: str
    steps: Mapping[str, str]
    start: str = ""
    parameters: str = ""
    arguments: tuple[object, ...] = ()

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.steps)}

    @cached_property
    def kernel(self) -> ir.Function:
        """The kernel that runs all programs."""
        cases = ", ".join(f"C{number}" for number in range(len(self.steps)))
        lines = [f"cases: .branchtargets {cases};", "    brx.idx %op, cases;"]
        for number, text in enumerate(self.steps.values()):
            parts = [f"    {part.strip()}" for part in text.replace(";", ";\n").split("\n") if part.strip()]
            lines += [f"C{number}:", *parts, "    bra.uni next;"]
        head = _HEAD.replace("PARAMETERS", self.parameters).replace("START", self.start)
        first = f".version 8.7\n.target {self.target}\n.address_size 64\n"
        return ptxlab.parse(first + head + "\n".join(lines) + _TAIL, name="steps.ptx")["k"]


@dataclass
class Launch:
    """Programs, which threads run them, and how they are launched."""

    machine: Machine
    programs: list[list[list[int]]]
    roles: list[int]
    grid: int
    block: int
    cluster: int | None
    how: dict[str, object] = field(default_factory=dict)

    def run(self) -> tuple[ptxlab.Result, list[np.ndarray]]:
        """What the launch reports and counts, and what it leaves in memory."""
        steps = np.zeros((PROGRAMS, MOST, WORDS), np.uint32)
        for number, program in enumerate(self.programs):
            for at, (op, a, b, c, d, e, x, y) in enumerate(program[:MOST]):
                wide = [part for one in (x, y) for part in (one & 0xFFFFFFFF, one >> 32)]
                steps[number, at] = [value & 0xFFFFFFFF for value in (op, a, b, c, d, e, 0, 0, *wide)]
        roles = np.array([self.roles[at % len(self.roles)] for at in range(THREADS)], np.uint8)
        data, other = (np.arange(DATA, dtype=np.uint32) % 97 for _ in range(2))
        arrays = [data, other, np.zeros(THREADS, np.uint32)]
        how = {"device": "cpu", "timeout": 20, "on_error": "collect", "cluster": self.cluster} | self.how
        given = [*arrays, steps, roles, *self.machine.arguments]
        return self.machine.kernel.launch(self.grid, self.block, given, **how), arrays

    def __str__(self) -> str:
        names = list(self.machine.steps)
        head = f"grid={self.grid} block={self.block} cluster={self.cluster} {self.how} roles={self.roles}"
        lines = [f"  {names[op]}: {rest}" for program in self.programs for op, *rest in [*program, [0]]]
        return "\n".join([head, *lines])


class Maker:
    """A random launch in the making: the programs of a number of roles."""

    machine: Machine

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.grid, self.block, self.cluster, self.roles = self.shape()
        self.count = max(self.roles) + 1
        self.programs: list[list[list[int]]] = [[] for _ in range(self.count)]

    def shape(self) -> tuple[int, int, int | None, list[int]]:
        """The grid, the block, the cluster, and the roles of threads."""
        raise NotImplementedError

    def write(self) -> None:
        """Write the programs."""
        raise NotImplementedError

    def make(self) -> Launch:
        """The launch: its programs, most of them with a mistake or two."""
        self.write()
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 4))):
            self._err()
        how: dict[str, object] = {"seed": self.random.randrange(1, 1000)}  # 0 has other machine code
        how["workers"] = self.random.choice((1, 1, 1, 2)) if self.grid > 1 else 1
        return Launch(self.machine, self.programs, self.roles, self.grid, self.block, self.cluster, how)

    def add(self, role: int, name: str, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0,
            x: int = 0, y: int = 0) -> None:  # fmt: skip
        """One more step of a role."""
        if len(self.programs[role]) < MOST:
            self.programs[role].append([self.machine.numbers[name], a, b, c, d, e, x, y])

    def all(self, name: str, *operands: int, **named: int) -> None:
        """One more step of each role."""
        for role in range(self.count):
            self.add(role, name, *operands, **named)

    def access(self, kind: str, space: str = "", word: str = "") -> str:
        """A step whose name starts with two words and has another; of one word of memory, at any multiple of 4."""
        start = f"{kind} {space}".strip()
        names = (name for name in self.machine.steps if not name.endswith(("u64", "v4", "b128")))
        found = [name for name in names if name.startswith(start) and word in name]
        return self.random.choice(found or [f"{kind} {space} weak"])

    def _err(self) -> None:
        """Make a mistake: a step is left out, made twice, in another place, or with another operand."""
        program = self.random.choice(self.programs)
        if not program:
            return
        at = self.random.randrange(len(program))
        step = program[at]
        match self.random.randrange(8):
            case 0:
                del program[at]
            case 1:
                program.insert(self.random.randrange(len(program) + 1), [*step])
            case 2:
                program.insert(self.random.randrange(len(program)), program.pop(at))
            case 3 | 4:
                step[0] = self.random.choice(self._relatives(step[0]))
            case 5:
                step[self.random.choice((1, 4))] += self.random.choice((-16, -4, -1, 1, 2, 4, 8, 32))
            case 6:
                step[self.random.choice((2, 3))] ^= self.random.choice((1, 1, 2, 16, 32))
            case 7:
                step[self.random.choice((5, 6, 7))] ^= 1 << self.random.randrange(64)

    def _relatives(self, number: int) -> list[int]:
        """Steps whose names start with the same word."""
        names = list(self.machine.steps)
        return [other for other, name in enumerate(names) if name.split()[0] == names[number].split()[0]]

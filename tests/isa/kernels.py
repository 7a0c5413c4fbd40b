"""Cases as kernels: a group of 32 cases of one instruction, one for each thread of a warp, loaded and stored as bytes.

The same text runs on the emulator and on a GPU; `pack` makes its input of the cases and `unpack` cases' results of its
output. An operand, or an element of a vector, has a slot of 16 bytes for each thread.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ptxlab.isa.form import Form
from ptxlab.isa.operand import Expected
from ptxlab.isa.targets import Version, target_named
from ptxlab.isa.types import Type

from .cases import Bits, Case, all_operands, make_cases
from .sample import Choice

LANES = 32
SLOT = 16
# Where a form may live, the first that has it.
HOMES: tuple[tuple[Version, str], ...] = (
    ((9, 0), "sm_90a"),
    ((9, 0), "sm_100a"),
    ((9, 2), "sm_120f"),
    ((9, 3), "sm_90a"),
    ((9, 4), "sm_100a"),
    ((9, 4), "sm_107a"),
    ((6, 3), "sm_61"),
)
HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry cases(.param .u64 given, .param .u64 found)
{{
.reg .u32 %thread, %block, %size; .reg .u64 %slot, %in, %out;
ld.param.u64 %in, [given];
ld.param.u64 %out, [found];
mov.u32 %block, %ctaid.x;
mov.u32 %size, %ntid.x;
mov.u32 %thread, %tid.x;
mad.lo.u32 %thread, %block, %size, %thread;
mul.wide.u32 %slot, %thread, 16;
add.u64 %in, %in, %slot;
add.u64 %out, %out, %slot;
"""


@dataclass(frozen=True)
class Group:
    """32 cases that differ in the bits of their registers only; `negated` predicates are written `!p`."""

    cases: tuple[Case, ...]
    negated: frozenset[str]

    @property
    def first(self) -> Case:
        return self.cases[0]


def home(form: Form, choice: Choice) -> tuple[Version, str]:
    """The version and the target that a choice is compiled for."""
    needed = [since for _, since in form.requirements(choice)]
    return next((v, t) for v, t in HOMES if all(since.holds(v, target_named(t)) for since in needed))


def make_group(form: Form, choice: Choice, seed: int) -> Group:
    """32 cases with the same immediates, selections and signs."""
    generator = random.Random(f"{form.syntax}{choice}{seed}")
    cases = list(make_cases(form, choice, LANES, seed=seed))
    first = cases[0]
    fixed = {one.name: first.bits[one.name] for one in all_operands(form, first.m) if one.kind == "immediate"}
    same = [
        replace(case, bits={**case.bits, **fixed}, selections=first.selections, minus=first.minus) for case in cases
    ]
    able = [one.name for one in all_operands(form, first.m) if one.negatable and one.name in first.bits]
    return Group(tuple(same), frozenset(name for name in able if generator.randrange(2)))


def kernel(groups: Sequence[Group], threads: int = LANES) -> str:
    """A module whose kernel `cases` runs every group, one after the other, in this many threads."""
    version, target = home(groups[0].first.form, groups[0].first.choice)
    lines = [HEAD.format(version=".".join(map(str, version)), target=target)]
    read = written = 0
    for group in groups:
        body = _Body(group, read, written, threads)
        lines.append(body.text())
        read, written = body.read, body.written
    return "\n".join([*lines, "ret;", "}", ""])


def pack(groups: Sequence[Group]) -> npt.NDArray[np.uint8]:
    """The input of the kernel."""
    found = []
    for group in groups:
        for one in registers(group, "read"):
            for element in range(one.count or 1):
                for case in group.cases:
                    bits = case.bits[one.name]
                    value = bits[element] if isinstance(bits, tuple) else bits
                    found.append((value ^ (one.name in group.negated)).to_bytes(SLOT, "little"))
        if has_carry(group.first.form):
            found += [case.carry.to_bytes(SLOT, "little") for case in group.cases]
    return np.frombuffer(b"".join(found), np.uint8).copy()


def output(groups: Sequence[Group]) -> npt.NDArray[np.uint8]:
    """Space for what the kernel finds."""
    slots = sum(one.count or 1 for group in groups for one in registers(group, "write"))
    slots += sum(has_carry(group.first.form) for group in groups)
    return np.zeros(slots * LANES * SLOT, np.uint8)


def unpack(groups: Sequence[Group], found: npt.NDArray[np.uint8]) -> Iterator[tuple[Case, tuple[Bits, ...]]]:
    """Each case with its results, and after them the carry flag where the instruction knows it."""
    words = [int.from_bytes(found[at : at + SLOT].tobytes(), "little") for at in range(0, len(found), SLOT)]
    slot = 0
    for group in groups:
        results: list[list[Bits]] = [[] for _ in group.cases]
        for one in registers(group, "write"):
            for lane, result in enumerate(results):
                elements = tuple(words[(slot + index) * LANES + lane] for index in range(one.count or 1))
                result.append(elements if one.count else elements[0])
            slot += one.count or 1
        if has_carry(group.first.form):
            for lane, result in enumerate(results):
                result.append(words[slot * LANES + lane])
            slot += 1
        yield from ((case, tuple(result)) for case, result in zip(group.cases, results, strict=True))


def has_carry(form: Form) -> bool:
    """Whether an instruction knows the carry flag: it is one more operand and one more result."""
    return form.chapter == "extended_precision"


def registers(group: Group, role: str) -> list[Expected]:
    """The operands that are read from memory, or written to it, in their order."""
    operands = all_operands(group.first.form, group.first.m)
    return [one for one in operands if (one.role == "write") == (role == "write") and one.kind != "immediate"]


def _register_type(type: Type) -> str:
    return type.name if type.declarable else f"b{max(8, type.width)}"


class _Body:
    """One instruction, with the loads before it and the stores after it, in a block of its own."""

    def __init__(self, group: Group, read: int, written: int, threads: int) -> None:
        self.group = group
        self.read = read
        self.written = written
        self.threads = threads
        self.lines: list[str] = [".reg .u32 %word; .reg .b64 %low, %high;"]

    def text(self) -> str:
        group = self.group
        for one in [*registers(group, "read"), *registers(group, "write")]:
            assert one.type is not None
            for name in self._names(one):
                self.lines.append(f".reg .{_register_type(one.type)} {name};")
                if one.role != "write":
                    self._load(one.type, name)
        if has_carry(group.first.form):
            self.lines.append(f"ld.global.u32 %word, [%in+{self._next_read()}];")
            self.lines.append("add.cc.u32 %word, %word, 0xFFFFFFFF;")
        self.lines.append(self._instruction())
        if has_carry(group.first.form):
            self.lines.append("addc.u32 %word, 0, 0;")
        carry_slot = None
        for one in registers(group, "write"):
            assert one.type is not None
            for name in self._names(one):
                self._store(one.type, name)
        if has_carry(group.first.form):
            carry_slot = self._next_written()
            self.lines.append(f"st.global.u32 [%out+{carry_slot}], %word;")
        return "\n".join(["{", *self.lines, "}"])

    def _names(self, one: Expected) -> list[str]:
        return [f"%_{one.name}{index}" for index in range(one.count or 1)]

    def _next_read(self) -> int:
        self.read += 1
        return (self.read - 1) * self.threads * SLOT

    def _next_written(self) -> int:
        self.written += 1
        return (self.written - 1) * self.threads * SLOT

    def _load(self, type: Type, name: str) -> None:
        at = self._next_read()
        if type.width == 1:
            self.lines.append(f"ld.global.u32 %word, [%in+{at}];\nsetp.ne.u32 {name}, %word, 0;")
        elif type.width == 128:
            self.lines.append(f"ld.global.v2.b64 {{%low, %high}}, [%in+{at}];\nmov.b128 {name}, {{%low, %high}};")
        else:
            self.lines.append(f"ld.global.b{type.width} {name}, [%in+{at}];")

    def _store(self, type: Type, name: str) -> None:
        at = self._next_written()
        if type.width == 1:
            self.lines.append(f"selp.u32 %word, 1, 0, {name};\nst.global.u32 [%out+{at}], %word;")
        elif type.width == 128:
            self.lines.append(f"mov.b128 {{%low, %high}}, {name};\nst.global.v2.b64 [%out+{at}], {{%low, %high}};")
        else:
            self.lines.append(f"st.global.b{type.width} [%out+{at}], {name};")

    def _instruction(self) -> str:
        form, case = self.group.first.form, self.group.first
        operands = []
        for operand in form.operands:
            if operand.name not in case.operands:
                continue  # left out with these modifiers
            text = self._operand(case.operands[operand.name])
            if operand.second is not None:
                text += f"|{self._operand(case.operands[operand.second])}"
            operands.append(text)
        return f"{form.spell(case.choice)} {', '.join(operands)};"

    def _operand(self, one: Expected) -> str:
        case = self.group.first
        if one.kind == "immediate":
            return str(case.bits[one.name])
        names = self._names(one)
        text = "{" + ", ".join(names) + "}" if one.count else names[0]
        selected = f".{case.selections[one.name]}" if one.name in case.selections else ""
        return "!" * (one.name in self.group.negated) + "-" * (one.name in case.minus) + text + selected

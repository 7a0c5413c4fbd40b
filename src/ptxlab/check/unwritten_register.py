"""A register is read, and on some way to that place nothing has written it.

The register then holds whatever was left there. ptxas assembles this without a word and may even give the register a
value of its own choosing. A write under a guard counts as a write, because it is usually read under the same guard.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 out) {
    .reg .b64 %rd<2>;
    .reg .u32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 1;
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 out) {
    .reg .b64 %rd<2>;
    .reg .u32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 1;
    mov.u32 %r2, 2;
    add.u32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, warning

from .effects import Effects, registers_in
from .program import FunctionFacts, Program
from .unknown_name import span_of_name


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        for at, register in first_reads(facts):
            yield _explain(program, facts, at, register)


def first_reads(facts: FunctionFacts) -> list[tuple[int, int]]:
    """The first place where each unwritten register is read: (instruction, register)."""
    blocks = facts.flow.blocks
    effects = facts.effects
    exposed, written = zip(*[_summary(effects, b.start, b.end) for b in blocks], strict=True) if blocks else ((), ())
    everything = 0
    for mask in written:
        everything |= mask
    given = _parameters(facts)
    at_entry = [everything | given] * len(blocks)
    if blocks:
        at_entry[0] = given
    order = facts.flow.ordered()
    changed = True
    while changed:
        changed = False
        for number in order:
            known = given if number == 0 else -1
            for before in blocks[number].predecessors:
                known &= at_entry[before] | written[before]
            if known != at_entry[number]:
                at_entry[number] = known
                changed = True
    found: dict[int, int] = {}
    for number in order:
        missing = exposed[number] & ~at_entry[number]
        if missing:
            for at, register in _reads(effects, blocks[number].start, blocks[number].end, missing):
                found.setdefault(register, at)
    return sorted((at, register) for register, at in found.items())


def _summary(effects: Effects, start: int, end: int) -> tuple[int, int]:
    """The registers that a block reads before it writes them, and those that it writes, as bits."""
    read: set[int] = set()
    written: set[int] = set()
    reads, writes = effects.reads, effects.writes
    for at in range(start, end):
        for register in reads[at]:
            if register not in written:
                read.add(register)
        written.update(writes[at])
    return _bits(read), _bits(written)


def _bits(registers: set[int]) -> int:
    if not registers:
        return 0
    digits = bytearray(max(registers) // 8 + 1)
    for register in registers:
        digits[register >> 3] |= 1 << (register & 7)
    return int.from_bytes(digits, "little")


def _reads(effects: Effects, start: int, end: int, missing: int) -> Iterator[tuple[int, int]]:
    written: set[int] = set()
    for at in range(start, end):
        for register in effects.reads[at]:
            if missing >> register & 1 and register not in written:
                yield at, register
        written.update(effects.writes[at])


def _parameters(facts: FunctionFacts) -> int:
    """Registers that the caller has written: parameters in `.reg`."""
    parameters = {id(variable) for variable in facts.function.parameters}
    found = set()
    for instruction in facts.instructions if parameters else ():
        for operand in instruction.operands:
            if isinstance(operand, ir.Register) and id(operand.variable) in parameters:
                found.add(operand.index)
    return _bits(found)


def _explain(program: Program, facts: FunctionFacts, at: int, index: int) -> Diagnostic:
    instruction = facts.instructions[at]
    register = next(r for r in _registers(instruction) if r.index == index)
    is_written = any(index in written for written in facts.effects.writes)
    declared = program.module.span(register.variable) if register.variable else None
    others = [Label(declared, "declared here")] if declared else []
    write = next((i for i, written in enumerate(facts.effects.writes) if index in written), None)
    if write is not None:
        span = program.module.span(facts.instructions[write])
        others = [Label(span, "written here, which does not come first on every way")] if span else []
    return warning(
        "unwritten-register",
        f"`{register.name}` is read before it is written"
        + (" on some way to this place" if is_written else "; nothing writes it"),
        span_of_name(program, instruction, register.name),
        "holds an arbitrary value",
        others=others,
        helps=[f"write `{register.name}` first, for instance with `mov`"],
    )


def _registers(instruction: ir.Instruction) -> Iterator[ir.Register]:
    for operand in instruction.operands:
        yield from registers_in(operand)
    if instruction.guard is not None:
        yield from registers_in(instruction.guard.register)

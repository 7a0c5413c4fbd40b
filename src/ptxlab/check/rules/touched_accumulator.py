"""A register that a `wgmma.mma_async` in flight uses is accessed before a wait that covers it.

`wgmma.mma_async` only issues an MMA. Until a `wgmma.wait_group` that covers its group, its accumulators, and the
registers that hold its A, belong to the tensor core: reading them gives an arbitrary value, writing them changes the
result. ptxas repairs what it sees by a wait of its own, or by serializing the MMAs, and reports it at
most in an information line.

Close the group with `wgmma.commit_group` and wait with `wgmma.wait_group n`, where `n` is the number of groups closed
later that may stay pending. Further MMAs into the same accumulators need no wait in between.

Wrong:

```ptx
.version 8.0
.target sm_90a
.entry k(.param .u64 out, .param .u64 a, .param .u64 b) {
    .reg .b64 %rd<4>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [a];
    ld.param.u64 %rd3, [b];
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd3, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_90a
.entry k(.param .u64 out, .param .u64 a, .param .u64 b) {
    .reg .b64 %rd<4>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [a];
    ld.param.u64 %rd3, [b];
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd3, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
    ret;
}
```
"""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab.check.wgmma import OPEN, Mmas, Running
from ptxlab.ir.effects import registers_in
from ptxlab.report import Diagnostic, Label, warning

from ..program import FunctionFacts, Program
from ..spans import span_of_name


class Touch(NamedTuple):
    """Instruction `at` reads or writes a register of an MMA that is still in flight."""

    at: int
    register: int
    mma: int
    age: int
    writes: bool


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        if not facts.doing("wgmma", "start"):
            continue
        mmas = Mmas(facts)
        reported: set[int] = set()
        starts = mmas.running()
        for number in sorted(starts):
            block, running = facts.flow.blocks[number], dict(starts[number])
            for at in range(block.start, block.end):
                if running:
                    touch = _touch(facts, mmas, at, running, reported)
                    if touch is not None:
                        yield _explain(program, facts, mmas, touch)
                        reported.update(running)
                mmas.step(at, running)


def _touch(facts: FunctionFacts, mmas: Mmas, at: int, running: Running, reported: set[int]) -> Touch | None:
    reads, writes = facts.effects.reads[at], facts.effects.writes[at]
    if not reads and not writes:
        return None
    own = mmas.of.get(at)
    for number, age in running.items():
        if number in reported:
            continue
        mma = mmas.of[number]
        if mma.registers.isdisjoint(reads) and mma.registers.isdisjoint(writes):
            continue
        if own is not None:
            if own.accumulators == mma.accumulators:
                continue
            reads = own.inputs
            writes = own.accumulators
        for register in writes:
            if register in mma.accumulators or register in mma.inputs:
                return Touch(at, register, number, age, True)
        for register in reads:
            if register in mma.accumulators or (own is None and register in mma.inputs):
                return Touch(at, register, number, age, False)
    return None


def _explain(program: Program, facts: FunctionFacts, mmas: Mmas, touch: Touch) -> Diagnostic:
    module = program.module
    instruction, start = facts.instructions[touch.at], facts.instructions[touch.mma]
    name = next(r.name for operand in instruction.operands for r in registers_in(operand) if r.index == touch.register)
    is_input = touch.register not in mmas.of[touch.mma].accumulators
    span = module.opcode_span(start)
    others = (
        [Label(span, f"this MMA may still be in flight, and {'reads' if is_input else 'writes'} it")] if span else []
    )
    helps = ["wait first: `wgmma.wait_group.sync.aligned 0;`"]
    notes = []
    if touch.age == OPEN:
        helps = [
            "close the group and wait first: `wgmma.commit_group.sync.aligned;`, `wgmma.wait_group.sync.aligned 0;`"
        ]
    waits = [at for at, kind in mmas.steps.items() if kind == "wait" and touch.mma < at < touch.at]
    if waits and mmas.limit(waits[-1]) > touch.age != OPEN:
        limit = mmas.limit(waits[-1])
        span = module.operand_span(facts.instructions[waits[-1]], 0)
        others += [Label(span, f"leaves the {_groups(limit)} closed last unfinished")] if span else []
        notes = [f"{_groups(touch.age + 1)} may have been closed since the MMA was issued"]
        helps = [f"wait with `wgmma.wait_group.sync.aligned {touch.age};`"]
    verb = "written" if touch.writes else "read"
    harm = "corrupts the result" if touch.writes else "too early" if is_input else "an arbitrary value"
    return warning(
        "touched-accumulator",
        f"`{name}` is {verb} while `wgmma.mma_async` may still use it",
        span_of_name(program, instruction, name),
        harm,
        others=others,
        notes=notes,
        helps=helps,
    )


def _groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"

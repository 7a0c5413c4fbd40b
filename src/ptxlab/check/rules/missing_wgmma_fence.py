"""A `wgmma.mma_async` uses registers that other instructions wrote or read, with no `wgmma.fence` in between.

The tensor core reads accumulators and A, and writes accumulators, past the usual order of a thread's instructions.
`wgmma.fence` orders what was done with them before; the manual requires one before the first `wgmma.mma_async` of a
kernel, and after any other access to its registers. MMAs of one shape that follow each other in the same accumulators
need none; an MMA of another shape does, and so does one that takes accumulators of an earlier one as its A.
ptxas inserts a fence where it sees that one is missing after a write (advisory C7519), which may make it serialize the
MMAs; after a read, such as the store of results before the next MMA, it inserts none.

Put one `wgmma.fence.sync.aligned` right before the first `wgmma.mma_async` of each group. A plain `mov` between a fence
and its MMAs is not reported: compilers write it for values that are in place before, and ptxas moves it back.

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
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd3, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
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
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd2, %rd3, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
    ret;
}
```
"""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab.check.wgmma import Mma, Mmas
from ptxlab.ir.effects import registers_in
from ptxlab.ir.flow import BasicBlock
from ptxlab.isa import Operation
from ptxlab.report import Diagnostic, Label, warning

from ..forward import forward
from ..program import FunctionFacts, Program

Unfenced = dict[int, int]  # registers accessed since the last fence, each with an instruction that did it
# In place of a register:
_NO_FENCE = -1  # there was no fence at all yet
_CLOSED = -2  # there was no fence since the last group was closed, so that a copy counts as well
_SUMS = -3  # less the number of a register: it holds accumulators of this MMA


class Gap(NamedTuple):
    """An MMA and a register of it that lacks a fence since instruction `access`; or there was none yet."""

    at: int
    register: int
    access: int


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        if facts.doing("wgmma", "start"):
            for gap in _gaps(facts, Mmas(facts)):
                yield _explain(program, facts, gap)


def _gaps(facts: FunctionFacts, mmas: Mmas) -> list[Gap]:
    used = {r for mma in mmas.of.values() for r in (*mma.accumulators, *mma.inputs)}
    in_flight = mmas.in_flight()
    gaps: list[Gap] = []

    def step(at: int, unfenced: Unfenced) -> None:
        mma = mmas.of.get(at)
        if mma is not None:
            missing = [r for r in (*mma.accumulators, *mma.inputs, _NO_FENCE) if r in unfenced]
            reshaped = _reshaped(mmas, mma, unfenced, in_flight.get(at, frozenset()))
            if reshaped is not None:
                gaps.append(Gap(at, reshaped, unfenced[_SUMS - reshaped]))
                unfenced.clear()
            elif missing:
                gaps.append(Gap(at, missing[0], unfenced[missing[0]]))
                unfenced.clear()  # what follows has the same cause
            unfenced |= {_SUMS - register: at for register in mma.accumulators}
        elif mmas.steps.get(at) == "fence":
            unfenced.clear()
        elif mmas.steps.get(at) == "commit":
            unfenced[_CLOSED] = at
        else:
            is_copy = facts.operation(at) is Operation.COPY
            read = () if is_copy else facts.effects.reads[at]
            written = facts.effects.writes[at] if _CLOSED in unfenced or not is_copy else ()
            unfenced |= {register: at for register in (*read, *written) if register in used}

    def after(block: BasicBlock, unfenced: Unfenced) -> Unfenced:
        unfenced = dict(unfenced)
        for at in range(block.start, block.end):
            step(at, unfenced)
        return unfenced

    entry = {_NO_FENCE: 0, _CLOSED: 0} if facts.function.kind == "entry" else {}
    starts = forward(facts.flow, entry, after, lambda a, b: a if b.keys() <= a.keys() else b | a)
    gaps.clear()
    for number, unfenced in sorted(starts.items()):
        after(facts.flow.blocks[number], unfenced)
    return gaps


def _reshaped(mmas: Mmas, mma: Mma, unfenced: Unfenced, in_flight: frozenset[int]) -> int | None:
    """A register of an MMA that has accumulators of another shape, or becomes its A, since the last fence.

    To take accumulators as A while they are in flight is another mistake, which `touched-accumulator` reports.
    """
    for register in mma.accumulators:
        before = unfenced.get(_SUMS - register)
        if before is not None and mmas.of[before].shape != mma.shape:
            return register
    waited = (register for register in mma.inputs if unfenced.get(_SUMS - register, -1) not in (-1, *in_flight))
    return next(waited, None)


def _explain(program: Program, facts: FunctionFacts, gap: Gap) -> Diagnostic:
    module = program.module
    others = []
    message = "`wgmma.mma_async` with no `wgmma.fence` before it"
    label = "the first MMA of a kernel needs a fence before it"
    if gap.register != _NO_FENCE:
        access = facts.instructions[gap.access]
        name = next(r.name for o in access.operands for r in registers_in(o) if r.index == gap.register)
        how = "written" if gap.register in facts.effects.writes[gap.access] else "read"
        message = f"`wgmma.mma_async` uses `{name}`, {how} before with no `wgmma.fence` in between"
        label = f"may not see what was written to `{name}`" if how == "written" else f"may write `{name}` too early"
        span = module.span(access)
        text = f"`{name}` is {how} here"
        if gap.access in facts.doing("wgmma", "start"):
            message = f"`wgmma.mma_async` uses `{name}` of an MMA of another kind with no `wgmma.fence` in between"
            label = f"may not see what the other MMA wrote to `{name}`"
            text = "only accumulators of MMAs of one shape need no fence"
        others = [Label(span, text)] if span else []
    return warning(
        "missing-wgmma-fence",
        message,
        module.opcode_span(facts.instructions[gap.at]),
        label,
        others=others,
        helps=["put `wgmma.fence.sync.aligned;` before the first `wgmma.mma_async` of the group"],
    )

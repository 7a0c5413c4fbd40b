"""A `wgmma.wait_group` waits for nothing, because no `wgmma.commit_group` closed a group since `wgmma.mma_async`.

`wgmma.wait_group` waits for groups, and a `wgmma.mma_async` belongs to one only when `wgmma.commit_group` has closed
it. Without that the MMA continues past the wait, and its accumulators are read too early. ptxas assembles it without
a warning. Close the group before you wait for it.

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

from ptxlab.check.wgmma import Mmas
from ptxlab.report import Diagnostic, Label, warning

from ..program import FunctionFacts, Program


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        if not facts.doing("wgmma", "start"):
            continue
        mmas = Mmas(facts)
        for number, running in mmas.running().items():
            block, running = facts.flow.blocks[number], dict(running)
            for at in range(block.start, block.end):
                if mmas.steps.get(at) == "wait" and running and not mmas.has_group(running):
                    yield _explain(program, facts, at, min(running))
                mmas.step(at, running)


def _explain(program: Program, facts: FunctionFacts, at: int, mma: int) -> Diagnostic:
    module = program.module
    span = module.opcode_span(facts.instructions[mma])
    return warning(
        "missing-wgmma-commit",
        "`wgmma.wait_group` waits for nothing: no group was closed since `wgmma.mma_async`",
        module.opcode_span(facts.instructions[at]),
        "does not cover the MMA",
        others=[Label(span, "started here, in no group yet")] if span else [],
        helps=["put `wgmma.commit_group.sync.aligned;` after the last `wgmma.mma_async` of the group"],
    )

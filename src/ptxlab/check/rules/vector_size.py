"""A vector operand has the wrong number of elements, or a scalar is where a vector belongs.

The shape of a matrix instruction or the `.v2`, `.v4`, `.x4` modifier fixes how many registers are in the braces.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 p) {
    .reg .b64 %rd<2>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [p];
    ld.global.v4.f32 {%f1, %f2}, [%rd1];
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 p) {
    .reg .b64 %rd<2>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [p];
    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, error

from ..program import Program


def check(program: Program) -> Iterator[Diagnostic]:
    for failure in program.failures["vector-size"]:
        mismatch = failure.mismatch
        assert mismatch is not None
        expected = mismatch.problem.expected
        assert expected is not None
        operand = failure.instruction.operands[failure.operand]
        given = f"{len(operand.elements)} elements" if isinstance(operand, ir.Vector) else "a scalar"
        yield error(
            "vector-size",
            f"operand {failure.operand + 1} of `{failure.instruction.opcode.text}` has {given}, "
            f"expected {expected.describe()}",
            program.module.operand_span(failure.instruction, failure.operand),
            f"expected {expected.describe()}",
            notes=[f"legal: `{mismatch.candidate.form.syntax}`"],
        )

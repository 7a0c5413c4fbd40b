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
        what = f"operand {failure.operand + 1}"
        if isinstance(operand, ir.Address):  # what is wrong is in its brackets, such as coordinates
            parts = zip(expected.inner, operand.arguments, strict=True)
            found = next((pair for pair in parts if pair[0].count and _count(pair[1]) != pair[0].count), None)
            if found is not None:
                expected, operand = found
                what = f"`{expected.name}` in {what}"
        count = _count(operand)
        given = f"{count} element{'s' * (count != 1)}" if count else "a scalar"
        yield error(
            "vector-size",
            f"{what} of `{failure.instruction.opcode.text}` has {given}, expected {expected.describe()}",
            program.module.operand_span(failure.instruction, failure.operand),
            f"expected {expected.describe()}",
            notes=[f"legal: `{mismatch.candidate.form.syntax}`"],
        )


def _count(operand: ir.Operand) -> int:
    """The elements of a vector; 0 of a scalar."""
    return len(operand.elements) if isinstance(operand, ir.Vector) else 0

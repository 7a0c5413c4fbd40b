"""A call passes a value in a shape of which hardware keeps only a part.

To ptxas a vector register is bits: it takes a `.v2 .u32` for a `.b64`, or a constant for a vector. But its code passes
element by element, so that elements are lost where caller and callee don't have the same ones. It also drops the upper
half of every `.b128` that is passed or returned. Both were seen on an H200 with ptxas 13.0. The emulator passes all
bits.

Declare both sides with the same elements, and pass 128 bits as a `.param` array or a vector of `.b32`.

Wrong:

```ptx
.version 8.0
.target sm_80
.func f(.reg .b64 i) { ret; }
.entry k() {
    .reg .v2 .u32 %pair;
    mov.u32 %pair.x, 1;
    mov.u32 %pair.y, 2;
    call f, (%pair);
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.func f(.reg .v2 .u32 i) { ret; }
.entry k() {
    .reg .v2 .u32 %pair;
    mov.u32 %pair.x, 1;
    mov.u32 %pair.y, 2;
    call f, (%pair);
    ret;
}
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.report import Diagnostic, Label, warning

from ..passing import Passed, fits, passed_by
from ..program import Program
from ..wording import described


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        for call in facts.calls:
            lost = next((one for one in passed_by(facts, call) if _loses(one)), None)
            if lost is not None:
                yield _explain(program, call, lost)


def _loses(one: Passed) -> bool:
    formal, actual = one.formal, one.actual
    if not fits(formal, actual, result=one.is_result) or isinstance(actual, ir.Sink | ir.Unresolved):
        return False  # another rule's, or nothing is passed
    if formal.type.width == 128 and not formal.dimensions:
        return True
    if isinstance(actual, ir.Immediate):
        return formal.vector > 1
    if not isinstance(actual, ir.Register):
        return False
    if formal.state_space != "reg":
        return actual.vector > 1
    return (formal.vector, formal.type.width) != (actual.vector, actual.type.width) and max(
        formal.vector, actual.vector
    ) > 1


def _explain(program: Program, call: ir.Instruction, lost: Passed) -> Diagnostic:
    formal = lost.formal
    what = "result" if lost.is_result else "parameter"
    vector = f".v{formal.vector} " if formal.vector > 1 else ""
    declared = program.module.span(formal)
    return warning(
        "lossy-call",
        f"hardware loses a part of {what} `{formal.name}` of `{lost.callee}`, a `{vector}.{formal.type.name}`",
        program.module.span(call),
        f"passes {described(lost.actual)}",
        others=[Label(declared, "declared here")] if declared else [],
        helps=[
            "pass 128 bits as a `.param` array" if formal.type.width == 128 else "declare both with the same elements"
        ],
    )

"""The address of a variable in one state space is used in another, or as a generic address.

`mov` gives the address of a variable in its own state space. A generic address, which `ld` and `st` without a state
space take, is another number for `.shared`, `.local`, `.const` and `.param`: `cvta` makes it. Only addresses in
`.global` are generic addresses as they are. ptxas assembles the wrong kernel without a warning, and the GPU stops it,
or accesses other memory.

The rule follows an address through integer arithmetic, as long as all paths bring one in the same variable.

Wrong:

```ptx
.version 8.0
.target sm_80
.address_size 64
.entry k() {
    .reg .b64 %rd<2>;
    .shared .align 4 .b8 tile[128];
    mov.u64 %rd1, tile;
    st.u32 [%rd1], 0;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.address_size 64
.entry k() {
    .reg .b64 %rd<2>;
    .shared .align 4 .b8 tile[128];
    mov.u64 %rd1, tile;
    cvta.shared.u64 %rd1, %rd1;
    st.u32 [%rd1], 0;
    ret;
}
```
"""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab import ir
from ptxlab.isa.extent import TENSOR_MAP
from ptxlab.report import Diagnostic, Label, warning

from ..accesses import family
from ..program import FunctionFacts, Program


class _Misuse(NamedTuple):
    """An operand that is the address of a variable in another space than needed, and where that is taken."""

    position: int
    variable: ir.Variable
    origin: int
    space: str | None


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.followed_functions:
        if not facts.taking_addresses:
            continue
        reported: set[int] = set()
        for at in facts.where(lambda match: bool(match.effects.accesses)):
            found = _misused(facts, at)
            if found is not None and found.origin not in reported:
                reported.add(found.origin)
                yield _explain(program, facts, at, found)


def _misused(facts: FunctionFacts, at: int) -> _Misuse | None:
    instruction, match = facts.instructions[at], facts.matches[at]
    assert match is not None
    accesses = {access.operand: access for access in match.effects.accesses}
    for position, (operand, expected) in enumerate(zip(instruction.operands, match.expected, strict=True)):
        if expected.kind != "address" or expected.name not in accesses or not isinstance(operand, ir.Address):
            continue
        # Of a tensor copy, `space` is where the tensor is; its map is given by a generic address.
        access = accesses[expected.name]
        is_map = access.is_async and match.effects.extents.get(expected.name) == TENSOR_MAP
        space = None if is_map else access.space
        value = facts.value(at, operand)
        base = value.address
        if base is None or base.holds is not None or base.space != base.variable.state_space:
            continue
        own = family(base.variable.state_space)
        origin = value.origin if own != family(space or "global") else None
        if origin is not None and (own != "param" or facts.function.kind == "entry"):  # calls pass as ptxas likes
            return _Misuse(position, base.variable, origin, space)
    return None


def _explain(program: Program, facts: FunctionFacts, at: int, found: _Misuse) -> Diagnostic:
    instruction, variable, space = facts.instructions[at], found.variable, found.space
    source = program.module.span(facts.instructions[found.origin])
    own = f"`.{variable.state_space}`"
    needed = f"an address in `.{space}`" if space else "a generic address"
    return warning(
        "unconverted-address",
        f"`{instruction.opcode.text}` takes {needed}, and is given one in {own}",
        program.module.operand_span(instruction, found.position),
        f"an address in {own}",
        others=[Label(source, f"the address of `{variable.name}`")] if source else [],
        notes=["ptxas does not see it; the GPU accesses other memory, or stops the kernel"],
        helps=[_help(variable, space)],
    )


def _help(variable: ir.Variable, space: str | None) -> str:
    own = family(variable.state_space)
    if own == "param" and space is not None:
        return f"`ld.param` loads the pointer that `{variable.name}` holds"
    if space is not None or own == "global":
        return f"use `.{own}` in the instruction"
    return f"convert it first, `cvta.{own}.u64 d, a`, or use `.{own}` in the instruction"

"""The address of a variable in one state space is used in another, or as a generic address.

`mov` gives the address of a variable in its own state space. A generic address, which `ld` and `st` without a state
space take, is another number for `.shared`, `.local`, `.const` and `.param`: `cvta` makes it. Only addresses in
`.global` are generic addresses as they are. ptxas assembles the wrong kernel without a warning, and the GPU stops it,
or accesses other memory.

The rule follows an address through copies, conversions of integers, sums and products with a sum, as long as it is
certain which instruction wrote each register.

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

from ..derivation import SAME_SPACE, leaves
from ..program import FunctionFacts, Program


class Origin(NamedTuple):
    """Instruction `at` takes the address of a variable."""

    at: int
    variable: ir.Variable


class _Origins:
    """Where the addresses of a function come from; many instructions read one that is computed once."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._known: dict[tuple[int, int], Origin | None] = {}

    def find(self, at: int, register: ir.Register) -> Origin | None:
        """Where the address comes from that instruction `at` reads in a register."""
        written = self._facts.chains.definition(at, register.index)
        if written is None:
            return None
        key = (written, register.index)
        if key not in self._known:
            self._known[key] = _origin(self._facts, at, register)
        return self._known[key]


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.followed_functions:
        if not any(_takes_address(instruction) for instruction in facts.instructions):
            continue
        reported: set[int] = set()
        origins = _Origins(facts)
        for at in facts.where(lambda match: bool(match.effects.accesses)):
            found = _misused(facts, at, origins)
            if found is not None and found[1].at not in reported:
                reported.add(found[1].at)
                yield _explain(program, facts, at, *found)


def _takes_address(instruction: ir.Instruction) -> bool:
    return any(isinstance(operand, ir.VariableReference) for operand in instruction.operands[1:])


def _misused(facts: FunctionFacts, at: int, origins: _Origins) -> tuple[int, Origin, str | None] | None:
    """The operand of an access whose address is of another state space, where it comes from, and the space it needs."""
    instruction, match = facts.instructions[at], facts.matches[at]
    assert match is not None
    accesses = {access.operand: access for access in match.effects.accesses}
    for position, (operand, expected) in enumerate(zip(instruction.operands, match.expected, strict=True)):
        if expected.kind != "address" or expected.name not in accesses:
            continue
        base = operand.base if isinstance(operand, ir.Address) else None
        origin = origins.find(at, base) if isinstance(base, ir.Register) else None
        # Of a tensor copy, `space` is where the tensor is; its map is given by a generic address.
        access = accesses[expected.name]
        is_map = access.is_async and match.effects.extents.get(expected.name) == TENSOR_MAP
        space = None if is_map else access.space
        if origin is not None and _family(space or "global") != _family(origin.variable.state_space):
            return position, origin, space
    return None


def _family(space: str) -> str:
    return space.split("::")[0]


def _origin(facts: FunctionFacts, at: int, operand: ir.Operand) -> Origin | None:
    """Where the address comes from that instruction `at` reads, if it is still one in the variable's state space."""
    found = [
        Origin(leaf.at, leaf.operand.variable)
        for leaf in leaves(facts, at, operand, SAME_SPACE)
        if isinstance(leaf.operand, ir.VariableReference)
    ]
    if len(found) != 1:
        return None
    of_kernel = facts.function.kind == "entry" or _family(found[0].variable.state_space) != "param"
    return found[0] if of_kernel else None  # a call passes parameters as ptxas likes


def _explain(
    program: Program, facts: FunctionFacts, at: int, position: int, origin: Origin, space: str | None
) -> Diagnostic:
    instruction, variable = facts.instructions[at], origin.variable
    source = program.module.span(facts.instructions[origin.at])
    own = f"`.{variable.state_space}`"
    needed = f"an address in `.{space}`" if space else "a generic address"
    return warning(
        "unconverted-address",
        f"`{instruction.opcode.text}` takes {needed}, and is given one in {own}",
        program.module.operand_span(instruction, position),
        f"an address in {own}",
        others=[Label(source, f"the address of `{variable.name}`")] if source else [],
        notes=["ptxas does not see it; the GPU accesses other memory, or stops the kernel"],
        helps=[_help(variable, space)],
    )


def _help(variable: ir.Variable, space: str | None) -> str:
    own = _family(variable.state_space)
    if own == "param" and space is not None:
        return f"`ld.param` loads the pointer that `{variable.name}` holds"
    if space is not None or own == "global":
        return f"use `.{own}` in the instruction"
    return f"convert it first, `cvta.{own}.u64 d, a`, or use `.{own}` in the instruction"

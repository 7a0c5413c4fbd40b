"""Textures and samplers are used in another way than the `.target` line says.

In the unified mode, which is the default, a texture carries its sampler with it and no `.samplerref` can be declared.
With `.target ..., texmode_independent` they are apart: each lookup names a sampler beside its texture.

Wrong:

```ptx
.version 8.0
.target sm_80
.global .texref image;
.global .samplerref smooth;
.entry k() { ret; }
```

Right:

```ptx
.version 8.0
.target sm_80, texmode_independent
.global .texref image;
.global .samplerref smooth;
.entry k() { ret; }
```
"""

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.isa import Match
from ptxlab.report import Diagnostic, Label, Span, error

from ..program import Program

SAMPLERS = frozenset("filter_mode addr_mode_0 addr_mode_1 addr_mode_2".split())  # what `txq` asks of a sampler


def check(program: Program) -> Iterator[Diagnostic]:
    if "texmode_independent" in program.module.targets:
        yield from _without_sampler(program)
        return
    module = program.module
    parameters = [p for function in module.functions if function.body is not None for p in function.parameters]
    for variable in (*module.variables, *parameters):
        if variable.type.name == "samplerref" and not variable.dimensions:  # ptxas does not mind arrays
            yield _explain(program, f"`{variable.name}` is a sampler, and samplers belong to textures in this module",
                           module.span(variable), "declared apart from a texture",
                           "say `texmode_independent` after the target")  # fmt: skip


def _without_sampler(program: Program) -> Iterator[Diagnostic]:
    for facts in program.functions:
        for at in facts.where(_is_of_texture):
            instruction, match = facts.instructions[at], facts.matches[at]
            address = instruction.operands[1]
            assert isinstance(address, ir.Address)
            assert match is not None
            if not match.expected[1].inner:  # it asks for a property
                is_wrong = match.candidate.modifiers.query in SAMPLERS and _kind(address) == "texref"
                label = "expected a sampler"
            else:
                is_wrong = len(match.expected[1].inner) == 1
                label = "a sampler belongs between the texture and its coordinates"
            if is_wrong:
                text = instruction.opcode.text
                yield _explain(program, f"`{text}` needs a sampler, which is apart from the texture in this module",
                               program.module.operand_span(instruction, 1), label,
                               "name a `.samplerref`, or say `texmode_unified` after the target")  # fmt: skip


def _is_of_texture(match: Match) -> bool:
    """Whether an instruction looks up a texture, or asks for a property of one."""
    type = match.expected[1].type if len(match.expected) > 1 else None
    return type is not None and type.name == "texref" and match.expected[1].kind == "address"


def _kind(address: ir.Address) -> str:
    base = address.base
    return base.variable.type.name if isinstance(base, ir.VariableReference) else ""


def _explain(program: Program, message: str, span: Span | None, label: str, help: str) -> Diagnostic:
    declared = program.module.span_of(program.module.header_spans.get("target"))
    others = [Label(declared, "says how textures are used")] if declared else []
    return error("wrong-texture-mode", message, span, label, others=others, helps=[help])

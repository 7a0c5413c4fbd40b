"""Rules over a program, one file a rule: what ptxas refuses, and much that it lets pass in silence.

A rule is a module: its docstring is the page that `ptxlab explain` shows, with an example that the rule finds and one
beside it that is right; its name with hyphens is its code; `check(program)` yields its findings. `RULES` lists them.
A comment can allow a warning on its line; see `allowed.py`.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from ptxlab import ir
from ptxlab.ir.collector import collector_paused
from ptxlab.report import Diagnostic

from .allowed import without_allowed
from .program import Program

# Errors first, warnings after them; the order of findings is that of the source, not of this list.
RULES = """
illegal_header
duplicate_name
inconsistent_declaration
illegal_declaration
illegal_directive
unknown_name
guard_type
illegal_branch
unknown_instruction
illegal_modifier
operand_count
operand_type
vector_size
state_space
immediate_range
unavailable_instruction
unavailable_feature
illegal_call
mixed_cta_group
parameter_write
misused_parameter
excessive_shared_memory
wrong_texture_mode
ignored_modifier
unwritten_register
misaligned_address
outside_array
ignored_setmaxnreg
unavailable_registers
unfreed_tensor_memory
swapped_pair
divergent_barrier
unreachable_code
touched_accumulator
missing_wgmma_fence
missing_wgmma_commit
unwaited_copy
""".split()


@cache
def rules() -> dict[str, ModuleType]:
    """Every rule by its code."""
    return {name.replace("_", "-"): import_module(f"{__package__}.{name}") for name in RULES}


def check(
    module: ir.Module, target: str | None = None, progress: Callable[[int], None] | None = None
) -> list[Diagnostic]:
    """Everything the rules find in a module, in the order of its source; `target` checks it for another target.

    `progress` is told now and then how many characters of the source have been looked at.
    """
    with collector_paused():
        program = Program(module, target, progress)
        found = [diagnostic for rule in rules().values() for diagnostic in rule.check(program)]
    return sorted(without_allowed(found), key=_place)


# Rules that look at one instruction at a time: they stay true in a program with holes.
INSTRUCTION_RULES = """
unknown-instruction illegal-modifier operand-count operand-type vector-size immediate-range unavailable-instruction
""".split()


def check_partly(module: ir.Module, target: str | None = None) -> list[Diagnostic]:
    """What is certainly wrong with a module of which syntax errors left only a part."""
    program = Program(module, target)
    found = [diagnostic for code in INSTRUCTION_RULES for diagnostic in rules()[code].check(program)]
    return sorted(found, key=_place)


def _place(diagnostic: Diagnostic) -> tuple[int, str]:
    return (diagnostic.labels[0].span.start if diagnostic.labels else -1), diagnostic.code

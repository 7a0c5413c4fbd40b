"""The rules, one file each; `RULES` lists them.

The docstring of a rule is the page that `ptxlab explain` shows, with an example that the rule finds and one beside it
that is right. The name of its file with hyphens is its code, `check(program)` yields its findings. What several rules
need is one folder up.
"""

from functools import cache
from importlib import import_module
from types import ModuleType

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
refused_spelling
illegal_call
stackless_call
mixed_cta_group
parameter_write
misused_parameter
excessive_shared_memory
excessive_constant_memory
wrong_texture_mode
ignored_modifier
unwritten_register
misaligned_address
outside_array
unconverted_address
ignored_setmaxnreg
unavailable_registers
unfreed_tensor_memory
lossy_call
swapped_pair
divergent_barrier
unreachable_code
touched_accumulator
missing_wgmma_fence
missing_wgmma_commit
unwaited_copy
ineffective_allow
""".split()


@cache
def rules_by_code() -> dict[str, ModuleType]:
    """Every rule by its code."""
    return {code: rule(code) for code in (name.replace("_", "-") for name in RULES)}


def rule(code: str) -> ModuleType:
    """The rule of a code."""
    return import_module(f"{__package__}.{code.replace('-', '_')}")

"""Rules over a program, one file a rule: what ptxas refuses, and much that it lets pass in silence.

`rules/` has the rules and lists them; here is what they share. `program.py` finds the form of each instruction once,
the other files follow registers, pointers, copies and threads through a function. A comment can allow a warning on its
line; see `allowed.py`.
"""

from collections.abc import Callable

from ptxlab import ir
from ptxlab.ir.collector import collector_paused
from ptxlab.ir.origin import at_origin
from ptxlab.isa.releases import RELEASES
from ptxlab.isa.targets import TARGETS
from ptxlab.report import Diagnostic

from .allowed import without_allowed
from .program import Program
from .releases import by_release
from .rules import rules_by_code


def check(
    module: ir.Module,
    target: str | None = None,
    progress: Callable[[int], None] | None = None,
    ptxas: str | None = None,
) -> list[Diagnostic]:
    """Everything the rules find in a module, in the order of its source; `target` checks it for another target.

    `progress` is called now and then with how many characters of the source have been checked. With `ptxas`, `"13.0"`
    or `"13.4"`, what is legal is what that release accepts; without, what they judge differently is a warning.
    """
    if not isinstance(module, ir.Module):
        raise TypeError(f"`check` takes what `ptxlab.parse` or `ptxlab.load` gives, not {type(module).__name__}")
    if target is not None and target not in TARGETS:
        raise ValueError(f"there is no target {target!r}")
    if ptxas is not None and ptxas not in RELEASES:
        raise ValueError(f"ptxas={ptxas!r}: the releases that are followed are {', '.join(RELEASES)}")
    with collector_paused():
        program = Program(module, target, progress, ptxas)
        found = [diagnostic for rule in rules_by_code().values() for diagnostic in rule.check(program)]
        found = by_release(program, found)
    return at_origin(module, sorted(without_allowed(found), key=_position))


# Rules that check one instruction at a time: they stay true in a program with holes.
INSTRUCTION_RULES = """
unknown-instruction illegal-modifier operand-count operand-type vector-size immediate-range unavailable-instruction
""".split()


def check_partly(module: ir.Module, target: str | None = None) -> list[Diagnostic]:
    """What is certainly wrong with a module of which syntax errors left only a part."""
    program = Program(module, target)
    found = [diagnostic for code in INSTRUCTION_RULES for diagnostic in rules_by_code()[code].check(program)]
    return at_origin(module, sorted(found, key=_position))


def _position(diagnostic: Diagnostic) -> tuple[int, str]:
    return (diagnostic.labels[0].span.start if diagnostic.labels else -1), diagnostic.code

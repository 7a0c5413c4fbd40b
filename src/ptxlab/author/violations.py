"""Why an instruction is refused: a spelling that PTX does not have, too many operands, one of the wrong type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from ptxlab.author.constants import is_number
from ptxlab.author.lines import NoSuchName, refuse
from ptxlab.author.operand import Operand, describe
from ptxlab.isa import Candidate, opcode
from ptxlab.isa.form import Form
from ptxlab.isa.nearest import missing_part, nearest_forms
from ptxlab.isa.operand import Expected
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import forms_of, heads
from ptxlab.report.nearest import nearest

Wrong = tuple[Candidate, str, int, Expected | None]


def explain_name(name: str, others: Iterable[str]) -> NoReturn:
    """There is no instruction, special register or tool of this name."""
    known = [*heads(), *(register[1:] for register in SPECIAL_REGISTERS), *others]
    meant = _OF_CUDA.get(name) or nearest(name, known)
    refuse(
        "unknown-instruction",
        f"there is no instruction `{name}`",
        "no instruction of PTX has this name",
        helps=[f"did you mean `ptx.{meant}`?"] if meant else [],
        raises=NoSuchName,
    )


def explain_word(text: str, word: str, words: Sequence[str], started: Sequence[Form]) -> NoReturn:
    """No form of the instruction has this modifier beside the others; `started` are those that have the others."""
    head = text.partition(".")[0]
    again = word in text.split(".")[1:]
    elsewhere = any(word in form.name or any(word in slot.values for slot in form.slots) for form in forms_of(head))
    following = [f"`.{one}`" for one in words]
    known = [f"after `{text}` comes {', '.join(following)}"] if len(following) <= 12 else []
    meant = None if elsewhere else nearest(word, words)
    forms = sorted(nearest_forms(f"{text}.{meant or word}"), key=lambda form: form not in started)
    refuse(
        "illegal-modifier",
        f"`{head}` takes no modifier `.{word}` {'twice' if again else f'after `{text}`' if text != head else 'here'}",
        "a modifier of other forms" if elsewhere else "not a modifier of any form",
        notes=list(dict.fromkeys([*known, *(f"legal: `{form.syntax}`" for form in forms)]))[:2],
        helps=[f"did you mean `.{meant}`?"] if meant else [],
        raises=NoSuchName,
    )


def explain_spelling(text: str) -> NoReturn:
    """The modifiers are known, but do not make a form."""
    candidates = opcode(text).candidates
    notes = [f"legal: `{form.syntax}`" for form in nearest_forms(text)[:2]]
    if candidates and candidates[0].violation:
        refuse(
            "illegal-modifier",
            f"`{text}` is not legal: {candidates[0].violation}",
            "modifiers that do not go together",
            notes=notes[:1],
        )
    missing = missing_part(nearest_forms(text)[0], text.split(".")[1:])
    if missing:
        refuse("illegal-modifier", f"`{text}` lacks a modifier: {missing}", "a modifier is missing", notes=notes)
    refuse("illegal-modifier", f"`{text}` has its modifiers in the wrong order", "wrong order", notes=notes)


def explain_mismatch(text: str, arguments: Sequence[object], wrong: Sequence[Wrong]) -> NoReturn:
    """The operands fit no form of the spelling: say what is wrong with them for the form that comes nearest."""
    # A wrong count is worse than a wrong `out=`, that than a wrong operand, an early one worse than a late one.
    candidate, problem, index, expected = min(wrong, key=lambda w: (w[1] == "count", w[1] == "results", -w[2]))
    notes = [f"legal: `{candidate.form.syntax}`"]
    if problem == "count":
        counts = sorted({n for w in wrong for n in _counts(w[0].expected)})
        wanted = " or ".join(map(str, counts))
        given = len(arguments)
        reason = ""
        if given > counts[-1] and any(e.role == "write" for e in candidate.expected):
            reason = "results are not operands here: they are returned, or named by `out=`"
        elif given > counts[-1] and any(e.count for e in candidate.expected):
            reason = "a vector is one operand: a tuple"
        refuse(
            "operand-count",
            f"`{text}` takes {wanted} operand{'s' if wanted != '1' else ''}, {given} given",
            reason,
            notes=notes,
        )
    if problem == "results" or expected is None:
        refuse("operand-count", f"`{text}` has fewer results than `out=` names", notes=notes)
    if index < 0 or problem == "pair":
        if problem == "pair":
            refuse("operand-type", f"`{text}` has no second result", notes=notes)
        refuse("operand-type", f"`{text}` writes {expected.describe()}, and `out=` is something else", notes=notes)
    argument = arguments[index]
    reason = _REASONS.get("not-address" if problem.startswith("address") else problem, "")
    if is_number(argument) and expected.type is not None and "immediate" not in expected.describe():
        reason = f"PTX has no constant here: `{expected.type.name}({argument!r:.40})` is a register that holds it"
    if isinstance(argument, Operand) and argument.is_pointer:
        reason = (
            "the pointer points elsewhere"
            if expected.kind == "address"
            else reason or "`x[i]` is what it points to, `x.address` the address"
        )
    if expected.inner and expected.kind == "address":
        if isinstance(argument, (tuple, list)):
            _explain_part(text, expected, argument[1:], notes)
        reason = "an address of several parts is one operand: a tuple"
    refuse(
        "operand-type",
        f"`{expected.name}` of `{text}` is {describe(argument)}, expected {expected.describe()}",
        reason or f"expected {expected.describe()}",
        notes=notes,
    )


def _explain_part(text: str, address: Expected, parts: Sequence[object], notes: list[str]) -> None:
    """What follows the base of an address has the wrong number of elements, as coordinates of another dimension."""
    for part, given in zip(address.inner, parts, strict=False):
        count = len(given) if isinstance(given, (tuple, list)) else 0
        if part.count and part.count != count:
            has = f"{count} element{'s' * (count != 1)}" if count else "one value"
            problem = f"`{part.name}` of `{text}` has {has}, expected {part.describe()}"
            refuse("operand-type", problem, f"`{part.name}` is a tuple of {part.count}", notes=notes)


def _counts(expected: tuple[Expected, ...]) -> range:
    given = [e for e in expected if e.role != "write" and e.kind != "sink"]
    return range(sum(not e.optional for e in given), len(given) + 1)


# What CUDA C++ calls it, by what PTX does.
_OF_CUDA = {
    "threadIdx": "tid",
    "blockIdx": "ctaid",
    "blockDim": "ntid",
    "gridDim": "nctaid",
    "syncthreads": "bar.sync(0)",
    "syncwarp": "bar.warp.sync",
    "threadfence": "fence",
    "atomicAdd": "atom",
    "exp": "ex2.approx",
    "log": "lg2.approx",
}

_REASONS = {
    "special-register": "a special register can only be read by `mov`",
    "register-only": "a constant is not allowed here: put it into a register first",
    "not-address": "an address belongs here: a pointer such as `x + i`, not the value `x[i]`",
    "not-immediate": "this must be a Python number",
    "negated": "this predicate cannot be negated",
    "pair": "this form has no second result",
    "symbol": "an array is not allowed here; `.address` is its address in a register",
}

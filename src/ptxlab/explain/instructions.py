"""The forms of an instruction as text: how each is spelled, what its modifiers can be, and since when it is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from ptxlab.report.nearest import nearest

if TYPE_CHECKING:
    from ptxlab.isa.form import Form, Slot
    from ptxlab.isa.targets import Since, Target

INDENT = "    "  # of the line with the syntax of a form; what it says of the form is indented further


def find_forms(spelling: str) -> list[Form]:
    """The forms that an opcode can be; it may leave out modifiers, have them in any order, and operands after it."""
    from ptxlab.isa import opcode
    from ptxlab.isa.table import forms_of

    spelling = spelling.partition(" ")[0].rstrip(";")
    head, *rest = spelling.split(".")
    if complete := [candidate.form for candidate in opcode(spelling).candidates]:
        return complete
    return [form for form in forms_of(head) if all(part in _words(form) for part in rest)]


def explain_forms(forms: Iterable[Form]) -> Iterator[str]:
    """What the forms do, how each is spelled, and since when it is there."""
    for number, (text, group) in enumerate(groupby(forms, key=lambda form: form.text)):
        if number:
            yield ""
        yield text
        for form in group:
            yield ""
            yield f"{INDENT}{form.syntax};"
            for slot in form.slots:
                if not slot.flag:
                    yield from _explain_slot(slot)
            yield f"        since {spell_since(form.since)}"


def form_as_dict(form: Form) -> dict[str, object]:
    """A form for programs: its syntax, what it does, the values of its modifiers, and since when each is there."""
    modifiers = {
        slot.name: {value: spell_since(since) for value, since in slot.values.items()}
        for slot in form.slots
        if not slot.flag
    }
    return {"syntax": f"{form.syntax};", "text": form.text, "modifiers": modifiers, "since": spell_since(form.since)}


def what_is_unknown(subject: str, others: Iterable[str]) -> str:
    """What to say after "there is no `subject`": the modifier that no form has, or what was probably meant."""
    from ptxlab.isa.table import forms_of, heads

    head = subject.partition(".")[0]
    known = heads()
    if head in known:
        there = {word for form in forms_of(head) for word in _words(form)}
        unknown = [part for part in subject.split(".")[1:] if part not in there]
        missing = " or ".join(f"`.{part}`" for part in unknown) or "all of these modifiers"
        near = [match for part in unknown if (match := nearest(part, there))]
        meant = f"; did you mean {' and '.join(f'`.{part}`' for part in near)}?" if near else ""
        return f": no form of `{head}` has {missing}{meant}"
    close = nearest(subject.lower(), [*others, *known]) or nearest(head.lower(), known)
    return f"; did you mean `{close}`?" if close else ""


def _words(form: Form) -> set[str]:
    """Every modifier that a form can have."""
    return {*form.name, *(value for slot in form.slots for value in slot.values)}


def _explain_slot(slot: Slot) -> Iterator[str]:
    """The values of a slot; those that came later than the form are on lines of their own."""
    from ptxlab.isa.targets import ALWAYS

    by_since: dict[Since, list[str]] = {}
    for value, since in slot.values.items():
        by_since.setdefault(since, []).append(f".{value}")
    left = f"        .{slot.name} = "
    for since in sorted(by_since, key=lambda since: since != ALWAYS):
        later = "" if since == ALWAYS else f" (since {spell_since(since)})"
        yield f"{left}{', '.join(by_since[since])}{later}"
        left = " " * len(left)


def spell_since(since: Since) -> str:
    """Availability as text: `PTX 8.0 on sm_90 or later`, `PTX 8.0 on sm_90a`, `PTX 8.8 on the family of sm_100f`."""
    by_version = groupby(since.alternatives, key=lambda alternative: alternative[0])
    return "; ".join(
        f"PTX {major}.{minor} on {', '.join(_spell_target(target) for _, target in group)}"
        for (major, minor), group in by_version
    )


def _spell_target(target: Target) -> str:
    """What a target covers: itself, its family, or itself and all later ones."""
    return {"a": f"{target}", "f": f"the family of {target}"}.get(target.suffix, f"{target} or later")

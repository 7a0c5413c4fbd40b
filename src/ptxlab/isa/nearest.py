"""The forms of an instruction that come nearest to a spelling."""

from collections.abc import Sequence

from .form import Form
from .table import forms_of


def nearest_forms(text: str) -> list[Form]:
    """The forms of the instruction that starts a spelling, those that share most with its modifiers first."""
    written = text.split(".")

    def distance(form: Form) -> tuple[int, int, int]:
        known = {value for slot in form.slots for value in slot.values} | set(form.name)
        missing = sum(not slot.optional and not set(slot.values) & set(written) for slot in form.slots)
        shared = sum(a == b for a, b in zip(form.name, written, strict=False))
        return _edits(form, written), sum(part not in known for part in written) + missing, -shared

    return sorted(forms_of(written[0]), key=distance)


def _edits(form: Form, written: Sequence[str]) -> int:
    """How many words are missing in a spelling or too many, read in the order of the form."""
    parts = [((name,), False) for name in form.name] + [(slot.values, slot.optional) for slot in form.slots]
    known = {value for values, _ in parts for value in values}
    rest = [word for word in written if word in known]
    missing = len(written) - len(rest)
    for values, optional in parts:
        if rest and rest[0] in values:
            rest.pop(0)
        elif not optional:
            missing += 1
    return missing + len(rest)


def missing_part(form: Form, modifiers: Sequence[str]) -> str | None:
    """The first part of the form that is required and not there."""
    rest = list(modifiers)
    for name in form.name[1:]:
        if name not in rest:
            return f"`.{name}`"
        rest.remove(name)
    for slot in form.slots:
        found = next((word for word in rest if word in slot.values), None)
        if found is not None:
            rest.remove(found)
        elif not slot.optional:
            values = list(slot.values)
            some = ", ".join(f"`.{value}`" for value in values[:8])
            return f"one of {some}{' ...' if len(values) > 8 else ''}" if len(values) > 1 else f"`.{values[0]}`"
    return None

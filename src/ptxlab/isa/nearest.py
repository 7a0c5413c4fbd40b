"""The forms of an instruction that come nearest to a spelling."""

from collections.abc import Sequence

from .form import Form
from .table import forms_of

_MISSING, _WRONG = 2, 3  # a word is more easily left out than written wrong, or where none belongs


def nearest_forms(text: str) -> list[Form]:
    """The forms of the instruction that starts a spelling, those that share most with its modifiers first."""
    written = text.split(".")

    def distance(form: Form) -> tuple[int, int, int]:
        known = {value for slot in form.slots for value in slot.values} | set(form.name)
        missing = sum(not slot.optional and not set(slot.values) & set(written) for slot in form.slots)
        shared = sum(a == b for a, b in zip(form.name, written, strict=False))
        return _edits(form, written), -shared, sum(part not in known for part in written) + missing

    return sorted(forms_of(written[0]), key=distance)


def _edits(form: Form, written: Sequence[str]) -> int:
    """How far a spelling is from a form: words that are missing in it, too many or wrong, in the form's order."""
    parts = [((name,), False) for name in form.name] + [(slot.values, slot.optional) for slot in form.slots]
    after = [_WRONG * left for left in range(len(written), -1, -1)]  # from each word on, when no part is left
    for values, optional in reversed(parts):
        skipped = 0 if optional else _MISSING
        edits = [after[-1] + skipped]
        for at in range(len(written) - 1, -1, -1):
            other = 0 if written[at] in values else _WRONG
            edits.append(min(edits[-1] + _WRONG, after[at] + skipped, after[at + 1] + other))
        after = edits[::-1]
    return after[0]


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

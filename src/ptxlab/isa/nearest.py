"""What was probably meant: the nearest word, and the forms of an instruction that come nearest to a spelling."""

from collections.abc import Iterable
from difflib import get_close_matches

from .form import Form
from .table import forms_of


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant."""
    found = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return found[0] if found else None


def nearest_forms(text: str) -> list[Form]:
    """The forms of the instruction that begins a spelling, those that share most with its modifiers first."""
    written = text.split(".")

    def distance(form: Form) -> tuple[int, int]:
        known = {value for slot in form.slots for value in slot.values} | set(form.name)
        missing = sum(not slot.optional and not set(slot.values) & set(written) for slot in form.slots)
        begun = sum(a == b for a, b in zip(form.name, written, strict=False))
        return sum(part not in known for part in written) + missing, -begun

    return sorted(forms_of(written[0]), key=distance)

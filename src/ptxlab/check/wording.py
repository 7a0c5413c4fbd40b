"""Words that the messages of several rules share: the legal forms nearest to what was written, and near misses."""

from collections.abc import Iterable
from difflib import get_close_matches

from ptxlab.isa import Opcode
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms_of


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word that was probably meant."""
    found = get_close_matches(word, list(words), n=1, cutoff=0.6)
    return found[0] if found else None


def nearest_forms(opcode: Opcode, most: int = 3) -> list[Form]:
    """The forms of the instruction that share most with its modifiers."""
    written = opcode.text.split(".")

    def distance(form: Form) -> tuple[int, int]:
        known = {value for slot in form.slots for value in slot.values} | set(form.name)
        missing = sum(not slot.optional and not set(slot.values) & set(written) for slot in form.slots)
        begun = sum(a == b for a, b in zip(form.name, written, strict=False))
        return sum(part not in known for part in written) + missing, -begun

    return sorted(forms_of(opcode.mnemonic), key=distance)[:most]

"""What makes a misspelled opcode legal: another word in place of one of its modifiers, or a word that is missing."""

from .form import Form
from .opcode import Opcode
from .table import forms_of


def fitting(text: str, index: int) -> list[str]:
    """The words that make an opcode legal in place of its modifier `index`.

    >>> fitting("bar.snyc", 0)
    ['sync', 'arrive']
    """
    head, *modifiers = text.split(".")
    words = dict.fromkeys(word for form in forms_of(head) for word in _words(form))
    return [word for word in words if _is_legal([head, *modifiers[:index], word, *modifiers[index + 1 :]])]


def completed(text: str) -> str | None:
    """The opcode with the one word that all its forms have and it lacks; None if there are several such spellings.

    >>> completed("ldmatrix.sync.m8n8.x1.shared.b16")
    'ldmatrix.sync.aligned.m8n8.x1.shared.b16'
    """
    parts = text.split(".")
    slots = [slot for form in forms_of(parts[0]) for slot in form.slots if not slot.optional]
    missing = {word for slot in slots if len(slot.values) == 1 for word in slot.values} - set(parts)
    spellings = ([*parts[:at], name, *parts[at:]] for name in sorted(missing) for at in range(1, len(parts) + 1))
    found = {".".join(spelling) for spelling in spellings if _is_legal(spelling)}
    return found.pop() if len(found) == 1 else None


def additions(text: str) -> dict[str, str]:
    """The words that make an opcode legal where one of them is put in, each with the opcode that it makes.

    >>> additions("mul.u32")
    {'lo': 'mul.lo.u32', 'hi': 'mul.hi.u32', 'wide': 'mul.wide.u32'}
    """
    parts = text.split(".")
    words = dict.fromkeys(word for form in forms_of(parts[0]) for word in _words(form) if word not in parts)
    found: dict[str, str] = {}
    for word in words:
        spellings = ([*parts[:at], word, *parts[at:]] for at in range(1, len(parts) + 1))
        legal = next(filter(_is_legal, spellings), None)
        if legal is not None:
            found[word] = ".".join(legal)
    return found


def _words(form: Form) -> list[str]:
    return [*form.name[1:], *(value for slot in form.slots for value in slot.values)]


def _is_legal(parts: list[str]) -> bool:
    candidates = Opcode(".".join(parts)).candidates
    return bool(candidates) and candidates[0].violation is None and candidates[0].in_order

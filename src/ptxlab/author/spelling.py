"""Instructions as they are spelled: `ptx.fma.rn.f32(a, b, c)`.

Each word is looked up in the table as soon as it is written, so that a wrong one is refused on its line; `dir()` of
a spelling lists the words that may come next. Words that Python does not allow are indexed, `ptx.ld["global"]`, or get
a final underscore, `ptx.ld.global_`; `::` may be written `__`, and a word that starts with a digit gets a leading `_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from keyword import iskeyword
from typing import Any

from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.violations import explain_word
from ptxlab.isa.form import Form
from ptxlab.isa.table import forms_of

# An instruction to call, as `ptx.ld.global_.f32` is: for functions that are given one.
Instruction = Callable[..., Any]


class Spelling:
    """The start of an opcode, or all of it; call it with the operands that the instruction reads."""

    def __init__(self, text: str, forms: tuple[Form, ...]) -> None:
        self._text = text
        self._forms = forms
        self._next: dict[str, Spelling] = {}

    def __getattr__(self, name: str) -> Spelling:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._word(word_of(name))
        self.__dict__[name] = found
        return found

    def __getitem__(self, words: str) -> Spelling:
        spelling = self
        for word in words.removeprefix(".").split("."):
            spelling = spelling._word(word)
        return spelling

    def _word(self, word: str) -> Spelling:
        found = self._next.get(word)
        if found is None:
            parts = [*self._text.split("."), word]
            forms = tuple(form for form in self._forms if _can_begin(form, parts))
            if not forms:
                explain_word(self._text, word, following(self._text, self._forms), self._forms)
            found = self._next[word] = Spelling(".".join(parts), forms)
        return found

    def __call__(self, *operands: Any, out: Any = None, when: Any = None, pair: bool = False, **other: object) -> Any:
        """Write the instruction and return its result: a value, a tuple of values, or None.

        `out` names the registers to write instead of fresh ones; `when` is the predicate that guards the instruction;
        `pair=True` asks for the second result of a form that may leave it out.
        """
        for name in other:
            helps = ["`out=` names registers to write, `when=` a predicate, `pair=True` asks for a second result"]
            refuse("unknown-argument", f"`{self._text}` takes no `{name}=`", helps=helps)
        return emit(self._text, operands, out=out, when=when, pair=pair)

    def __dir__(self) -> list[str]:
        return [name_of(word) for word in following(self._text, self._forms)]

    def __repr__(self) -> str:
        lines = [f"{form.syntax}: {form.text.partition(chr(10))[0]}" for form in self._forms[:8]]
        return f"ptx.{self._text}\n  " + "\n  ".join(lines)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return repr(self)


def word_of(name: str) -> str:
    """The word of PTX of a Python name."""
    word = name.removesuffix("_") if iskeyword(name.removesuffix("_")) else name
    word = word.replace("__", "::")
    return word[1:] if word[:1] == "_" and word[1:2].isdigit() else word


def name_of(word: str) -> str:
    """The Python name of a word of PTX."""
    name = word.replace("::", "__").replace(":", "_")
    if name[:1].isdigit():
        return f"_{name}"
    return f"{name}_" if iskeyword(name) else name


def _can_begin(form: Form, parts: list[str]) -> bool:
    """Whether the words can belong to the form: its name in order, then values of its slots, in any order."""
    length = len(form.name)
    words = parts[length:]
    if tuple(parts[:length]) != form.name[: len(parts)] or len(words) > len(form.slots):
        return False
    return all(any(word in slot.values for slot in form.slots) for word in words)


def following(text: str, forms: tuple[Form, ...]) -> list[str]:
    """The words that may come next when modifiers are in the order of the manual."""
    parts = text.split(".")
    found: dict[str, None] = {}
    for form in forms:
        found.update(dict.fromkeys(_following(form, parts)))
    return list(found)


def _following(form: Form, parts: list[str]) -> Iterator[str]:
    length = len(form.name)
    if len(parts) < length:
        yield form.name[len(parts)]
        return
    at = 0
    for part in parts[length:]:
        while at < len(form.slots) and part not in form.slots[at].values:
            at += 1
        at += 1
    for slot in form.slots[at:]:
        yield from slot.values
        if not slot.optional:
            return


_heads: dict[str, Spelling] = {}


def spelling(head: str) -> Spelling:
    """The spelling that starts with this word; asked only of words that instructions start with."""
    found = _heads.get(head)
    if found is None:
        found = _heads[head] = Spelling(head, forms_of(head))
    return found

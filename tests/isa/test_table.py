"""The table checks itself: every form is found again by its own spellings and operands, and by no other form's."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ptxlab.isa import Match, opcode
from ptxlab.isa.form import DECLARED, Form
from ptxlab.isa.table import CHAPTERS, forms, forms_of, heads
from ptxlab.isa.targets import TARGETS, target_named
from ptxlab.isa.types import TYPES
from tests.golden import compare

from .mutants import shape_of, split_operands
from .sample import instructions, sample_choices

# PTX 1.0 wrote coordinates with one or with four elements, which later became other spellings of `.1d` and `.3d`.
PADDED = ("tex{.uni}.geom.v4.dtype.ctype d, [a, c]", "tex.1d{.uni}.v4.dtype.ctype d, [a, c]")


def _identity(form: Form) -> str:
    return f"{form.chapter}: {form.syntax}"


@pytest.mark.bulk(one_in=5)
@pytest.mark.parametrize("form", forms(), ids=_identity)
def test_spellings_lead_back_to_their_form(form: Form) -> None:
    for choice in sample_choices(form, 24):
        spelled = form.spell(choice)
        for line in instructions(form, choice):
            shapes = tuple(shape_of(operand) for operand in split_operands(line.rstrip(";").partition(" ")[2]))
            if form.name[0] == "call":
                continue  # its operands are read by hand
            found = opcode(spelled).match(shapes)
            assert isinstance(found, Match), line
            if found.form.syntax in PADDED:
                continue
            assert found.form is form, f"{line} is also `{found.form.syntax}`"
            assert found.candidate.in_order
            assert found.candidate.chosen == {name: value for name, value in choice.items() if value is not None}


def test_every_form_is_explained() -> None:
    firsts = {form.syntax: form.text.split("\n")[0] for form in forms()}
    assert [syntax for syntax, first in firsts.items() if not (first.endswith(".") and first[0].isupper())] == []


# Names that the manual, too, has in several chapters: for integers, floats and halves, or for kinds of matrices.
SEVERAL = "add sub mul mad.lo mad.hi div abs neg min max fma ex2 tanh mma tcgen05.mma".split()


def test_an_instruction_is_declared_in_one_place() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for form in forms():
        homes[".".join(form.name)].add(form.chapter)
    assert sorted(name for name, chapters in homes.items() if len(chapters) > 1) == sorted(SEVERAL)


def test_semantics_name_their_operands() -> None:
    # What a form does not have, another form of the same function does.
    known: dict[Any, set[str]] = defaultdict(set)
    for form in forms():
        if form.semantics is not None:
            code = form.semantics.__code__
            names = set(code.co_varnames[2 : code.co_argcount])
            addresses = {part for operand in form.operands for part in operand.inner}
            values = {part for operand in form.operands for part in (operand.name, operand.second) if part}
            read = values - (form.writes - form.updates) | addresses
            assert read - {"cache_policy"} <= names, form.syntax
            known[form.semantics] |= read
    for semantics, read in known.items():
        code = semantics.__code__
        assert set(code.co_varnames[2 : code.co_argcount]) <= read, semantics


def test_chapters_list_the_first_words_of_their_opcodes() -> None:
    """A chapter is imported only where one of its words is met: one that is not listed would not be found."""
    forms()
    listed = {(chapter, head) for chapter, words in CHAPTERS.items() for head in words.split()}
    assert {*DECLARED} == listed


def test_the_table_is_what_it_was() -> None:
    """Every slot, value and type of each form, and since when there is it."""
    found: dict[str, object] = {head: [*map(_shown, forms_of(head))] for head in heads()}
    targets = {name: (since, target_named(name).shared_memory) for name, since in TARGETS.items()}
    types = {name: (type.kind, type.width, type.lanes) for name, type in TYPES.items()}
    compare(Path(__file__).with_name("table.txt"), found | {"all targets": targets, "all types": types})


def _shown(form: Form) -> list[object]:
    slots = [(one.name, one.optional, one.flag, *sorted(map(str, one.values.items()))) for one in form.slots]
    types = [(name, one if isinstance(one, str) else "a function") for name, one in form.types.items()]
    return [form.syntax, *slots, *sorted(types), form.since]

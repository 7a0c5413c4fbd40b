"""Every form of the table is callable: its operands as Python values, its line as PTX reads it."""

from typing import Any

import pytest

from ptxlab import ir
from ptxlab.author import ptx
from ptxlab.author.pointers import Pointer
from ptxlab.author.registers import class_of
from ptxlab.author.trace import Trace, TracedModule, writing
from ptxlab.author.values import b8, b32, u64
from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Match, opcode
from ptxlab.isa.form import Form
from ptxlab.isa.operand import Expected
from ptxlab.isa.selectors import SELECTORS
from ptxlab.isa.table import CHAPTERS, forms
from ptxlab.isa.targets import TARGETS, VERSIONS, target_named
from ptxlab.syntax import parse

NEWEST_FIRST = sorted(TARGETS, key=lambda name: (name[-1] not in "af", -target_named(name).number))
IRREGULAR = ("call", "brx")  # what they name are statements, not values


def argument(expected: Expected, trace: Trace) -> Any:
    """A Python value that the operand takes."""
    if expected.kind == "address":
        base = _base(expected, trace)
        return (base, *(argument(inner, trace) for inner in expected.inner)) if expected.inner else base
    if expected.kind == "immediate":
        return 0 if expected.allowed is None else _least(expected)
    if expected.kind == "label":
        return "here"
    assert expected.type is not None
    if expected.kind == "opaque":
        return Pointer(b8, expected.type.name, symbol=f"some_{expected.type.name}")
    cls = class_of(expected.type)
    if expected.count:
        return tuple(cls.fresh(trace) for _ in range(expected.count))
    if expected.allowed is not None and expected.type.kind != "f":
        return _least(expected)
    if expected.select:
        return ptx.part(cls.fresh(trace), min(SELECTORS[expected.select]))
    return cls.fresh(trace)


def _least(expected: Expected) -> int:
    """A number that is allowed: zero if it is."""
    assert expected.allowed is not None
    return next((value for value in range(256) if value in expected.allowed), expected.allowed[0])


def _base(expected: Expected, trace: Trace) -> Any:
    if expected.type is not None and expected.type.kind == "o":
        return Pointer(b8, expected.type.name, symbol=f"some_{expected.type.name}")
    narrow = expected.type is not None and expected.type.width == 32
    return (b32 if narrow else u64).fresh(trace)


def target_for(form: Form, chosen: dict[str, str | None]) -> tuple[str, tuple[int, int]] | None:
    needs = [since for _, since in form.requirements(chosen)]
    for name in NEWEST_FIRST:
        for version in reversed(VERSIONS):
            if version >= TARGETS[name] and all(since.holds(version, target_named(name)) for since in needs):
                return name, version
    return None


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_forms_of(chapter: str) -> None:
    for form in forms():
        if form.chapter != chapter or form.name[0] in IRREGULAR:
            continue
        chosen = next(form.spellings())
        text = form.spell(chosen)
        found = target_for(form, chosen)
        if found is None:
            continue  # available nowhere that still exists
        program = TracedModule(*found, lines=False)
        trace = Trace(program, "k", "entry")
        candidate = next(c for c in opcode(text).candidates if c.form is form)
        if any(expected.typed for expected in candidate.expected):
            continue  # the registers of a kernel in Python are of bits
        with writing(trace):
            reads = [e for e in candidate.expected if e.role != "write" and e.kind != "sink"]
            ptx[text](*(argument(expected, trace) for expected in reads))
        body = "\n".join(trace.body())
        opaque = "".join(f".global .{type} some_{type};\n" for type in ("texref", "samplerref", "surfref"))
        module = parse(f".version 8.0\n.target sm_80\n{opaque}.entry k {{\nhere:\n{body}\n}}\n")
        (instruction,) = module["k"].instructions()
        match = instruction.opcode.match(tuple(shape_of(operand) for operand in instruction.operands))
        assert isinstance(match, Match), f"{form.syntax}: {body}"
        assert not any(isinstance(operand, ir.Unresolved) for operand in instruction.operands), body

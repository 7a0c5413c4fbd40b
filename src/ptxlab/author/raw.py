"""Raw PTX: registers and variables by their names, blocks, lines of text, parts of registers.

What `ptxlab python` writes uses these; a kernel written by hand seldom needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptxlab.author.lines import refuse
from ptxlab.author.operand import Text
from ptxlab.author.pointers import Pointer
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar, b8
from ptxlab.isa.operand import SPACES

_DECLARED = re.compile(r"\.(\w+(?:::\w+)?)\b(?:.*?)\s([\w$%]+)\s*(?:\[[^=]*\])?\s*(?:=.*)?;\s*$", re.DOTALL)
_OPAQUE = re.compile(r"\.(texref|surfref|samplerref)\b")


def registers(prefix: str, cls: type[Scalar], count: int) -> list[Any]:
    """Declare `.reg .type prefix<count>` here and return the registers, by number."""
    trace = current("`ptx.registers`")
    trace.names.add(prefix)
    trace.lines.append(f"    .reg .{cls.type.name} {prefix}<{count}>;")
    return [cls.named(f"{prefix}{number}", trace) for number in range(count)]


def register(name: str, cls: type[Scalar], *, declare: bool = True) -> Scalar:
    """Declare `.reg .type name` here, unless the head of the function does, and return the register."""
    trace = current("`ptx.register`")
    trace.names.update((name, name.rstrip("0123456789")))
    if declare:
        trace.lines.append(f"    .reg .{cls.type.name} {name};")
    return cls.named(name, trace)


def declare(text: str) -> Pointer:
    """Declare a variable as PTX writes it; what is returned is its address: `ptx.declare(".shared .b32 tile[64];")`."""
    current("`ptx.declare`").lines.append(f"    {text}")
    return symbol_of(text)


def symbol_of(text: str) -> Pointer:
    """The variable that a declaration declares."""
    words = text.replace(".extern", "").replace(".visible", "").replace(".weak", "").replace(".common", "").strip()
    found = _DECLARED.match(words)
    opaque = _OPAQUE.search(words)
    if found is None or found[1] not in SPACES:
        refuse("illegal-declaration", f"{text!r:.60} declares no variable", helps=["`.shared .align 16 .b8 tile[64];`"])
    return symbol(found[2], opaque[1] if opaque else found[1])


def symbol(name: str, space: str) -> Pointer:
    """The address of a variable or parameter by its name and state space; `symbol(...) + 4` is 4 bytes after it."""
    return Pointer(b8, space, symbol=name)


def at(base: object, offset: int) -> Text:
    """`[base+offset]` of a register or variable, in whichever state space the instruction says."""
    if isinstance(base, Pointer) and base.symbol is not None:
        return Text(f"[{base.symbol}+{base.offset + offset}]", ("[", base.base_shape))
    if not isinstance(base, Scalar):
        refuse("not-an-operand", f"{base!r:.40} is not a register or a variable")
    return Text(f"[{base.read(current())}+{offset}]", ("[", base.type.name))


@contextmanager
def block() -> Iterator[None]:
    """A scope of PTX, in braces."""
    trace = current("`ptx.block`")
    trace.lines.append("    {")
    trace.placed.append(set())
    yield
    trace.placed.pop()
    trace.lines.append("    }")


def text(line: str) -> None:
    """Write a line of PTX as it is; what is wrong with it is reported when the module is read back."""
    current("`ptx.text`").write(line)


def literal(text: str) -> Text:
    """A constant by its bits, as PTX writes it: `ptx.literal("0f7FFFFFFF")`."""
    return Text(text, "#f32" if text[:2].lower() == "0f" else "#float" if text[:2].lower() == "0d" else "#int")


def part(register: Scalar, selector: str) -> Text:
    """Some bytes or halves of a register, as video instructions take them: `ptx.part(x, "b0")` is `%r1.b0`."""
    if not isinstance(register, Scalar):
        refuse("not-an-operand", f"{register!r:.40} is not a register")
    return Text(f"{register.read(current())}.{selector}", (".", register.type.name, selector))

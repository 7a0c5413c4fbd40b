"""PTX as it stands: registers by their names, blocks, lines of text, parts of registers.

What `ptxlab python` writes uses these; a kernel written by hand seldom needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptxlab.author.emit import Text
from ptxlab.author.lines import refuse
from ptxlab.author.trace import current
from ptxlab.author.values import Value


def registers(prefix: str, cls: type[Value], count: int) -> list[Any]:
    """Declare `.reg .type prefix<count>` and return the registers, by number."""
    trace = current("`ptx.registers`")
    trace.names.add(prefix)
    trace.declared.append(f"    .reg .{cls.type.name} {prefix}<{count}>;")
    return [cls.named(f"{prefix}{number}", trace) for number in range(count)]


@contextmanager
def block() -> Iterator[None]:
    """A scope of PTX, in braces."""
    trace = current("`ptx.block`")
    trace.lines.append("    {")
    yield
    trace.lines.append("    }")


def text(line: str) -> None:
    """Write a line of PTX as it is; what is wrong with it is told when the module is read back."""
    current("`ptx.text`").write(line)


def part(register: Value, selector: str) -> Text:
    """Some bytes or halves of a register, as video instructions take them: `ptx.part(x, "b0")` is `%r1.b0`."""
    if not isinstance(register, Value):
        refuse("not-an-operand", f"{register!r:.40} is no register")
    return Text(f"{register.read(current())}.{selector}", (".", register.type.name, selector))

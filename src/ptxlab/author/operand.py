"""What Python has for an operand of PTX: a base class, and what is common to all arguments of instructions.

The kind of an argument is what matters of it when a form is looked for: the name of a register's type, `#int`,
`#float`, `_` for None, or a tuple: `("*", space, shape)` a pointer, `("(", ...)` a tuple, `("!", "pred")` a negated
predicate, `("%", shape)` a special register, `("@",)` a label, `("=", shape)` an operand given as text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ptxlab.author.trace import Trace
from ptxlab.isa.operand import Expected, Shape

Kind = Any


class Operand:
    """A register, a negated predicate, a pointer, or text: an object that knows how PTX writes it."""

    is_pointer: ClassVar[bool] = False

    @property
    def operand_kind(self) -> Kind:
        """What matters of it when a form is looked for."""
        raise NotImplementedError

    def print_operand(self, trace: Trace, expected: Expected) -> str:
        """What PTX has instead, where a form expects `expected`."""
        raise NotImplementedError

    def described(self) -> str:
        """What it is, in a message."""
        return f"the Python {type(self).__name__} {self!r:.40}"


@dataclass(frozen=True, slots=True)
class Text(Operand):
    """An operand that is given as PTX writes it, with its shape: what Python has no value for."""

    text: str
    shape: Shape

    @property
    def operand_kind(self) -> Kind:
        """An operand of a given shape."""
        return ("=", self.shape)

    def print_operand(self, trace: Trace, expected: Expected) -> str:
        """The text as it was given."""
        return self.text


def describe(argument: object) -> str:
    """An argument in a message."""
    if isinstance(argument, Operand):
        return argument.described()
    if isinstance(argument, (tuple, list)):
        types = [part.operand_kind for part in argument if isinstance(part, Operand)]
        kinds = ", ".join(dict.fromkeys(f"`{name}`" for name in types if isinstance(name, str)))
        return f"a tuple of {len(argument)}{f' ({kinds})' if kinds else ''}"
    return "None" if argument is None else f"the Python {type(argument).__name__} {argument!r:.40}"

"""What an instruction computes, in one word, for analyses that follow values through a program.

The word holds for all operands that are read, in the order of the syntax line, whatever their type. The modifiers say
the rest: rounding, `.sat`, `.relu`. An integer result is cut to the type of the result. An instruction that computes
something else, such as the high half of a product, has no word.

>>> from ptxlab.isa import opcode
>>> opcode("mad.wide.u32").candidates[0].effects.computes
<Operation.PRODUCT_SUM: 'product-sum'>
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


class Operation(StrEnum):
    """A word of `@computes`."""

    COPY = "copy"  # registers or vectors of them; a vector on one side packs or unpacks the other
    ADDRESS = "address"  # the same memory, as an address in another state space or of another block
    CONVERSION = "conversion"  # of one number, or of each that a register holds
    PACKING = "packing"  # of two numbers, converted, into one register: the first above the second
    PERMUTATION = "permutation"  # of bytes
    SHUFFLE = "shuffle"  # the value of another lane
    SELECTION = "selection"  # of one of two values
    COMPARISON = "comparison"
    SUM = "sum"
    DIFFERENCE = "difference"
    PRODUCT = "product"
    PRODUCT_SUM = "product-sum"  # a * b + c
    SHORT_PRODUCT = "short-product"  # of the low 24 bits
    SHORT_PRODUCT_SUM = "short-product-sum"
    QUOTIENT = "quotient"
    REMAINDER = "remainder"
    NEGATION = "negation"
    MAGNITUDE = "magnitude"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    FUNCTION = "function"  # an elementary function of one number: a root, a logarithm, a sine
    AND = "and"
    OR = "or"
    XOR = "xor"
    NOT = "not"
    LEFT_SHIFT = "left-shift"
    RIGHT_SHIFT = "right-shift"
    MMA = "mma"  # a * b + c, of matrices that the lanes of a warp hold together; with `e`, half of `a` is stored
    OPAQUE_MMA = "opaque-mma"  # the same, of fragments whose layout PTX leaves open


def computes(word: str) -> Callable[[F], F]:
    """Say, below the forms of an instruction, what its semantic function computes: `@computes("sum")`."""
    operation = Operation(word)

    def note(function: F) -> F:
        function.computes = operation  # type: ignore[attr-defined]
        return function

    return note

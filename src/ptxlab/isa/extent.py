"""How many bytes an address of an instruction is of, and at a multiple of how many bytes it must be.

The recorder knows most extents: as many bytes as are loaded or stored there, aligned to their size. The decorator
`@addresses` says the others, by the name of the operand: `"128/64"` is 128 bytes at a multiple of 64, `"16"` is 16 at a
multiple of 16. In place of a number may be `data`, the bytes of the values that are moved, or the name of another
operand, whose value it is; where that is not a constant, the extent is at least as long as the alignment.

>>> from ptxlab.isa import opcode
>>> opcode("ld.global.v2.f32").candidates[0].effects.extents
{'a': Extent(bytes=8, align=8)}
>>> opcode("cp.async.bulk.prefetch.L2.global").candidates[0].effects.extents
{'a': Extent(bytes='size', align=16)}
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from .async_operation import MBARRIER_BYTES
from .form import Form, Modifiers, Specification
from .operand import Expected
from .recorder import Access

F = TypeVar("F", bound=Callable[..., object])


class Extent(NamedTuple):
    """The bytes at an address, and their alignment; a name is that of the operand whose value it is."""

    bytes: int | str
    align: int | str


TENSOR_MAP = Extent(128, 64)
# What an address is to its instruction, by the name of the operand.
_NAMED = {"mbar": Extent(MBARRIER_BYTES, MBARRIER_BYTES), "map": TENSOR_MAP}


def addresses(**by_operand: Specification) -> Callable[[F], F]:
    """Say, below the forms of an instruction, how many bytes its addresses are of: `@addresses(a="128/64")`."""

    def note(function: F) -> F:
        function.extents = by_operand  # type: ignore[attr-defined]
        return function

    return note


def extents_of(form: Form, m: Modifiers, operands: Sequence[Expected], accesses: Sequence[Access]) -> dict[str, Extent]:
    """The extents of the addresses of a form, as far as they are known."""
    found: dict[str, Extent] = {}
    for expected in operands:
        if expected.kind != "address":
            continue
        said = form.extents.get(expected.name)
        recorded = {access.bytes for access in accesses if access.operand == expected.name}
        if said is not None:
            found[expected.name] = _read(said if isinstance(said, str) else said(m), operands)
        elif expected.name in _NAMED:
            found[expected.name] = _NAMED[expected.name]
        elif len(recorded) == 1 and (bytes := recorded.pop()):
            found[expected.name] = Extent(bytes, bytes)
    return found


def _read(text: str, operands: Sequence[Expected]) -> Extent:
    bytes, _, align = text.partition("/")
    return Extent(_amount(bytes, operands), _amount(align or bytes, operands))


def _amount(word: str, operands: Sequence[Expected]) -> int | str:
    if word != "data":
        return int(word) if word.isdigit() else word
    moved = next(one for name in ("b", "d") for one in operands if one.name == name)
    assert moved.type is not None
    return moved.type.width * max(moved.count, 1) // 8

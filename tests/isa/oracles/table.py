"""The table of oracles, and arithmetic that several of them need."""

from collections.abc import Callable
from typing import Any

from ptxlab.isa.types import Type

from ..cases import Bits, Case, number_of

Oracle = Callable[[Case], Any]
ORACLES: dict[tuple[str, str], Oracle] = {}


def oracle(chapter: str, names: str) -> Callable[[Oracle], Oracle]:
    def enter(function: Oracle) -> Oracle:
        for name in names.split():
            ORACLES[chapter, name] = function
        return function

    return enter


def expected_results(case: Case) -> tuple[Bits, ...]:
    """The bits of the results, without the carry."""
    found = ORACLES[case.form.chapter, ".".join(case.form.name)](case)
    return found if isinstance(found, tuple) else (found,)


def wrap(width: int, number: int) -> int:
    return number % 2**width


def limits(type: str) -> tuple[int, int]:
    width = int(type[1:])
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if type[0] == "s" else (0, 2**width - 1)


def clamp(type: str, number: int) -> int:
    low, high = limits(type)
    return sorted((low, number, high))[1]


def lanes(type: Type, bits: int) -> list[int]:
    return [number_of(type, bits >> type.bits * lane & (2**type.bits - 1)) for lane in range(type.lanes)]


# Extended precision: the expected carry is the second result.

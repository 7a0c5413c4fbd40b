"""Which elements of a matrix are in a register of a lane, and in some of its bytes."""

import pytest

from ptxlab.isa.units.layouts import multiplicand
from ptxlab.trace.lanes import elements_in


@pytest.mark.parametrize(
    ("type", "lane", "register", "part", "columns"),
    [
        ("s8", 5, 0, None, [4, 5, 6, 7]),
        ("s8", 5, 0, (0, 1), [4]),
        ("s8", 5, 0, (1, 1), [5]),
        ("s8", 5, 0, (2, 2), [6, 7]),
        ("s8", 5, 2, (1, 2), [21, 22]),
        ("f16", 5, 0, (0, 2), [2]),
        ("f16", 5, 2, (2, 2), [11]),
        ("tf32", 5, 2, (0, 4), [5]),
    ],
)
def test_elements_of_bytes(
    type: str, lane: int, register: int, part: tuple[int, int] | None, columns: list[int]
) -> None:
    """Lane 5 has row 1 in even registers."""
    layout = multiplicand(16, {"s8": 32, "f16": 16, "tf32": 8}[type], type)
    assert elements_in(layout, lane, register, part) == [(0, 1, column) for column in columns]

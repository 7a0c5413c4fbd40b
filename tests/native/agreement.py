"""A native function as machine code and as Python: both must give the same."""

from __future__ import annotations

from typing import Any

from ptxlab.native.engine import compiled


def agree(function: Any, *cases: tuple[Any, ...]) -> None:
    machine = compiled(function)
    for case in cases:
        mine, other = ([list(part) if isinstance(part, list) else part for part in case] for _ in range(2))
        assert machine(*mine) == function(*other), case
        assert mine == other, case

"""Why something was not shown, in words, and what would help. No proof depends on it."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.flow.expressions import Linear
from ptxlab.flow.steps import PREDICATE
from ptxlab.prove.execution.segments import RESULT, Access
from ptxlab.prove.terms.terms import Symbol, leaves

from .objects import Object


def why(status: str, values: Sequence[Linear], object: Object | None) -> tuple[str, str]:
    """Why something is not shown, and what would help."""
    symbols = _symbols(values)
    if symbols:
        is_index = any(one.startswith(RESULT) for one in _symbols([one for one in values if one.type != PREDICATE]))
        help = "compare the result itself with a limit: what is computed of it may wrap around" if is_index else ""
        return f"it depends on {symbols[0]}", help
    if status == "unknown":
        return "the solver did not decide it in its time", "raise `--timeout`, or say more with `--assume`"
    if object is not None and object.bytes is None:
        return "", f"say what `len({object.name})` is with `--assume`, or how the grid follows from the sizes"
    return "", ""


def unknown_address(access: Access) -> tuple[str, str]:
    """Why the array of an access is not known."""
    symbols = _symbols([access.address])
    if symbols:
        return f"its address depends on {symbols[0]}", ""
    return "its address is not a distance from one array or variable", ""


def _symbols(values: Sequence[Linear]) -> list[str]:
    return sorted({str(atom.detail) for atom in leaves(values) if isinstance(atom.detail, Symbol)})

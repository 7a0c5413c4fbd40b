"""Whether a function returns memory of its own stack, which is gone then: an `array`, or a structure that it made.

A variable counts as such memory if any of its assignments in the function makes it so. What a pointer in memory leads
to, and what another function returns, is not known here.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import operations
from .records import record_type
from .types import ArrayType, PointerType, StructType

if TYPE_CHECKING:
    from .inference import Inference


def find_own_memory(
    e: Inference, assigned: Sequence[tuple[str, ast.expr]], returned: Sequence[ast.expr]
) -> ast.expr | None:
    """The first of the values `returned` that is on the function's own stack."""
    own = set[str]()
    count = -1
    while count < len(own):
        count = len(own)
        own.update(name for name, value in assigned if _is_own(e, value, own))
    return next((value for value in returned if _is_own(e, value, own)), None)


def _is_own(e: Inference, node: ast.expr, own: set[str]) -> bool:
    """Whether a value is an address on the function's stack, if the variables `own` are."""
    if isinstance(node, ast.Name):
        return node.id in own
    if isinstance(node, ast.IfExp):
        return _is_own(e, node.body, own) or _is_own(e, node.orelse, own)
    if isinstance(node, ast.Call):
        return _is_own_call(e, node, own)
    if isinstance(node, ast.Attribute):
        return _is_own(e, node.value, own) and isinstance(e.field(node)[1], StructType | ArrayType)
    if isinstance(node, ast.Subscript):
        return _is_own(e, node.value, own) and isinstance(e.infer(node), StructType)
    if isinstance(node, ast.BinOp):
        return isinstance(e.infer(node), PointerType) and _is_own(e, node.left, own)
    return False


def _is_own_call(e: Inference, node: ast.Call, own: set[str]) -> bool:
    function = e.resolve(node.func)
    if function is operations.array or record_type(function) is not None:
        return True
    if function is operations.cast:
        return isinstance(e.infer(node), PointerType | StructType) and _is_own(e, node.args[1], own)
    if function is operations.address_of:
        place = node.args[0]
        return isinstance(place, ast.Attribute | ast.Subscript) and _is_own(e, place.value, own)
    return False

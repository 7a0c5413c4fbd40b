"""What a call means in a native function: a conversion, another native function, or an operation of the language."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING, Any

from . import builtin_memory, builtin_numbers, operations
from .builtin import Builtin
from .functions import Signature, passed
from .functions import signature as signature_of
from .inference import BOOLEAN, Inference, Inferred
from .records import check_record, make_record, record_type
from .types import PointerType, StructType, Type

if TYPE_CHECKING:
    from .expressions import Expressions


def infer_call(e: Inference, node: ast.Call) -> Inferred:
    """The type of a call's result; None where it has none."""
    function = e.resolve(node.func)
    if isinstance(function, Type):
        if len(node.args) != 1:
            raise e.error(node, f"`{function}(…)` converts one value")
        return function
    if (record := record_type(function)) is not None:
        return check_record(e, node, record)
    operation = _OPERATIONS.get(function) if callable(function) else None
    if operation is not None:
        _check_count(e, node, function)
        return operation.infer(e, node)
    return _signature(e, node, function).result


def raw_call(e: Expressions, node: ast.Call) -> str:
    """The text of a call's result; empty where it has none."""
    function = e.resolve(node.func)
    if isinstance(function, Type):
        return _conversion(e, node.args[0], function)
    if (record := record_type(function)) is not None:
        return make_record(e, node, record)
    operation = _OPERATIONS.get(function)
    if operation is not None:
        return operation.raw(e, node)
    signature = _signature(e, node, function)
    e.callees[signature.function] = None
    arguments = []
    for argument, (_, type) in zip(node.args, signature.parameters, strict=True):
        arguments.append(f"{passed(type, signature.external)} {e.value(argument, type)}")
    return e.call(signature.result, f'@"{signature.symbol}"', arguments, signature.external)


def _check_count(e: Inference, node: ast.Call, function: object) -> None:
    """Refuse an operation with too few or too many arguments."""
    code = getattr(function, "__code__", None)
    expected = code.co_argcount if code is not None else 2 if function in (builtins.min, builtins.max) else 1
    more = function is operations.call and len(node.args) > expected
    if node.keywords or (len(node.args) != expected and not more):
        raise e.error(node, f"`{ast.unparse(node.func)}` takes {expected} arguments, all by position")


def _signature(e: Inference, node: ast.Call, function: object) -> Signature:
    found = getattr(function, "__native__", None)
    if not isinstance(found, Signature):
        raise e.error(node, f"`{ast.unparse(node.func)}` is not native: put `@native` above it")
    if node.keywords or len(node.args) != len(found.parameters):
        names = ", ".join(name for name, _ in found.parameters)
        raise e.error(
            node, f"`{ast.unparse(node.func)}` takes {len(found.parameters)} arguments, all by position: ({names})"
        )
    if not found.is_generic:
        return found
    types = [e.infer(argument) for argument in node.args]
    try:
        instance = found.instance([type if isinstance(type, Type) else None for type in types])
    except TypeError as error:
        raise e.error(node, f"`{ast.unparse(node.func)}`: {error}") from None
    return signature_of(instance)


def _conversion(e: Expressions, argument: ast.expr, to: Type) -> str:
    if isinstance(to, PointerType | StructType):
        raise e.error(argument, f"`cast({to}, …)` makes a pointer")
    if to is BOOLEAN:
        return e.condition(argument)
    return e.cast(argument, to)


_OPERATIONS: dict[Any, Builtin] = builtin_numbers.OPERATIONS | builtin_memory.OPERATIONS

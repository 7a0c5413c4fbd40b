"""How an operation of the language is translated: the type of its result, and its LLVM IR."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .inference import Inference, Inferred
from .types import Float, Type, type_of

if TYPE_CHECKING:
    from .expressions import Expressions


class Builtin:
    """The two parts of an operation: `infer` gives the type of its result, `raw` its value."""

    __slots__ = ("infer", "raw")

    def __init__(
        self, infer: Callable[[Inference, ast.Call], Inferred], raw: Callable[[Expressions, ast.Call], str]
    ) -> None:
        self.infer = infer
        self.raw = raw


def type_argument(e: Inference, node: ast.Call, index: int = 0) -> Type | None:
    try:
        return type_of(e.resolve(node.args[index]), e.names)
    except TypeError:
        name = ast.unparse(node.func)
        raise e.error(node, f"`{name}` begins with a type: `{name}(u32, …)`") from None


def fixed(type: Any) -> Callable[[Inference, ast.Call], Inferred]:
    return lambda e, node: type


def of_argument(index: int) -> Callable[[Inference, ast.Call], Inferred]:
    return lambda e, node: e.type_of(node.args[index])


def intrinsic(name: str, type: Type, *arguments: str) -> str:
    suffix = f"f{type.bits}" if isinstance(type, Float) else type.llvm
    return f"call {type.llvm} @llvm.{name}.{suffix}({', '.join(arguments)})"

"""What checked code does besides: before every access it asks `bounds` whether that may be, and says who asks.

Unchecked, nothing is added.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from . import bounds
from .functions import signature
from .inference import MISSING, pointee
from .modes import CHECKED
from .types import ArrayType, StructType, Type

if TYPE_CHECKING:
    from .expressions import Expressions


_UNCHECKED = (bounds.__name__, "ptxlab.native.crashes")  # what checks, and what reads what the system gives it


class Guard:
    """The checks of one function; `sites` are the texts by which they name themselves."""

    def __init__(self, e: Expressions) -> None:
        self.e = e
        self.is_on = CHECKED and e.signature.function.__module__ not in _UNCHECKED
        self.sites: dict[str, str] = {}
        self.flags: list[str] = []
        self._allocated: list[tuple[str, int]] = []

    def access(self, action: str, node: ast.expr, pointer: str, type: Type) -> None:
        """Before a load, a store or an atomic operation; `node` is the expression of the address."""
        if not isinstance(type, StructType | ArrayType):
            self.bytes(f"{action} of {type.size} bytes", node, pointer, str(type.size))

    def pointed(self, action: str, node: ast.expr, pointer: str) -> None:
        """Before an access to what the pointer `node` points to."""
        type = pointee(self.e.infer(node))
        assert type is not None
        self.access(action, node, pointer, type)

    def bytes(self, action: str, node: ast.expr, pointer: str, size: str) -> None:
        """Before an access to several bytes."""
        if self.is_on:
            self._call(bounds.check, f"ptr {pointer}", f"i64 {size}", f"ptr {self._site(action, node)}")

    def index(self, node: ast.Subscript, index: str) -> None:
        """Before an element of an array inside a structure, or of a table, is used: their lengths are known."""
        if not self.is_on:
            return
        length = self._length(node.value)
        if length is not None:
            self._call(bounds.check_index, f"i64 {index}", f"i64 {length}", f"ptr {self._site('index', node)}")

    def _length(self, node: ast.expr) -> int | None:
        value = self.e.resolve(node)
        if isinstance(value, tuple):
            return len(value)
        if value is MISSING and isinstance(node, ast.Attribute):
            type = self.e.field(node)[1]
            return type.length if isinstance(type, ArrayType) else None
        return None

    def table(self, name: str, size: int) -> None:
        """Before a constant table is used."""
        if self.is_on:
            flag = f"{name}.{self.e.signature.symbol}"
            if flag not in self.flags:
                self.flags.append(flag)
            self._call(bounds.share_table, f'ptr @"{name}"', f"i64 {size}", f'ptr @"{flag}"')

    def allocate(self, pointer: str, size: int) -> None:
        """After memory is allocated on the stack."""
        if self.is_on:
            self._allocated.append((pointer, size))
            self._call(bounds.share, f"ptr {pointer}", f"i64 {size}")

    def leave(self) -> None:
        """Before the function returns: its stack is gone then."""
        for pointer, size in self._allocated:
            self._call(bounds.unshare, f"ptr {pointer}", f"i64 {size}")

    def _site(self, action: str, node: ast.expr) -> str:
        e = self.e
        function = e.signature.function
        text = f"{action}, `{ast.unparse(node)}` in `{function.__qualname__}`, {e.file}:{getattr(node, 'lineno', 0)}"
        name = f"{e.signature.symbol}.site.{len(self.sites)}"
        self.sites[name] = text
        return f'@"{name}"'

    def _call(self, function: object, *arguments: str) -> None:
        self.e.callees[function] = None
        self.e.builder.emit(f'call void @"{signature(function).symbol}"({", ".join(arguments)})')

    def globals(self) -> str:
        """The data that the checks need."""
        lines = []
        for name, text in self.sites.items():
            data = text.encode() + b"\0"
            written = "".join(_character(byte) for byte in data)
            lines.append(f'@"{name}" = private unnamed_addr constant [{len(data)} x i8] c"{written}"\n')
        lines += [f'@"{name}" = internal global i8 0\n' for name in self.flags]
        return "".join(lines)


def _character(byte: int) -> str:
    """A byte as it is written in a constant of LLVM IR."""
    return chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"

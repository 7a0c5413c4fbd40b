"""Native functions to LLVM IR.

What may be written: assignments (a variable keeps the type that it starts with: annotated, or that of its first value),
`if`, `while`, `for i in range(…)`, `break`, `continue`, `return`, calls; arithmetic, comparisons, `and`, `or`, `not`,
`x if c else y`; `p[i]`, `p.field`, `p + n` on pointers; the operations of `operations`; numbers and tuples of integers
of the module (constant tables), other native functions. `assert` is for plain Python and costs nothing here.

Arithmetic is done in the type of its operands, which is the same for both; a literal takes it from the other. Anything
else is said by a conversion. `//` and `%` round down and shifts by too much give 0 (or the sign), as in Python; a
division by zero is undefined. A float that does not fit an integer becomes the nearest one that does. The whole
language is in docs/native.md.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .debug import DebugInfo
from .functions import Signature, passed, signature
from .inference import U32, TranslationError
from .modes import DEBUG
from .statements import Statements
from .types import Integer

__all__ = [
    "TranslatedFunction",
    "TranslationError",
    "callees",
    "declaration_text",
    "emit",
    "reachable",
    "text_of",
    "unit_of",
]


class TranslatedFunction:
    """A translated function: its text, and what that needs besides itself."""

    __slots__ = ("_body", "_head", "callees", "globals", "signature", "tables")

    def __init__(
        self,
        signature: Signature,
        head: str,
        body: str,
        callees: Iterable[object],
        tables: dict[str, tuple[int, ...]],
        globals: str = "",
    ) -> None:
        self.globals = globals
        self.signature = signature
        self.callees = tuple(callees)
        self.tables = tables
        self._head = head
        self._body = body

    def text(self, linkage: str) -> str:
        return f"define {'' if linkage == 'external' else linkage} {self._head} {{\n{self._body}\n}}\n"

    def returning(self, value: bool) -> TranslatedFunction:
        """A function that returns a constant, and does nothing."""
        return TranslatedFunction(self.signature, self._head, f"  ret i1 {int(value)}", (), {})


_UNITS: dict[Any, TranslatedFunction] = {}


def unit_of(function: object) -> TranslatedFunction:
    """A native function, translated once."""
    found = _UNITS.get(function)
    if found is None:
        statements = Statements(function, _definition(function))
        head, body = statements.translate()
        found = TranslatedFunction(
            signature(function), head, body, statements.callees, statements.tables, statements.guard.globals()
        )
        _UNITS[function] = found
    return found


def text_of(function: object, linkage: str = "internal") -> str:
    """The definition of one native function, without those that it calls and without its tables."""
    return unit_of(function).text(linkage)


def callees(function: object) -> tuple[Any, ...]:
    """The native and external functions that a native function calls itself."""
    return () if signature(function).external else unit_of(function).callees


def reachable(functions: Iterable[object], beyond: Collection[object] = ()) -> list[Any]:
    """These native functions and all that they call, each once; without those of the C library, and those `beyond`."""
    found: dict[Any, None] = {}
    pending = list(functions)
    while pending:
        function = pending.pop()
        if function not in found and function not in beyond and not signature(function).external:
            found[function] = None
            pending.extend(callees(function))
    return list(found)


def declaration_text(function: object) -> str:
    """The line that declares a function whose machine code is elsewhere."""
    found = signature(function)
    parameters = ", ".join(passed(type, found.external) for _, type in found.parameters)
    result = passed(found.result, found.external)
    attribute = result.removeprefix(found.result.llvm if found.result else "void").strip()
    return f'declare {attribute} {found.result.llvm if found.result else "void"} @"{found.symbol}"({parameters})\n'


def emit(
    functions: Sequence[object],
    *,
    linkage: str = "external",
    elsewhere: Iterable[object] = (),
    known: Mapping[Any, bool] = MappingProxyType({}),
) -> str:
    """The text of `functions` under `linkage`, with all that they call, each once; those `elsewhere` are declared.

    `known` are functions without effects whose results are known: what depends on them is not compiled.
    """
    wanted = set(functions)
    declared = set(elsewhere)
    pending = list(functions)
    seen: set[Any] = set(pending)
    tables: dict[str, tuple[int, ...]] = {}
    parts: list[str] = []
    debug = DebugInfo() if DEBUG else None
    while pending:
        function = pending.pop()
        if signature(function).external or function in declared:
            parts.append(declaration_text(function))
            continue
        unit = unit_of(function) if function not in known else unit_of(function).returning(known[function])
        text = unit.text(linkage if function in wanted else "internal")
        parts += [text if debug is None else debug.located(unit.signature, text), unit.globals]
        tables.update(unit.tables)
        for callee in unit.callees:
            if callee not in seen:
                seen.add(callee)
                pending.append(callee)
    parts += [_table_text(name, values) for name, values in tables.items()]
    if debug is not None:
        parts.append(debug.text())
    return "\n".join(parts)


def _table_text(name: str, values: tuple[int, ...]) -> str:
    type: Integer = getattr(values, "type", U32)
    entries = ", ".join(f"{type.llvm} {value}" for value in values)
    return f'@"{name}" = private unnamed_addr constant [{len(values)} x {type.llvm}] [{entries}], align {type.size}\n'


_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")  # fields with statements inside a statement
_SOURCES: dict[str, dict[int, ast.FunctionDef]] = {}


def _definition(function: Any) -> ast.FunctionDef:
    """The function's own text, taken apart; a file is read once."""
    code = function.__code__
    found = _SOURCES.get(code.co_filename)
    if found is None:
        lines = linecache.getlines(code.co_filename, function.__globals__)
        found = _SOURCES[code.co_filename] = {}
        pending: list[ast.AST] = [*ast.parse("".join(lines)).body]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.FunctionDef):
                found[min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])] = node
            for field in _BLOCKS:
                pending += getattr(node, field, ())
    if code.co_firstlineno not in found:
        raise TranslationError(
            f"{code.co_filename}:{code.co_firstlineno}: the text of `{function.__qualname__}` is not there"
        )
    return found[code.co_firstlineno]

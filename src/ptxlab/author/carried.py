"""Names that get another register in a loop on the GPU, though its next round reads the old one.

`i = i + 1` makes a fresh register, once, when the loop is written; each round then adds to the same old `i`. What is
meant is `i += 1` or `i.set(...)`. The text of a loop shows which names are read in it before they are assigned; their
registers before and after the loop is written show whether they stayed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any

from ptxlab.author.lines import definition_of, refuse_line, user_frame
from ptxlab.author.pointers import Pointer
from ptxlab.author.values import Scalar


@contextmanager
def keeping_registers() -> Iterator[None]:
    """The body of a loop is written here; refuse a name that it reads from a register and then binds to another."""
    frame = user_frame()
    names = _carried(frame.f_code).get(frame.f_lineno, {})
    before = {name: _registers(frame.f_locals.get(name)) for name in names}
    yield
    for name, line in names.items():
        after = _registers(frame.f_locals.get(name))
        if before[name] is not None and after is not None and before[name] != after:
            refuse_line(
                "lost-value",
                f"`{name}` gets another register here, and the next round of the loop reads the old one",
                frame.f_code.co_filename,
                line,
                "written to a fresh register",
                helps=[f"write into the register: `{name}.set(...)`, or `{name} += ...`"],
            )


def _registers(value: object) -> Any:
    """The registers of a Python value; None where there are none."""
    if isinstance(value, Scalar):
        return value.name
    if isinstance(value, Pointer):
        return _registers(value.register), value.symbol, value.offset
    if isinstance(value, (tuple, list)):
        found = [_registers(part) for part in value]
        return None if None in found or not found else found
    return None


@lru_cache(maxsize=256)
def _carried(code: CodeType) -> dict[int, dict[str, int]]:
    """For each loop, by its line: the names that it reads first and assigns later, and the line of that."""
    definition = definition_of(code)
    found: dict[int, dict[str, int]] = {}
    for node in ast.walk(definition or ast.Pass()):
        if isinstance(node, (ast.With, ast.For)):
            read: set[str] = set()
            assigned: dict[str, int] = {}
            for name, line in _uses(node.body):
                if line is None:
                    read.update({name} - assigned.keys())
                else:
                    assigned.setdefault(name, line)
            found[node.lineno] = {name: line for name, line in assigned.items() if name in read}
    return found


def _uses(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int | None]]:
    """Names in the order of evaluation, with the line where they are assigned, or None where they are read."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from _uses([node.value, *node.targets])
        elif isinstance(node, ast.AugAssign):  # writes into the register
            yield from _uses([node.value])
            if isinstance(node.target, ast.Name):
                yield node.target.id, None
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            own = {name for part in node.generators for name, line in _uses([part.target]) if line is not None}
            yield from ((name, line) for name, line in _uses(ast.iter_child_nodes(node)) if name not in own)
        elif isinstance(node, ast.Name):
            yield node.id, node.lineno if isinstance(node.ctx, ast.Store) else None
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _uses(ast.iter_child_nodes(node))

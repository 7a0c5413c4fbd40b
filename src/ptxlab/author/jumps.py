"""Python jumps out of a block that runs on the GPU, and Python that counts the rounds of such a loop.

`return` in a `with ptx.when(p):` ends the writing of the kernel, in all threads: what is below would silently be
missing. So it is refused, and `break` and `continue` with it. `for number, i in enumerate(ptx.range(n))` writes its
body once, with the number 0.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import CodeType

from ptxlab.author.lines import definition_of, refuse_line

_BLOCKS = frozenset(("when", "otherwise", "loop"))
_SAY = {
    "return": "`ptx.ret()` ends the threads that get there; a value is made before the block, written by `x.set(...)`",
    "break": "`ptx.leave_when(condition)` leaves a loop on the GPU",
    "continue": "put the rest of the loop into a `with ptx.when(...):`",
}


@lru_cache(maxsize=1024)
def refuse_jumps(code: CodeType) -> None:
    """Refuse a function that jumps out of a block of the GPU; one whose source is not known passes."""
    definition = definition_of(code)
    if definition is not None:
        _look(definition.body, None, None, lambda word, line: _refuse(word, code.co_filename, line))


def _refuse(word: str, file: str, line: int) -> None:
    if word not in _SAY:
        refuse_line(
            "counted-by-python",
            f"`{word}` sees one round of a loop of the GPU, since its body is written once",
            file,
            line,
            "",
            helps=["`for i in ptx.range(n):` counts on the GPU; `x += 1` counts something else"],
        )
    refuse_line(
        "early-jump",
        f"`{word}` in a block of the GPU stops the writing of the kernel, not the threads",
        file,
        line,
        "what is below is never written",
        helps=[_SAY[word]],
    )


def _look(
    body: Iterable[ast.stmt], block: ast.stmt | None, in_loop: ast.stmt | None, refuse: Callable[[str, int], None]
) -> None:
    """Look through statements; `block` is the block of the GPU around them, `in_loop` the one since Python's loop."""
    for statement in body:
        if isinstance(statement, ast.Return) and block is not None:
            refuse("return", statement.lineno)
        elif isinstance(statement, (ast.Break, ast.Continue)) and in_loop is not None:
            refuse("break" if isinstance(statement, ast.Break) else "continue", statement.lineno)
        elif isinstance(statement, ast.With) and _is_block(statement):
            _look(statement.body, statement, statement, refuse)
        elif isinstance(statement, (ast.For, ast.While)):
            if isinstance(statement, ast.For) and (word := _counting(statement.iter)):
                refuse(word, statement.lineno)
            _look(statement.body, block, None, refuse)
            _look(statement.orelse, block, in_loop, refuse)
        elif not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                _look(getattr(statement, name, ()), block, in_loop, refuse)


def _counting(iterated: ast.expr) -> str | None:
    """`enumerate` of `enumerate(ptx.range(n))`."""
    if not isinstance(iterated, ast.Call) or not isinstance(iterated.func, ast.Name):
        return None
    calls = [given.func for given in iterated.args if isinstance(given, ast.Call)]
    return iterated.func.id if any(ast.unparse(called) == "ptx.range" for called in calls) else None


def _is_block(statement: ast.With) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr in _BLOCKS
        for item in statement.items
    )

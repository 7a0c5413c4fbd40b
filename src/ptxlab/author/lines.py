"""The user's Python: which line an instruction was written on, and findings shown there first.

`here()` is the line outside of this package that is running now. A kernel's PTX says with `.loc` which line each
instruction comes from; `ptxlab.ir.origin` reads that back and puts the Python line before a diagnostic about the PTX.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import NoReturn

from ptxlab.ir.inlining import MOST_CALLS
from ptxlab.ir.origin import line_span
from ptxlab.report import PtxError, Source, Span, error

# Modules whose functions are not the user's code.
_INNER = (__name__.rpartition(".")[0], "ptxlab.ir.launchable", "contextlib", "functools")
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # of a function, that run as if they were called
Running = tuple[tuple[CodeType, int], ...]  # functions that call one another, the innermost first, and their lines


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A location in the user's Python, down to the instruction of the interpreter."""

    code: CodeType
    line: int
    instruction: int

    @property
    def file(self) -> str:
        """The Python file."""
        return self.code.co_filename

    @property
    def span(self) -> Span | None:
        """The expression there, or its whole line; None where the file cannot be read."""
        source = _source(self.file)
        if source is None or not 1 <= self.line <= source.line_count:
            return None
        line, end_line, column, end_column = _positions(self.code)[self.instruction // 2]
        if line is None or column is None or end_column is None or end_line != line:
            return line_span(source, self.line)
        return Span(source, _offset(source, line, column), _offset(source, line, end_column))


def here() -> SourcePosition:
    """The innermost location outside of this package."""
    frame = user_frame()
    return SourcePosition(frame.f_code, frame.f_lineno, frame.f_lasti)


def user_frame() -> FrameType:
    """The innermost function outside of this package that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inner(frame):
        frame = frame.f_back
    return frame


def _is_inner(frame: FrameType) -> bool:
    return bool(frame.f_globals.get("__name__", "").startswith(_INNER))


def running_in(outermost: CodeType | None) -> Running:
    """The functions outside of this package that are running, up to one; the innermost alone if that is not near."""
    frame = user_frame()
    found = [(frame.f_code, frame.f_lineno)]
    while frame.f_code is not outermost:
        if outermost is None or frame.f_back is None or len(found) > MOST_CALLS:
            return (found[0],)
        frame = frame.f_back
        if found[-1][0].co_name in _PARTS and found[-1][0] in frame.f_code.co_consts:
            found[-1] = frame.f_code, found[-1][1]
        elif not _is_inner(frame):
            found.append((frame.f_code, frame.f_lineno))
    return tuple(found)


def raised_at(problem: BaseException) -> SourcePosition | None:
    """The innermost location that an exception came through, outside of ptxlab and of what comes with Python."""
    position, own = None, __name__.partition(".")[0]
    for step in _steps(problem.__traceback__):
        root = step.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if root != own and root not in sys.stdlib_module_names:
            position = SourcePosition(step.tb_frame.f_code, step.tb_lineno, step.tb_lasti)
    return position


def _steps(step: TracebackType | None) -> Iterator[TracebackType]:
    while step is not None:
        yield step
        step = step.tb_next


class NoSuchName(PtxError, AttributeError):  # noqa: N818 - named for what is wrong
    """`ptx.no_such_instruction`: an `AttributeError` too, as tools of Python expect of a name that is not there."""

    def __str__(self) -> str:
        return PtxError.__str__(self)


def refuse(
    code: str,
    message: str,
    label: str = "",
    *,
    notes: Sequence[str] = (),
    helps: Sequence[str] = (),
    position: SourcePosition | None = None,
    raises: type[PtxError] = PtxError,
) -> NoReturn:
    """Raise an error that shows the user's line."""
    position = position or here()
    span = position.span
    if span is None:
        notes = (*notes, f"at {position.file}:{position.line}")
    raise raises([error(code, message, span, label, notes=notes, helps=helps)])


def refuse_line(code: str, message: str, file: str, line: int, label: str, helps: Sequence[str] = ()) -> NoReturn:
    """Raise an error that shows a line of a Python file."""
    source = _source(file)
    span = line_span(source, line) if source is not None and line <= source.line_count else None
    raise PtxError([error(code, message, span, label, helps=helps)])


def refuse_parameter(
    code: str, message: str, function: Callable[..., object], name: str, helps: Sequence[str] = ()
) -> NoReturn:
    """Raise an error that shows the line of a parameter, or of the function itself."""
    raise PtxError([error(code, message, head_span(function.__code__, name), helps=helps)])


@lru_cache(maxsize=256)
def definition_of(code: CodeType) -> ast.FunctionDef | None:
    """The definition of a function; None where its source is not known."""
    source = _source(code.co_filename)
    return _definitions(source.text).get((code.co_name, code.co_firstlineno)) if source is not None else None


def assigned_name() -> str | None:
    """The name that the user's statement gives to the result of its call: `parts` in `parts = ptx.shared(f32, 32)`."""
    frame = user_frame()
    return _assignments(frame.f_code).get(frame.f_lineno)


@lru_cache(maxsize=256)
def _assignments(code: CodeType) -> dict[int, str]:
    """The names to which calls are assigned, by the lines of these; lines with several statements are left out."""
    found: dict[int, str] = {}
    several: set[int] = set()
    definition = definition_of(code)
    for node in ast.walk(definition) if definition is not None else ():
        if not isinstance(node, ast.stmt) or hasattr(node, "body"):
            continue
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        several.update(line for line in lines if line in found)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found.update(dict.fromkeys(lines, target.id))
    return {line: name for line, name in found.items() if line not in several}


@lru_cache(maxsize=16)
def _definitions(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """The functions of a file by their names and first lines."""
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return {}
    return {
        (node.name, min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])): node
        for node in nodes
    }


def head_span(code: CodeType, name: str) -> Span | None:
    """The parameter of that name, or else the line that names the function."""
    definition, source = definition_of(code), _source(code.co_filename)
    if source is None or definition is None:
        return None if source is None else line_span(source, min(code.co_firstlineno, source.line_count))
    given = definition.args
    names = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    found = next((one for one in names if one is not None and one.arg == name), None)
    if found is None or found.end_lineno != found.lineno or found.end_col_offset is None:
        return line_span(source, definition.lineno)
    start, end = (_offset(source, found.lineno, column) for column in (found.col_offset, found.end_col_offset))
    return Span(source, start, end)


@lru_cache(maxsize=64)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def _source(file: str) -> Source | None:
    """The text of a Python file as it is now: a module may have been edited and loaded again."""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    return _named(file, "".join(lines)) if lines else None


@lru_cache(maxsize=64)
def _named(file: str, text: str) -> Source:
    return Source(file, text)


def _offset(source: Source, line: int, column: int) -> int:
    """The position of a column, which Python counts in bytes of UTF-8."""
    start, end = source.line_bounds(line)
    text = source.text[start:end]
    # A file that was edited after it was loaded can have shorter lines than the code that runs.
    return start + len(text.encode()[:column].decode(errors="ignore"))


def texts_of(files: Iterable[str]) -> dict[str, Source]:
    """The texts of Python files, by name; those that can't be read are left out."""
    return {file: source for file in files if (source := _source(file)) is not None}

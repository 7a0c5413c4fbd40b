"""Commands of the debugger that show something and change nothing: values, variables, matrices, barriers, SASS."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ptxlab.debug.debugger import Debugger
from ptxlab.debug.focus import view
from ptxlab.debug.matrices import matrices
from ptxlab.debug.objects import STYLES, Object, UnknownError, UnwrittenError, resolve, text
from ptxlab.debug.position import Frame
from ptxlab.debug.values import Scope, shown

LISTED = 5  # lines around the one that a thread is at
_MOST_SHOWN = 26  # characters of a value among the parameters of a function


def print_value(debugger: Debugger, given: str) -> Iterator[str]:
    """`print EXPRESSION`, or `print/x EXPRESSION`."""
    style, expression = "", given
    found = re.match(r"/(\w*)\s*", given)
    if found is not None:
        style, expression = found[1], given[found.end() :]
        if len(style) != 1 or style not in STYLES:
            raise UnknownError(
                f"there is no format `/{style}`: expected one of {', '.join('/' + one for one in STYLES)}"
            )
    if not expression:
        raise UnknownError("what is to be printed? `print sum`, `print As[ty][k]`, `print %r5 + 1`")
    yield debugger.scope.text(expression, style)


def print_type(debugger: Debugger, given: str) -> Iterator[str]:
    """`ptype EXPRESSION`, or a name of a type."""
    scope = debugger.scope
    type = scope.declarations.type(given)
    if type is None:
        found = scope.operand(given)
        type = resolve(found, scope).type if isinstance(found, Object) else found.type
    if type is None:
        raise UnknownError(f"`{given}` is a number without a type")
    if type.kind != "structure":
        yield str(type)
        return
    yield f"struct {type.name} {{"
    for one in type.members:
        bits = f" : {one.bits[1]}" if one.bits else ""
        yield f"  {one.type.declaring(one.name)}{bits};  // at byte {one.offset}"
    yield "}"


def value_text(scope: Scope, name: str) -> str:
    """The value of a variable, or in angle brackets why it has none."""
    try:
        return scope.text(name)
    except UnknownError as wrong:
        return f"<{wrong.args[0].removeprefix(f'`{name}` ')}>"


def variables(debugger: Debugger, *, is_parameter: bool) -> Iterator[str]:
    """The local variables of the function, or its parameters."""
    scope = debugger.scope
    found = [one for one in scope.variables() if one.is_parameter == is_parameter and not one.is_hidden]
    if not found:
        if debugger.lines.has_sources and not debugger.declarations.is_known:
            yield "no names are known: start with -G"
        else:
            yield "no parameters" if is_parameter else "no local variables"
    for one in found:
        yield f"{one.type.declaring(one.name)} = {_without_cast(value_text(scope, one.name))}"


def shared(debugger: Debugger) -> Iterator[str]:
    """The shared variables of the block."""
    from ptxlab.device.layout import shared_variables

    scope = debugger.scope
    for variable, start in shared_variables(debugger.trace.program.variables):
        found = scope.operand(variable.name)
        assert isinstance(found, Object)
        yield f"{found.type.declaring(variable.title)} at {start:#x} = {text(found, scope)}"


def info(debugger: Debugger, given: str, stops: Callable[[], Iterator[str]]) -> Iterator[str]:
    """`info locals`, `info args`, `info cuda threads` and the others that gdb and cuda-gdb have."""
    word, _, rest = given.partition(" ")
    views: dict[str, Callable[[], Iterator[str]]] = {
        "breakpoints": stops,
        "locals": lambda: variables(debugger, is_parameter=False),
        "args": lambda: variables(debugger, is_parameter=True),
        "shared": lambda: shared(debugger),
        "registers": lambda: registers(debugger, rest),
        "stack": lambda: stack(debugger),
        "barriers": lambda: barriers(debugger),
        "cuda": lambda: view(debugger, rest or "kernels"),
    }
    chosen = [name for name in views if name.startswith(word)] if word else ["breakpoints"]
    if len(chosen) != 1:
        raise UnknownError(f"`info {word}`: expected one of {', '.join(views)}")
    yield from views[chosen[0]]()


def stack(debugger: Debugger) -> Iterator[str]:
    """The functions that the thread is in, the innermost first, with their parameters."""
    for number, frame in enumerate(debugger.stack()):
        mark = "→" if number == debugger.frame else " "
        yield f"{mark}#{number}  {frame_text(debugger, frame, number)}"


def frame_text(debugger: Debugger, frame: Frame, number: int) -> str:
    """`dot<4>(ty=3, tx=1) at gemm.cu:5, inlined`."""
    scope = debugger.scope_of(debugger.thread, number)
    given = [one for one in scope.variables() if one.is_parameter and not one.is_hidden] if frame.place.file else []
    shown_values = ", ".join(f"{one.name}={_short(value_text(scope, one.name))}" for one in given)
    function = frame.place.function or "(no name)"
    at = f"{near(frame.place.file)}:{frame.place.line}" if frame.place.file else f"line {frame.place.line}"
    depth = len(debugger.lines.places(frame.instruction, in_ptx=debugger.in_ptx))
    return f"{function}{f'({shown_values})' if given else ''} at {at}{', inlined' if frame.level < depth - 1 else ''}"


def _without_cast(value: str) -> str:
    """A pointer without its type, beside which it is declared."""
    return re.sub(r"^\([^()]*\*\) ", "", value)


def _short(value: str) -> str:
    value = _without_cast(value)
    return value if len(value) <= _MOST_SHOWN else value[: _MOST_SHOWN - 1] + "…"


def near(file: str) -> str:
    """A file as it is called from here, if it is below."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def registers(debugger: Debugger, given: str = "") -> Iterator[str]:
    """All registers of the function, or one."""
    found = debugger.scope.registers()
    for name, value in found.items() if not given else [(given, debugger.scope.register(given))]:
        yield f"{name:<8} {shown(value)}"


def lanes(debugger: Debugger, given: str) -> Iterator[str]:
    """An expression in all lanes of the warp."""
    found: list[tuple[int, str]] = []
    for scope in debugger.scopes_across_lanes().values():
        try:
            found.append((scope.lane, scope.text(given)))
        except UnwrittenError:  # a lane that has not written it has no value
            continue
    width = max((len(one) for _, one in found), default=0)
    each = 8 if width <= 7 else 4 if width <= 16 else 2 if width <= 34 else 1
    for start in range(0, len(found), each):
        row = found[start : start + each]
        yield f"lane {row[0][0]:>2}: " + "  ".join(one.rjust(width) for _, one in row)


def matrix(debugger: Debugger, given: str) -> Iterator[str]:
    """The fragments of the next instruction as matrices."""
    found = [one for one in matrices(debugger) if given in ("", one.operand)]
    if not found:
        raise UnknownError("the next instruction does not hold a matrix" + (f" `{given}`" if given else ""))
    for one in found:
        yield one.title
        yield np.array2string(one.values, max_line_width=120, threshold=1024, floatmode="maxprec", precision=4)


def barriers(debugger: Debugger, given: str = "") -> Iterator[str]:
    """The barriers of the blocks that are recorded."""
    found = debugger.trace.barriers(step=debugger.position - 1)
    yield from map(str, found) if found else ["no barrier has been used"]


def tensor_memory(debugger: Debugger, given: str) -> Iterator[str]:
    """Tensor memory by lane and column."""
    words = debugger.tensor_memory()
    lane, column, *_ = (*map(int, given.split()), -1, -1)
    known = np.flatnonzero(~words.mask.all(axis=1)).tolist()
    if not known:
        raise UnknownError("no word of tensor memory is known here: none was stored, or is loaded later")
    for number in known if lane < 0 else [lane]:
        columns = np.flatnonzero(~words.mask[number])
        chosen = [at for at in columns.tolist() if column in (-1, at)]
        yield (
            f"lane {number:>3}, columns {chosen[0]} to {chosen[-1]}: "
            + np.array2string(
                words[number, chosen].data, max_line_width=120, threshold=8 if lane < 0 else 512, precision=4
            )
            if chosen
            else f"lane {number:>3}: not known"
        )


def origin(debugger: Debugger, given: str) -> Iterator[str]:
    """The chain of instructions that a value comes from."""
    yield from str(debugger.origin(given)).splitlines()


def sass(debugger: Debugger, given: str) -> Iterator[str]:
    """The instructions around with their SASS."""
    program = debugger.trace.program
    if debugger.machine_code.absence:
        raise UnknownError(f"there is no SASS: {debugger.machine_code.absence}")
    now = debugger.instruction(debugger.thread) or 0
    yield debugger.machine_code.target
    for number in range(max(0, now - LISTED), min(len(program.instructions), now + LISTED + 1)):
        yield f"{'→' if number == now else ' '}{program.line(number):>5}  {program.text(number)}"
        yield from (f"{'':>11}{one}" for one in debugger.sass(number))

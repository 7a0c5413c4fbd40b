"""Control flow that runs on the GPU: branches, loops, labels.

Python's own `if` and `for` decide what is written; these decide what runs. Each prints as labels and branches, in the
order in which it is written.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ptxlab.author.carried import keeping_registers
from ptxlab.author.emit import emit
from ptxlab.author.jumps import refuse_jumps
from ptxlab.author.lines import here, refuse
from ptxlab.author.operand import describe
from ptxlab.author.operators import Negation
from ptxlab.author.trace import ConditionalRegion, Trace, current
from ptxlab.author.values import Scalar, pred, s32, u32


class WithBlock:
    """What a `with` opens. One that no `with` opens would do nothing, so that the end of the kernel refuses it."""

    def __init__(self, name: str, body: Callable[[], Iterator[None]]) -> None:
        self.name = name
        self._manager = contextmanager(body)()
        self._unopened = current(f"`{name}`").unopened
        self._unopened[self] = here()

    def __enter__(self) -> None:
        refuse_jumps(here().code)
        del self._unopened[self]
        self._manager.__enter__()

    def __exit__(self, *raised: Any) -> bool | None:
        return self._manager.__exit__(*raised)

    def __bool__(self) -> bool:
        refuse("value-needed", f"`{self.name}` is a block", helps=[f"open it by `with`: `with {self.name}(...):`"])


def _block(body: Callable[..., Iterator[None]]) -> Callable[..., WithBlock]:
    """Make a generator function a block, `ptx.` and its name."""

    @wraps(body)
    def open_block(*arguments: object) -> WithBlock:
        return WithBlock(f"ptx.{body.__name__}", lambda: body(*arguments))

    return open_block


@_block
def when(condition: Any) -> Iterator[None]:
    """The block runs in the threads where the predicate holds."""
    trace = current("`ptx.when`")
    _check_condition("ptx.when", condition)
    end = trace.label("end")
    emit("bra", [end], when=~condition)
    with _skippable(trace, "where a condition of `ptx.when` holds", "`ptx.when`"):
        yield
    trace.place_label(end)
    trace.last_when = (len(trace.lines), end)


@_block
def otherwise() -> Iterator[None]:
    """The block runs in the threads that did not take the `when` just before."""
    trace = current("`ptx.otherwise`")
    if trace.last_when is None or trace.last_when[0] != len(trace.lines):
        refuse(
            "stray-otherwise",
            "`ptx.otherwise` follows no `ptx.when`",
            helps=["it must directly follow the block of a `with ptx.when(...):`"],
        )
    other = trace.last_when[1]
    trace.lines.pop()  # the label goes after the branch over this block
    end = trace.label("end")
    emit("bra", [end])
    trace.lines.append(f"{other}:")
    with _skippable(trace, "where no condition of `ptx.when` holds", "`ptx.otherwise`"):
        yield
    trace.place_label(end)


@_block
def loop() -> Iterator[None]:
    """The block runs again and again, until `ptx.leave_when(condition)` leaves it.

    A block that ends in `ptx.repeat_when(condition)` runs again only where that holds.
    """
    trace = current("`ptx.loop`")
    again, end = trace.label("loop"), trace.label("end")
    trace.place_label(again)
    trace.loops.append((again, end))
    depth = len(trace.scopes)
    trace.opened.append(("loop", here()))
    with keeping_registers():
        yield
    trace.opened.pop()
    trace.loops.pop()
    if trace.repeated != len(trace.lines):
        emit("bra", [again])
    for scope in trace.scopes[depth:]:
        scope.opened = False
    del trace.scopes[depth:]
    trace.place_label(end)


def leave_when(condition: object) -> None:
    """Leave the innermost loop in the threads where the predicate holds."""
    trace = _in_loop("ptx.leave_when")
    _check_condition("ptx.leave_when", condition)
    emit("bra", [trace.loops[-1][1]], when=condition)
    trace.scopes.append(ConditionalRegion("after a `ptx.leave_when` of a loop"))


def repeat_when(condition: object) -> None:
    """Go back to the start of the innermost `ptx.loop` in the threads where the predicate holds."""
    trace = _in_loop("ptx.repeat_when")
    _check_condition("ptx.repeat_when", condition)
    again = trace.loops[-1][0]
    if again is None:
        refuse("stray-leave", "`ptx.repeat_when` is in a `ptx.range`, which counts", helps=["use `ptx.when`"])
    emit("bra", [again], when=condition)
    trace.repeated = len(trace.lines)


def leave() -> None:
    """Leave the innermost loop."""
    emit("bra", [_in_loop("ptx.leave").loops[-1][1]])


def _in_loop(what: str) -> Trace:
    trace = current(f"`{what}`")
    if not trace.loops:
        refuse("stray-leave", f"`{what}` is not in a loop", helps=["it belongs in `with ptx.loop():` or `ptx.range`"])
    return trace


def counted(*limits: Any, unroll: bool | None = None) -> Iterator[Any]:
    """`for i in ptx.range(start, stop, step)`: a loop on the GPU; `i` is a register of the type of the limits.

    `unroll=False` asks ptxas not to unroll it.
    """
    trace = current("`ptx.range`")
    position = here()
    refuse_jumps(position.code)
    if not 1 <= len(limits) <= 3:
        refuse("operand-count", f"`ptx.range` takes 1 to 3 limits, {len(limits)} given")
    for limit in limits:
        if not isinstance(limit, Scalar) and not hasattr(limit, "__index__"):
            refuse(
                "type-clash", f"a limit of `ptx.range` is {describe(limit)}", helps=["limits are integers or registers"]
            )
    start, stop, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    if not isinstance(step, Scalar) and operator.index(step) <= 0:
        refuse("immediate-range", f"the step of `ptx.range` is {step}", helps=["count up, and subtract in the body"])
    given = [limit for limit in (start, stop, step) if isinstance(limit, Scalar)]
    negative = any(not isinstance(limit, Scalar) and limit < 0 for limit in (start, stop))
    cls = type(given[0]) if given else s32 if negative else u32
    i = cls()
    i.set(start)
    again, end = trace.label("loop"), trace.label("end")
    if isinstance(start, Scalar) or isinstance(stop, Scalar) or start >= stop:
        emit("bra", [end], when=i >= stop)
    if unroll is False:
        trace.write('.pragma "nounroll";', position)
    trace.place_label(again)
    trace.loops.append((None, end))
    with _skippable(trace, "in a loop that may run no times", "loop"):
        try:
            with keeping_registers():
                yield i
        except GeneratorExit:  # by Python's `break` or `return`, which has left this loop open
            trace.left = here()
            raise
        trace.loops.pop()
        i += step
        emit("bra", [again], when=i < stop)
    trace.place_label(end)


@contextmanager
def _skippable(trace: Trace, reason: str, what: str) -> Iterator[None]:
    """What is written in the block can't be read after it."""
    depth = len(trace.scopes)
    trace.scopes.append(ConditionalRegion(reason))
    trace.opened.append((what, here()))
    yield
    trace.opened.pop()
    for scope in trace.scopes[depth:]:
        scope.opened = False
    del trace.scopes[depth:]


def _check_condition(what: str, condition: object) -> None:
    value = condition.value if isinstance(condition, Negation) else condition
    if isinstance(value, bool):
        refuse(
            "value-needed", f"`{what}` got the Python value {value}", helps=["what Python knows, a Python `if` decides"]
        )
    if not isinstance(value, pred):
        refuse("guard-type", f"`{what}` takes a predicate", helps=["compare: `x < n` gives a predicate"])


def label(name: str) -> None:
    """Place a label; `ptx.bra("name")` goes there."""
    current("a label").place_label(name)

"""Variables of C++ and expressions, as a lane sees them at a position of the page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy.typing as npt

from ptxlab.debug.declarations import Declarations
from ptxlab.debug.inspection import value_text
from ptxlab.debug.lines import Lines
from ptxlab.debug.objects import UnknownError, text
from ptxlab.debug.values import Scope
from ptxlab.trace.accesses import Rows
from ptxlab.trace.thread_steps import steps_of
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json


@dataclass(frozen=True)
class LaneScope(Scope):
    """A thread at a position of the page, where the lanes of a warp run together."""

    steps: WarpSteps | None = field(default=None, repr=False)
    at: int = 0

    def is_before(self, rows: Rows) -> npt.NDArray[Any]:
        """Which of some writes were made up to then."""
        assert self.steps is not None
        found: npt.NDArray[Any] = self.steps.when(rows) < self.at
        return found


class LaneVariables:
    """What finds variables and values of expressions."""

    def __init__(self, steps: WarpSteps, declarations: Declarations | None) -> None:
        self.steps = steps
        self.lines = Lines(steps.trace.program)
        self.declarations = declarations or Declarations(steps.trace.program)

    def _scopes(self, warp: int, lane: int, position: int) -> Iterator[LaneScope]:
        """What the functions see that the lane is in, the innermost first; without an instruction if it has ended."""
        trace = self.steps.trace
        block, own = divmod(warp, self.steps.warps_in_block)
        thread = block * trace.accesses.threads_in_block + own * 32 + lane
        at = self.steps.keys(warp, position).get(thread, 0) // 2
        executed = steps_of(trace.columns, thread)
        index = executed.next(at)
        scope = LaneScope(trace, thread, at, self.declarations, steps=self.steps, at=position)
        if index >= len(executed.numbers):
            yield scope
            return
        for number in (index, *executed.callers(index)):
            instruction = int(executed.instructions[number])
            step = None if number == index else int(executed.numbers[number])
            depth = len(self.lines.places(instruction))
            for level in range(depth):
                yield replace(scope, instruction=instruction, step=step, level=level, depth=depth)

    def listed(self, warp: int, lane: int, position: int) -> Json:
        """The variables of the functions that the lane is in."""
        found: list[Json] = []
        for scope in self._scopes(warp, lane, position):
            if scope.instruction is not None:
                place = self.lines.places(scope.instruction)[scope.level]
                rows = [
                    {"name": one.name, "type": str(one.type), "value": value_text(scope, one.name)}
                    for one in scope.variables() if not one.is_hidden
                ]  # fmt: skip
                found.append({"function": place.function, "line": place.line, "variables": rows})
        return {"frames": found, "known": self.declarations.is_known, "locals": self.declarations.are_locals_known}

    def value(self, warp: int, lane: int, position: int, encoded: str) -> Json:
        """The value of an expression, whose letters are in hexadecimal after an `x`; or what is wrong with it."""
        scope = next(self._scopes(warp, lane, position))
        try:
            expression = bytes.fromhex(encoded.removeprefix("x")).decode()
            found = scope.operand(expression)
            return {"value": text(found, scope), "type": "" if found.type is None else str(found.type)}
        except (UnknownError, UnicodeDecodeError) as wrong:
            return {"problem": str(wrong.args[0])}

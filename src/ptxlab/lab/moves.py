"""Moves by lines of the source: a line of a lane, into, over or out of calls, and the next stop at a line."""

from __future__ import annotations

from functools import cached_property

from ptxlab.debug import Debugger
from ptxlab.debug.declarations import Declarations
from ptxlab.debug.stepping import Kind, Way
from ptxlab.debug.stops import Breakpoint
from ptxlab.debug.terminal import Terminal
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

_KINDS: dict[str, Kind] = {"in": "in", "over": "over", "out": "out"}


class LaneMoves:
    """What finds the position after a move; positions are warp steps."""

    def __init__(self, steps: WarpSteps, declarations: Declarations | None) -> None:
        self.steps = steps
        self._declarations = declarations

    @cached_property
    def _debugger(self) -> Debugger:
        made = Debugger(self.steps.trace)
        if self._declarations is not None:
            made.declarations = self._declarations
        return made

    def step(self, warp: int, lane: int, position: int, kind: str, is_back: int) -> Json:
        """Where a lane is after a line, or before the one that it has executed last."""
        debugger, trace = self._debugger, self.steps.trace
        block, own = divmod(warp, self.steps.warps_in_block)
        thread = block * trace.accesses.threads_in_block + own * 32 + lane
        executed = debugger.steps(thread)
        index = executed.next(self.steps.keys(warp, position).get(thread, 0) // 2)
        way = Way(debugger.lines, executed, in_ptx=debugger.in_ptx)
        if is_back:
            before = way.before(index, _KINDS[kind], "line")
            return {"position": 0 if before is None else self.steps.position_of(before[0])}
        target = way.after(index, _KINDS[kind], "line")
        after = len(executed.numbers) if target is None else executed.next(target)
        if after >= len(executed.numbers):
            return {"position": self.steps.count}
        return {"position": self.steps.position_of(int(executed.numbers[after]))}

    def stop(self, position: int, is_back: int, encoded: str) -> Json:
        """The next stop of a breakpoint, or the one before, with its warp and lane; or why there is none.

        It is written as in the terminal, `15 if k == 1`; its letters are in hexadecimal after an `x`.
        """
        debugger = self._debugger
        debugger.stops.clear()
        wanted = bytes.fromhex(encoded.removeprefix("x")).decode("utf-8", "replace")
        said = next(Terminal(debugger, lambda _: None).answer(f"break {wanted}"), "")
        made = next((one for one in debugger.stops.values() if isinstance(one, Breakpoint)), None)
        if made is None:
            return {"problem": said}
        when = [(self.steps.position_of(int(step)), hit) for hit, step in enumerate(made.hits.positions)]
        near = [one for one in when if (one[0] < position if is_back else one[0] > position)]
        for at, hit in sorted(near, reverse=bool(is_back)):
            if made.holds(hit):
                thread = int(made.hits.threads[hit])
                lane = thread % self.steps.trace.accesses.threads_in_block % 32
                return {"position": at, "warp": self.steps.warp_of(thread), "lane": lane, "said": said}
        return {"problem": f"{said}; not {'before' if is_back else 'after'} this position"}

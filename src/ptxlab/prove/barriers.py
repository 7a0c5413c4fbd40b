"""That barriers are reached by all threads of a block: all decide alike on the way there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .execution import Execution
from .intervals import Pair
from .questions import Obligation, Questions
from .reasons import why
from .segments import Decision
from .solver import check
from .terms import Loop, is_uniform


class Barriers:
    """Shows barriers."""

    def __init__(self, execution: Execution, questions: Questions) -> None:
        self.execution, self.questions = execution, questions

    def show(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that all threads of a block take the same decisions on the way to each barrier."""
        execution = self.execution
        if not execution.barriers:
            return
        facts = execution.facts
        blocks = {facts.flow.block_at(at) for at in execution.barriers}
        pending, deciding = list(blocks), set[int]()
        while pending:
            for branch in facts.control.branches.get(pending.pop(), ()):
                if branch not in deciding:
                    deciding.add(branch)
                    pending.append(branch)
        for decision in execution.notes.decisions:
            if facts.flow.block_at(decision.at) in deciding:
                yield self._uniform(decision, milliseconds)

    def _uniform(self, decision: Decision, milliseconds: int) -> Obligation:
        def same(loop: Loop) -> bool:
            return loop in decision.loops or loop.is_uniform or loop.has_barrier

        about = "all threads of a block decide alike on the way to a barrier"
        if is_uniform([decision.condition], same):
            return Obligation("barrier", (decision.line,), "proved", about, argument="uniform by construction")
        turns = dict.fromkeys(decision.loops, 0)
        start = _At(decision.loops)
        pair = Pair(start, (turns, turns), same_block=True)  # type: ignore[arg-type]
        formulas: list[Any] = []
        conditions = []
        for thread in (0, 1):
            b = self.questions.bits(pair, thread)
            self.questions.enter(b, pair, thread, decision.path, decision.loops, [decision.condition])
            conditions.append(b.holds(decision.condition))
            formulas += b.facts
        status, _ = check([*formulas, conditions[0] != conditions[1]], milliseconds)
        if status == "unsat":
            return Obligation("barrier", (decision.line,), "proved", about, argument="bit-vectors, two threads")
        reason, help = why(status, [decision.condition], None)
        if status == "sat":
            reason = reason or "threads of one block may decide differently"
        return Obligation("barrier", (decision.line,), "open", about, reason, help,
                          again=lambda limit: self._divided(decision, limit))  # fmt: skip

    def _divided(self, decision: Decision, milliseconds: int) -> Any:
        """A model in which two threads of a block decide differently."""
        turns = dict.fromkeys(decision.loops, 0)
        pair = Pair(_At(decision.loops), (turns, turns), same_block=True)  # type: ignore[arg-type]
        space = self.questions.space()
        formulas: list[Any] = []
        conditions = []
        for thread in (0, 1):
            t = self.questions.integers(pair, thread, space, decision.path, decision.loops)
            self.questions.enter(t, pair, thread, decision.path, decision.loops, [decision.condition])
            conditions.append(t.holds(decision.condition))
            formulas += t.facts
        return check([*formulas, conditions[0] != conditions[1], *space.products(), *space.facts], milliseconds)[1]


@dataclass(eq=False)
class _At:
    """A place in loops, in place of a segment."""

    loops: tuple[Loop, ...]

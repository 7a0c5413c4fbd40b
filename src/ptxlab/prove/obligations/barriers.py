"""That barriers are reached by all threads of a block: all decide alike on the way there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxlab.prove.execution.execution import Execution
from ptxlab.prove.execution.segments import Decision
from ptxlab.prove.questions.intervals import At, Pair
from ptxlab.prove.questions.questions import Obligation, Questions
from ptxlab.prove.questions.reasons import why
from ptxlab.prove.terms.predicates import TRUE
from ptxlab.prove.terms.terms import Loop, is_uniform


class Barriers:
    """Shows barriers."""

    def __init__(self, execution: Execution, questions: Questions) -> None:
        self.execution, self.questions = execution, questions

    def show(self, milliseconds: int) -> Iterator[Obligation]:
        """Show that threads take the same decisions on the way to each barrier, and to each warp collective.

        All threads of a block do on the way to a barrier, those of a warp on the way to a warp collective.
        """
        notes, block_at = self.execution.notes, self.execution.facts.flow.block_at
        deciding = self._deciding(self.execution.barriers)
        of_warps = self._deciding({one.at for one in notes.collectives})
        for decision in notes.decisions:
            if decision.at in self.execution.barriers or block_at(decision.at) in deciding:
                yield self._uniform(decision, milliseconds)
            elif block_at(decision.at) in of_warps:
                yield self._uniform(decision, milliseconds, is_of_warp=True)
        for collective in notes.collectives:
            if collective.condition != TRUE:
                yield self._uniform(collective, milliseconds, is_of_warp=True)

    def _deciding(self, instructions: set[int]) -> set[int]:
        """The blocks whose branches decide whether instructions are reached, and how often."""
        facts = self.execution.facts
        pending, found = [facts.flow.block_at(at) for at in instructions], set[int]()
        while pending:
            for branch in facts.control.branches.get(pending.pop(), ()):
                if branch not in found:
                    found.add(branch)
                    pending.append(branch)
        return found

    def _uniform(self, decision: Decision, milliseconds: int, *, is_of_warp: bool = False) -> Obligation:
        def same(loop: Loop) -> bool:
            return loop in decision.loops or loop.is_uniform or loop.has_barrier

        kind, whose = ("collective", "warp") if is_of_warp else ("barrier", "block")
        where = "warp collective" if is_of_warp else "barrier"
        about = f"all threads of a {whose} decide alike on the way to a {where}"
        if is_uniform([decision.condition], same):
            return Obligation(kind, (decision.line,), "proved", about, argument="uniform by construction")
        over = self.questions.in_time(kind, (decision.line,), about)
        if over is not None:
            return over
        turns = dict.fromkeys(decision.loops, 0)
        pair = Pair(decision.loops, (turns, turns), same_block=True, same_warp=is_of_warp or None)
        place = At(decision.path, decision.loops, [decision.condition])
        threads = self.questions.in_bits(pair, place, place)
        one, other = (b.holds(decision.condition) for b in threads)
        apart = self.questions.apart(pair, *threads)
        facts = [fact for b in threads for fact in b.facts]
        status, _ = self.questions.clock.check([*facts, *apart, one != other], milliseconds)
        if status == "unsat":
            return Obligation(kind, (decision.line,), "proved", about, argument="bit-vectors, two threads")
        reason, help = why(status, [decision.condition], None)
        if status == "sat":
            reason = reason or f"threads of one {whose} may decide differently"
        return Obligation(kind, (decision.line,), "open", about, reason, help,
                          again=lambda limit: self._divided(decision, limit))  # fmt: skip

    def _divided(self, decision: Decision, milliseconds: int) -> Any:
        """A model in which two threads of a block decide differently."""
        turns = dict.fromkeys(decision.loops, 0)
        pair = Pair(decision.loops, (turns, turns), same_block=True)
        place = At(decision.path, decision.loops, [decision.condition])
        space, threads = self.questions.in_integers(pair, place, place)
        one, other = (t.holds(decision.condition) for t in threads)
        facts = [fact for t in threads for fact in t.facts]
        return self.questions.clock.check([*facts, one != other, *space.products(), *space.facts], milliseconds)[1]

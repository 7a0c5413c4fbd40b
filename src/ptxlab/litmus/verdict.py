"""A litmus test's verdict: whether its condition holds of the final states that the model allows."""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.litmus.events import COMPARE
from ptxlab.litmus.executions import Final, Judgement
from ptxlab.litmus.program import Condition, Litmus


@dataclass(frozen=True)
class Verdict:
    """Whether the test's condition holds, and whether an allowed execution has a data race."""

    holds: bool
    racy: bool


def verdict(test: Litmus, judgement: Judgement) -> Verdict:
    """What the model says of a test."""
    finals = [final for final in judgement.finals if test.filter is None or satisfies(test, test.filter, final)]
    some = any(satisfies(test, test.condition, final) for final in finals)
    every = all(satisfies(test, test.condition, final) for final in finals)
    holds = {"exists": some, "~exists": not some, "forall": every}[test.quantifier]
    return Verdict(holds, any(about.racy for about in judgement.finals.values()))


def satisfies(test: Litmus, condition: Condition, final: Final) -> bool:
    """Whether a condition holds of a final state."""
    match condition.operation:
        case "true":
            return True
        case "and":
            return all(satisfies(test, part, final) for part in condition.parts if isinstance(part, Condition))
        case "or":
            return any(satisfies(test, part, final) for part in condition.parts if isinstance(part, Condition))
        case "not":
            return not any(satisfies(test, part, final) for part in condition.parts if isinstance(part, Condition))
    left, right = (_value(test, part, final) for part in condition.parts)
    return COMPARE[condition.operation](left, right)


def _value(test: Litmus, part: Condition | int | str | tuple[int, str], final: Final) -> int:
    match part:
        case int():
            return part
        case str():
            return dict(final.memory)[test.variables[part].location]
        case (int() as thread, str() as register):
            return dict(final.registers[thread]).get(register, 0)
    raise AssertionError(part)

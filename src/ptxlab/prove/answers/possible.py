"""Whether some launch is as conditions say: of launches that there are not, anything would be proved."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ptxlab.prove.questions.questions import QUICK, Questions
from ptxlab.prove.terms.terms import LARGEST
from ptxlab.prove.theories.integers import Space

from .contracts import ContractError, Names


def require_possible(
    questions: Questions, names: Names, texts: Sequence[str], formulas: Callable[[Sequence[str]], list[Any]]
) -> None:
    """Raise where no launch meets conditions, and name those that contradict each other, or what is always assumed."""
    before, ranges = questions.contracts, questions.ranges
    questions.ranges = ranges | {name: (0, LARGEST) for name in names.scalars if name in ranges}

    def is_possible(chosen: Sequence[str]) -> bool:
        questions.contracts = formulas(chosen)
        questions.forget()
        space: Space = questions.space()
        return questions.clock.check([*space.products(), *space.facts], QUICK)[0] != "unsat"

    if not is_possible(texts):
        needed = list(texts)
        for one in texts:
            fewer = [other for other in needed if other is not one]
            needed = needed if is_possible(fewer) else fewer
        said = " and ".join(f"`{one}`" for one in needed)
        is_of_integers = any(not names.scalars.isdisjoint(re.findall(r"\w+", one)) for one in needed)
        limits = ", with integers from 0 to 2^31 - 1" if is_of_integers else ""
        raise ContractError(f"prove: no launch meets {said}{limits}")
    questions.contracts, questions.ranges = before, ranges
    questions.forget()

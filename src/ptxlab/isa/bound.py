"""How far from the true result an approximate instruction may be, as the manual states it."""

from math import inf

from ptxlab.values import dataclass


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest error for operands strictly between `above` and `below`.

    `measure` is what `error` counts: "ulp", units in the last place of the result; "relative", parts of the true
    result; "absolute", the difference itself.
    """

    measure: str
    error: float
    above: float = -inf
    below: float = inf

    def holds(self, operand: float) -> bool:
        """Whether it is the bound for this operand."""
        return self.above < operand < self.below

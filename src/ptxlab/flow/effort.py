"""A limit on the work that a rule puts into one function.

Following values and ways through a function takes a time that grows with the square of its branches at worst. Functions
of real programs stay far below the limit; one made to be tangled is left alone, so that checking never takes long.
"""

from ptxlab import ir


class ExhaustedError(Exception):
    """A function is too tangled to be followed further."""


class Effort:
    """The steps that are left for one function."""

    __slots__ = ("_left",)

    def __init__(self, instructions: list[ir.Instruction]) -> None:
        self._left = 200_000 + 100 * len(instructions)

    def spend(self, steps: int) -> None:
        """Take steps away, or stop."""
        self._left -= steps
        if self._left < 0:
            raise ExhaustedError

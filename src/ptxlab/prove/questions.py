"""Questions: the variables, contracts and translations that all obligations are asked with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab.flow.expressions import Atom, Linear

from .bits import Bits
from .integers import Integers, Poly, Space
from .intervals import Pair
from .objects import Object
from .segments import Path
from .solver import z3
from .terms import AXES, Loop

QUICK, PATIENT = 3_000, 15_000  # milliseconds


@dataclass(frozen=True)
class Obligation:
    """Something that was to be shown, and whether it was."""

    kind: str
    lines: tuple[int, ...]
    status: str  # "proved", "open"
    about: str
    reason: str = ""
    help: str = ""
    argument: str = ""
    again: Callable[[int], Any] | None = None
    """Asks once more, perhaps with other ranges: a model in which it does not hold, or None."""
    retry: Callable[[], Obligation] | None = None
    """Tries to show it once more, perhaps with other contracts."""


class Questions:
    """What is the same in all questions: the block, and what is assumed of sizes, lengths and the grid."""

    def __init__(self, block: tuple[int, int, int], sizes: dict[str, int]) -> None:
        self.block, self.sizes = block, sizes
        self.ranges: dict[str, tuple[int, int]] = {}
        """The variables of all questions: sizes, lengths and the grid."""
        self.contracts: list[Callable[[Space], Any]] = []
        self._exact: dict[tuple[Path, tuple[Loop, ...]], set[Linear | Atom]] = defaultdict(set)

    def forget(self) -> None:
        """Forget what was shown not to wrap: the contracts are others now."""
        self._exact.clear()

    def space(self) -> Space:
        """The variables of a question, with those that contracts may name."""
        found = Space()
        for name, (low, high) in self.ranges.items():
            found.variable(name, low, high)
        for contract in self.contracts:
            found.facts.append(contract(found))
        return found

    def integers(self, pair: Pair, thread: int, space: Space, path: Path, loops: tuple[Loop, ...]) -> Integers:
        """A translation to integers for one of two threads, where a path is taken."""
        found = Integers(lambda atom: pair.name(atom, thread), space, self._exact[path, loops])
        tag = "" if pair.same_block else f"@{thread}"
        for axis in AXES:
            number = space.variable(f"%ctaid.{axis}{tag}", 0, self.ranges[f"%nctaid.{axis}"][1] - 1)
            found.facts.append(space.at_most(number.plus(Poly.of(1)), Poly({(f"%nctaid.{axis}",): 1})))
        return found

    def bits(self, pair: Pair, thread: int) -> Bits:
        """A translation to bit-vectors for one of two threads."""
        return Bits(lambda atom: pair.name(atom, thread))

    @staticmethod
    def enter(translation: Bits | Integers, pair: Pair, thread: int, path: Path, loops: Sequence[Loop],
              values: Sequence[Linear]) -> None:  # fmt: skip
        """Take for granted what holds for a thread at an access."""
        limits, facts = pair.facts([*path, *values], loops, thread)
        translation.assume([*limits, *path, *facts])

    def length(self, object: Object) -> Poly:
        """The bytes of an object."""
        if object.bytes is not None:
            return Poly.of(object.bytes)
        return Poly({(f"len({object.name})",): self.sizes[object.name]})

    def different(self, pair: Pair, space: Space) -> Any:
        """That two threads are not the same, or that they are."""
        if pair.same_thread:
            return z3.BoolVal(True)
        found = []
        for axis, extent in zip(AXES, self.block, strict=True):
            name, most = (f"%tid.{axis}", extent - 1) if pair.same_block else (
                f"%ctaid.{axis}", self.ranges[f"%nctaid.{axis}"][1] - 1)  # fmt: skip
            one, two = (space.variable(f"{name}@{thread}", 0, most) for thread in (0, 1))
            found.append(z3.Not(space.equal(one, two)))
        return z3.And(z3.Or(pair.may_be_one, *found), *self._warps(pair, space))

    def _warps(self, pair: Pair, space: Space) -> list[Any]:
        """That two threads are of one warp, or not, where a pair says so."""
        if pair.same_warp is None:
            return []
        warps = []
        for thread in (0, 1):
            number, pitch = Poly(), 1
            for axis, extent in zip(AXES, self.block, strict=True):
                number = number.plus(space.variable(f"%tid.{axis}@{thread}", 0, extent - 1), pitch)
                pitch *= extent
            warps.append(space.divided(number, 32)[0])
        same = space.equal(*warps)
        return [same if pair.same_warp else z3.Not(same)]

    def different_bits(self, pair: Pair) -> list[Any]:
        """That two threads are not the same, or that they are, of bit-vectors."""
        if pair.same_thread:
            return []
        if not pair.same_block:
            return [z3.Or(*(z3.BitVec(f"%ctaid.{axis}@0", 32) != z3.BitVec(f"%ctaid.{axis}@1", 32) for axis in AXES))]
        found: list[Any] = []
        either = []
        for axis, extent in zip(AXES, self.block, strict=True):
            one, other = (z3.BitVec(f"%tid.{axis}@{thread}", 32) for thread in (0, 1))
            found += [z3.ULT(one, extent), z3.ULT(other, extent)]
            either.append(one != other)
        if pair.same_warp is not None:
            warps, pitch = [z3.BitVecVal(0, 32)] * 2, 1
            for axis, extent in zip(AXES, self.block, strict=True):
                warps = [one + pitch * z3.BitVec(f"%tid.{axis}@{n}", 32) for n, one in enumerate(warps)]
                pitch *= extent
            same = z3.LShR(warps[0], 5) == z3.LShR(warps[1], 5)
            found.append(same if pair.same_warp else z3.Not(same))
        return [*found, z3.Or(pair.may_be_one, *either)]

"""Proofs of the kernels that a program launches: its launches are the examples, and each must be as a proof assumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from ptxlab.programs.examples import MOST_EXAMPLES, ZEROS, LaunchExample
from ptxlab.prove.terms.terms import AXES, LARGEST, is_integer
from ptxlab.prove.theories.integers import Space
from ptxlab.prove.theories.solver import Clock, require_solver, z3
from ptxlab.report import KernelError, PtxError
from ptxlab.values import Json

from .contracts import Example, contents_of
from .proving import Asked, Proving, interruptible, refuse
from .verdict import OPEN, Gap, Verdict


@dataclass(frozen=True)
class LaunchedKernel:
    """What was shown of a kernel with the blocks that a program launches it with."""

    verdict: Verdict
    launches: int
    outside: Sequence[tuple[str, str]]
    """Launches that are not as the proof assumes: the line of the host, and why."""

    def as_dict(self) -> Json:
        """The answer for programs."""
        outside = [{"launch": place, "reason": why} for place, why in self.outside]
        return {**self.verdict.as_dict(), "launches": self.launches, "outside": outside}

    def __str__(self) -> str:
        if not self.verdict:
            return str(self.verdict)
        if not self.outside:
            what = "all of its launches are" if self.launches > 1 else "its launch is"
            if self.launches == MOST_EXAMPLES:  # those that came later were not kept
                what = f"its first {MOST_EXAMPLES} different launches are"
            return f"{self.verdict}\n{what} like that"
        lines = [f"  - {place}: {why}" for place, why in self.outside]
        return "\n".join([str(self.verdict), "but these launches are not like that", *lines])


def prove_launched(
    launches: Sequence[tuple[LaunchExample, str]], timeout: float = 60.0, replays: bool = True
) -> Iterator[LaunchedKernel]:
    """Prove each kernel of a program, for each block that it is launched with, in `timeout` seconds, about.

    Each launch comes with the line of the host. What lengths of arrays follow from is guessed from them.
    """
    require_solver()
    groups: dict[object, list[tuple[LaunchExample, str]]] = {}
    for one in launches:
        groups.setdefault(one[0].key, []).append(one)
    for group in groups.values():
        yield _prove_group(group, timeout, replays)


def _prove_group(group: Sequence[tuple[LaunchExample, str]], timeout: float, replays: bool) -> LaunchedKernel:
    one = max((one for one, _ in group), key=_generality)
    example = Example(one.numbers, {}, {}, one.grid, one.sizes, dict.fromkeys(one.zeros, ZEROS))
    proving = Proving(one.kernel, one.block, one.shared, one.cluster, [], example, None, Asked(True, (), False),
                      timeout, replays)  # fmt: skip
    proving.is_guess = lambda text: all(other.unusual or _holds(text, other, proving) for other, _ in group)
    try:
        refuse(one.kernel, one.block, one.shared, one.cluster)
    except (KernelError, PtxError) as wrong:
        gap = Gap("unsupported", (), "this is not followed", wrong.diagnostics[0].message)
        return LaunchedKernel(Verdict(OPEN, one.kernel.title, [], [gap]), len(group), [])
    with interruptible():
        verdict = proving.verdict()
    outside = [(place, why) for other, place in group if (why := _why_outside(other, proving))] if verdict else []
    return LaunchedKernel(verdict, len(group), outside)


def _generality(one: LaunchExample) -> tuple[bool, int, int, int]:
    """Of launches that a proof may start from, the greater one leaves less to be 1, or to be alike, by chance."""
    sizes = {number for number in one.numbers.values() if number > 1}
    return not one.unusual, sum(extent > 1 for extent in one.grid), len(sizes), prod(one.grid)


def _why_outside(one: LaunchExample, proving: Proving) -> str:
    """What a launch is like that the proof assumes not to be."""
    sizes = proving.proof.objects.sizes
    for parameter in one.kernel.parameters:
        value = one.numbers.get(parameter.title)
        if value is not None and parameter.title in sizes:
            return f"`{parameter.title}` is {value:#x}, which is in no allocation"
        if value is not None and is_integer(parameter) and not 0 <= value <= LARGEST:
            return f"`{parameter.title}` is {value}"
    if one.unusual:
        return one.unusual[0]
    assumed = [*proving.guessed, *(f"grid.{axis} == 1" for axis in proving.flat)]
    return next((f"{text} does not hold" for text in assumed if not _holds(text, one, proving)), "")


def _holds(text: str, one: LaunchExample, proving: Proving) -> bool:
    """Whether a condition holds in a launch, where arrays may be longer than it says: what is in bounds stays so."""
    for word, value in contents_of([text]).items():
        return value == 0 and word.endswith("[0]") and word.removesuffix("[0]") in one.zeros
    space = Space()
    sizes, names = proving.proof.objects.sizes, proving.names
    lengths = {f"len({name})": size // sizes[name] for name, size in one.sizes.items() if name in sizes}
    extents = {f"%nctaid.{axis}": extent for axis, extent in zip(AXES, one.grid, strict=True)}
    for name, value in (one.numbers | lengths | extents).items():
        space.variable(name, value, value)
    formula = names.contract(text.replace("==", ">=") if text.startswith("len(") else text)(space)
    return Clock(1.0).check([z3.Not(formula), *space.facts], 1000)[0] == "unsat"

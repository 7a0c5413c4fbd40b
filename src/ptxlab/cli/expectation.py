"""`ptxlab run --expect`: an array as it should be, the first element that is not, and where that comes from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.cli.outcome import Observed
    from ptxlab.trace import Trace

TOLERANCE = 1e-3  # of the largest value that is expected, for floats


@dataclass(frozen=True)
class Expectation:
    """What an array should hold; without a name, the only one of that shape is meant."""

    name: str | None
    path: Path

    @staticmethod
    def parse(text: str) -> Expectation:
        """`c=ref.npy` or `ref.npy`."""
        name, given, path = text.rpartition("=")
        return Expectation(name if given else None, Path(path))

    def read(self) -> Any:
        """The array in the file."""
        import numpy

        try:
            found = numpy.load(self.path, allow_pickle=False)
        except (OSError, ValueError) as problem:
            why = (getattr(problem, "strerror", None) or str(problem)).lower()
            raise click.UsageError(f"`{self.path}` can't be read as an array: {why}") from None
        return found

    def find(self, arrays: Sequence[Observed], expected: Any) -> Observed:
        """The array of the launch that is meant."""
        named = [one for one in arrays if one.name == self.name or self.name is None]
        if not named:
            raise click.UsageError(f"`--expect {self.name}`: the arrays are {', '.join(one.name for one in arrays)}")
        found = [one for one in named if one.after.shape == expected.shape]
        if len(found) != 1:
            many = "several arrays have" if found else "no array has"
            raise click.UsageError(f"`{self.path}` is {expected.shape}: {many} this shape; write NAME=FILE.npy")
        return found[0]


def wrong_elements(after: Any, expected: Any, tolerance: float) -> Any:
    """Where an array is not as expected, in order: the flat indices."""
    import numpy

    if after.dtype.kind in "iub" and expected.dtype.kind in "iub":
        return numpy.flatnonzero(after != expected)
    ours, theirs = after.astype(numpy.float64), expected.astype(numpy.float64)
    finite = theirs[numpy.isfinite(theirs)]
    bound = tolerance * (numpy.abs(finite).max() if finite.size else 1.0)
    with numpy.errstate(invalid="ignore"):
        close = numpy.abs(ours - theirs) <= bound
    return numpy.flatnonzero(~(close | (ours == theirs) | (numpy.isnan(ours) & numpy.isnan(theirs))))


def compare(
    expectations: Sequence[Expectation], arrays: Sequence[Observed], trace: Trace, tolerance: float
) -> Iterator[str]:
    """What is wrong, as lines to show: of each array its first wrong element and the origin of that."""
    import numpy

    for expectation in expectations:
        expected = expectation.read()
        array = expectation.find(arrays, expected)
        wrong = wrong_elements(array.after, expected, tolerance)
        if not len(wrong):
            continue
        first = int(wrong[0])
        index = [int(at) for at in numpy.unravel_index(first, expected.shape)]
        element = f"{array.name}[{', '.join(map(str, index))}]"
        ours, theirs = array.after.reshape(-1)[first], expected.reshape(-1)[first]
        yield f"{element} is {ours}, and {theirs} was expected; {len(wrong):,} of {expected.size:,} elements are wrong"
        yield "where it comes from:"
        address = trace.address(array.name) + first * array.after.itemsize
        yield from (f"    {line}" for line in str(trace.origin(address, size=array.after.itemsize)).splitlines())

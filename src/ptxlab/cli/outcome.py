"""What came of a run, shown: what the kernel printed, the arrays it changed, what it cost, what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.arguments import Argument, spell_shape
from ptxlab.cli.files import write_file
from ptxlab.cli.findings import show_findings
from ptxlab.report import Format, render

if TYPE_CHECKING:
    from numpy import ndarray

    from ptxlab.emulate.launch import Result
    from ptxlab.ir import Function

FIRST = 8  # values of an array that are shown
ALIKE = 3  # findings that say the same: a barrier that is missing is a race at each line that reads behind it


@dataclass(frozen=True)
class Run:
    """A run that is over: its arguments before and after, what it gave, and how it was asked for."""

    kernel: Function
    arguments: Sequence[Argument]
    before: Sequence[Any]
    after: Sequence[Any]
    result: Result
    seed: int
    runs: int
    how: dict[str, Any]

    def show(self, format: Format, profile: bool, name: str) -> None:
        """Print it in the format that is asked for."""
        if format == "json":
            click.echo(json.dumps(finite(self.as_object()), indent=2))
            return
        if format == "full":
            click.echo(self.result.output, nl=False)
            if self.result.output and not self.result.output.endswith("\n"):
                click.echo()
            for line in self.lines(profile):
                click.echo(line)
            if self.result.diagnostics:
                click.echo()
        show_findings(self.result.diagnostics, name, format, alike=ALIKE)

    def lines(self, profile: bool) -> Iterator[str]:
        """For people: the arrays that changed, what it took, the lines that cost most."""
        changes = list(self.changes())
        if not changes and any(not isinstance(value, bytes) for value in self.after):
            yield "no array was changed"
        for change in changes:
            shape = f"{change['type']}{spell_shape(change['shape'])}"
            yield f"{change['name']}: {shape}, {change['changed']:,} of {change['elements']:,} elements changed"
            more = " ..." if change["elements"] > FIRST else ""
            yield f"    {' '.join(map(spell_number, change['first']))}{more}"
            yield f"    {spell_range(change)}"
        if profile:
            from ptxlab.cli.profile import profile_lines

            yield from profile_lines(self.kernel, self.result.counters)
        times = f", the last of {self.runs} runs," if self.runs > 1 else ""
        count = self.result.counters.get("instructions")  # a GPU does not count them
        seconds = self.result.seconds
        work = f"{seconds:.6f} s on the GPU"
        if count is not None:
            work = f"{count:,} instruction{'s' * (count != 1)} in {seconds:.3f} s"
        grid, block = (" × ".join(f"{extent:,}" for extent in self.how[name]) for name in ("grid", "block"))
        blocks = len(self.how["blocks"]) if self.how["blocks"] is not None else None
        some = f"{blocks:,} of {grid}" if blocks is not None else grid
        yield (
            f"`{self.kernel.name}` ran{times} on {some} block{'s' * (some != '1')} of {block} "
            f"thread{'s' * (block != '1')}: {work}"
        )

    def changes(self) -> Iterator[dict[str, Any]]:
        """Each array that the kernel changed."""
        for parameter, argument, before, after in zip(
            self.kernel.parameters, self.arguments, self.before, self.after, strict=True
        ):
            if isinstance(after, bytes):
                continue
            changed = count_changed(before, after)
            if changed:
                yield {
                    "name": parameter.name,
                    "type": argument.type,
                    "shape": list(after.shape),
                    "elements": int(after.size),
                    "changed": changed,
                    **summarise(after),
                }

    def as_object(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "kernel": self.kernel.name,
            "seed": self.seed,
            "runs": self.runs,
            "seconds": self.result.seconds,
            "output": self.result.output,
            "arguments": list(self.changes()),
            "counters": self.result.counters,
            "diagnostics": json.loads(render(self.result.diagnostics, "json")),
        }

    def save(self, directory: Path) -> None:
        """Write every array, as the kernel left it, to a file of its own."""
        from io import BytesIO

        import numpy

        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise click.UsageError(f"`{directory}` can't be made: {(problem.strerror or '').lower()}") from None
        for parameter, array in zip(self.kernel.parameters, self.after, strict=True):
            if not isinstance(array, bytes):
                data = BytesIO()
                numpy.save(data, array)
                write_file(directory / f"{parameter.name}.npy", data.getvalue())


def finite(value: Any) -> Any:
    """The value with infinities and NaNs as text, since JSON has no word for them."""
    match value:
        case dict():
            return {key: finite(part) for key, part in value.items()}
        case list():
            return [finite(part) for part in value]
        case float() if not isfinite(value):
            return str(value)
    return value


def count_changed(before: ndarray[Any, Any], after: ndarray[Any, Any]) -> int:
    """Elements whose bits changed; a NaN that is the same is none of them."""
    import numpy

    if not after.size:
        return 0
    bits = numpy.dtype(f"u{after.itemsize}")
    return int(numpy.count_nonzero(before.view(bits) != after.view(bits)))


def summarise(array: ndarray[Any, Any]) -> dict[str, Any]:
    """The first values, the least and the greatest, and how many are no numbers."""
    import numpy

    exact = array if array.dtype.kind in "iuf" else array.astype(numpy.float32)
    numbers = exact[~numpy.isnan(exact)] if exact.dtype.kind == "f" else exact
    return {
        "first": exact.reshape(-1)[:FIRST].tolist(),
        "minimum": numbers.min().item() if numbers.size else None,
        "maximum": numbers.max().item() if numbers.size else None,
        "nans": int(exact.size - numbers.size),
    }


def spell_number(number: float | int) -> str:
    """Six digits of a float, all of an integer.

    >>> spell_number(0.1 + 0.2)
    '0.3'
    """
    return str(number) if isinstance(number, int) else f"{number:.6g}"


def spell_range(change: dict[str, Any]) -> str:
    """`from -1 to 1, 3 of them NaN`"""
    if change["nans"] == change["elements"]:
        return "all of them NaN"
    nans = f", {change['nans']:,} of them NaN" if change["nans"] else ""
    return f"from {spell_number(change['minimum'])} to {spell_number(change['maximum'])}{nans}"

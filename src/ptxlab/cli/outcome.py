"""What came of a run, shown: what the kernel printed, the arrays it changed, what it cost, what was found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.composed_arguments import Again
from ptxlab.cli.files import write_file
from ptxlab.cli.findings import show_findings
from ptxlab.cli.plain_arguments import Argument, spell_shape, type_of
from ptxlab.report import Diagnostic, Format, render
from ptxlab.report.terminal import printable_lines
from ptxlab.values import Json, dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ptxlab.device.result import Result
    from ptxlab.ir import Function, Module

FIRST = 8  # values of an array that are shown
ALIKE = 3  # findings that say the same: a missing barrier is a race at each line that reads after it


@dataclass(frozen=True)
class Observed:
    """An array, or a variable of the module, before a run and after it."""

    name: str
    type: str
    before: NDArray[Any]
    after: NDArray[Any]

    @property
    def changed(self) -> int:
        """Elements whose bits changed; a NaN that is the same is not one of them."""
        import numpy

        if not self.after.size:
            return 0
        bits = numpy.dtype(f"u{self.after.itemsize}")
        return int(numpy.count_nonzero(self.before.view(bits) != self.after.view(bits)))

    def as_object(self) -> dict[str, object]:
        """What to show of it."""
        return {
            "name": self.name,
            "type": self.type,
            "shape": list(self.after.shape),
            "elements": int(self.after.size),
            "changed": self.changed,
            **summarise(self.after),
        }


def copy_arrays(value: object) -> Any:
    """An argument with arrays of its own."""
    from dataclasses import replace

    from ptxlab.device.structures import map_leaves
    from ptxlab.device.tensor_maps import TensorMap

    def copy(leaf: Any) -> Any:
        if isinstance(leaf, TensorMap):
            return replace(leaf, array=leaf.array.copy())
        return leaf.copy() if hasattr(leaf, "ctypes") else leaf

    return map_leaves(copy, value)


def watched_arguments(
    kernel: Function, arguments: Sequence[Argument], before: Sequence[object], after: Sequence[object]
) -> list[Observed]:
    """The arrays among the arguments of a kernel, each once; one in a structure is named by its offset."""
    from ptxlab.device.structures import leaves

    found = []
    for number, (argument, *values) in enumerate(zip(arguments, before, after, strict=True)):
        names = _names(kernel, number, values[1])
        for name, part, *states in zip(names, argument.parts, *map(leaves, values), strict=True):
            arrays = [getattr(leaf, "array", leaf) for leaf in states]
            if hasattr(arrays[0], "ctypes") and not isinstance(part, Again):
                found.append(Observed(name, part.type, *arrays))
    return found


def _names(kernel: Function, number: int, value: object) -> list[str]:
    """What each leaf of an argument is called: by the parameter, and the offset in it."""
    from ptxlab.device.parameter_fields import fields_of
    from ptxlab.device.placing import place
    from ptxlab.device.structures import is_container

    parameter, module = kernel.parameters[number], kernel.module
    assert module is not None
    if not is_container(value):
        return [parameter.title]
    placed = place(parameter, fields_of(module, kernel)[number], value)
    return [f"{parameter.title}+{one.field.offset}" for one in placed]


def watched_variables(module: Module, settings: dict[str, Argument], before: dict[str, NDArray[Any]]) -> list[Observed]:
    """The variables that a kernel may have written; those that were set have the type that was said."""
    from ptxlab.variables import written

    types = {variable.name: variable.type.name for variable in module.variables}
    found = []
    for name, after in written(module).items():
        held, type = before[name], types[name]
        if name in settings and settings[name].type != "bytes":
            type = settings[name].type
            held, after = (array.reshape(-1).view(type_of(type)) for array in (held, after))
        found.append(Observed(name, type, held, after))
    return found


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over: its arrays and variables before and after, what it gave, and how it was asked for."""

    kernel: Function
    arrays: Sequence[Observed]
    variables: Sequence[Observed]
    result: Result
    findings: Sequence[Diagnostic]  # what the check of the program warned of, then those of the run
    seed: int
    grid: Sequence[int]
    block: Sequence[int]
    blocks: int | None  # that were asked for, of the grid

    def show(self, format: Format, profile: bool, name: str, report: bool = False) -> None:
        """Print it in the format that is asked for."""
        if format == "json":
            click.echo(json.dumps(finite(self.as_object()), indent=2))
            return
        if format == "full":
            # A terminal acts on control characters; a file or a pipe gets what the kernel printed.
            output = self.result.output
            click.echo(printable_lines(output) if sys.stdout.isatty() else output, nl=False)
            if self.result.output and not self.result.output.endswith("\n"):
                click.echo()
            for line in self.lines(profile, report):
                click.echo(line)
            if self.findings:
                click.echo()
        show_findings(self.findings, name, format, alike=ALIKE)

    def lines(self, profile: bool, report: bool) -> Iterator[str]:
        """For people: the arrays that changed, what it took, the lines that cost most."""
        changes = self.changes(self.arrays)
        if self.arrays and not changes:
            yield "no array was changed"
        for change in [*changes, *self.changes(self.variables)]:
            shape = f"{change['type']}{spell_shape(change['shape']) if change['shape'] else ''}"
            yield f"{change['name']}: {shape}, {change['changed']:,} of {change['elements']:,} elements changed"
            more = " ..." if change["elements"] > FIRST else ""
            yield f"    {' '.join(map(spell_number, change['first']))}{more}"
            yield f"    {spell_range(change)}"
        if profile:
            from ptxlab.cli.profile import profile_lines

            yield from profile_lines(self.kernel, self.result.counters)
        coverage = self.result.coverage
        times = f", with seed {self.seed}," if len(coverage.schedules) > 1 else ""
        count = self.result.counters.get("instructions")  # a GPU does not count them
        seconds = self.result.seconds
        work = f"{seconds:.6f} s on the GPU"
        if count is not None:
            work = f"{count:,} instruction{'s' * (count != 1)} in {seconds:.3f} s"
        grid, block = (" × ".join(f"{extent:,}" for extent in extents) for extents in (self.grid, self.block))
        some = f"{self.blocks:,} of {grid}" if self.blocks is not None else grid
        is_over = not any(one.code in ("interrupted", "timeout") for one in self.result.diagnostics)
        did = "ran" if is_over else "was stopped"
        yield (
            f"`{self.kernel.title}` {did}{times} on {some} block{'s' * (some != '1')} of {block} "
            f"thread{'s' * (block != '1')}: {work}"
        )
        if len(coverage.schedules) > 1:
            yield str(coverage)
        for difference in self.result.differences:
            yield f"results differ between seeds: {difference}"
        if self.result.differences:
            yield f"they depend on {' and '.join(map(str, self.result.depends_on.causes))}"
        if report and self.result.fidelity is not None:
            yield f"fidelity: {self.result.fidelity}"

    def changes(self, observed: Sequence[Observed]) -> list[Json]:
        """What to show of those that the kernel changed."""
        return [one.as_object() for one in observed if one.changed]

    def as_object(self) -> dict[str, object]:
        """All of it, for programs."""
        return {
            "kernel": self.kernel.name,
            "title": self.kernel.title,
            "seed": self.seed,
            "runs": max(len(self.result.coverage.schedules), 1),
            "coverage": self.result.coverage.as_object(),
            "depends_on": self.result.depends_on.as_object(),
            "seconds": self.result.seconds,
            "output": self.result.output,
            "arguments": self.changes(self.arrays),
            "variables": self.changes(self.variables),
            "counters": self.result.counters,
            "fidelity": None if self.result.fidelity is None else self.result.fidelity.as_object(),
            "diagnostics": json.loads(render(self.findings, "json")),
        }

    def save(self, directory: Path) -> None:
        """Write every array and every variable that changed, as the kernel left it, to a file of its own."""
        from io import BytesIO

        import numpy

        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise click.UsageError(f"`{directory}` can't be made: {(problem.strerror or '').lower()}") from None
        for observed in (*(variable for variable in self.variables if variable.changed), *self.arrays):
            data = BytesIO()
            numpy.save(data, observed.after)
            write_file(directory / f"{observed.name}.npy", data.getvalue())


def finite(value: object) -> Any:
    """The value with infinities and NaNs as text, since JSON has no word for them."""
    match value:
        case dict():
            return {key: finite(part) for key, part in value.items()}
        case list():
            return [finite(part) for part in value]
        case float() if not isfinite(value):
            return str(value)
    return value


def summarise(array: NDArray[Any]) -> dict[str, object]:
    """The first values, the least and the greatest, and how many are NaNs."""
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


def spell_range(change: Json) -> str:
    """`from -1 to 1, 3 of them NaN`"""
    if change["nans"] == change["elements"]:
        return "all of them NaN"
    nans = f", {change['nans']:,} of them NaN" if change["nans"] else ""
    return f"from {spell_number(change['minimum'])} to {spell_number(change['maximum'])}{nans}"

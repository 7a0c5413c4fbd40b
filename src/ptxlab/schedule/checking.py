"""Whether a kernel computes what the algorithm means: on the emulator beside NumPy, and for all values by `equal`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.equal import Verdict, equal
from ptxlab.measure.data import Host
from ptxlab.schedule.launching import arguments_of, launch_of
from ptxlab.schedule.reference import compute
from ptxlab.schedule.state import refuse_here
from ptxlab.schedule.statements import Algorithm, Applied, Expression, Let, Name, Statement, loads
from ptxlab.schedule.tree import BYTES

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule

ACCEPTED = ("same-bits", "same-function", "near")  # verdicts of `equal` on a kernel and the plain one
TOLERANCE = 1e-4  # of the largest element of an output
EIGHT = 2e-3  # where tensor cores multiply elements of 8 bits: their sums have about 13 bits then
HALF = 2e-2  # where it, or what tensor cores multiply in registers, is rounded to 16 bits


def check_numbers(schedule: Schedule, sizes: Mapping[str, int], seed: int) -> None:
    """Refuse a kernel whose outputs are others than those of the algorithm."""
    arguments = arguments_of(schedule.algorithm, sizes, Host(seed))
    names = schedule.algorithm.parameters
    for name, value in zip(names, arguments, strict=True):
        if name in schedule.algorithm.outputs and not _is_read(schedule.algorithm, name):
            value.fill(np.nan)
    expected = compute(schedule.algorithm, sizes, dict(zip(names, arguments, strict=True)))
    launch_of(schedule, arguments).run(device="cpu", seed=seed)
    arrays = schedule.algorithm.arrays
    eight = any(BYTES[arrays[array].element] == 1 for array in schedule.state.operands)
    for name, wanted in expected.items():
        found = np.asarray(arguments[names.index(name)], np.float64)
        half = arrays[name].element != "f32" or any(one.weight for one in schedule.state.tensors)
        largest = float(np.max(np.abs(wanted), initial=1.0, where=np.isfinite(wanted)))
        room = (HALF if half else EIGHT if eight else TOLERANCE) * largest
        bad = ~np.isclose(found, wanted, rtol=0.0, atol=room, equal_nan=True)
        if bad.any():
            place = tuple(int(n) for n in np.argwhere(bad)[0])
            _refuse_wrong(schedule, f"`{name}{list(place)}` is {found[place]:g}, expected {wanted[place]:g}", sizes)


def check_function(schedule: Schedule, plain: Schedule, sizes: Mapping[str, int]) -> Verdict:
    """What `equal` says of the kernel and a plain one; refuse what it does not accept."""
    arguments = arguments_of(schedule.algorithm, sizes, Host())
    outputs = schedule.algorithm.outputs
    found = equal(launch_of(schedule, arguments), launch_of(plain, arguments), assume_paths=True, outputs=outputs)
    if found.level not in ACCEPTED:
        _refuse_wrong(schedule, f"it is not the algorithm: {found}", sizes)
    return found


def _refuse_wrong(schedule: Schedule, what: str, sizes: Mapping[str, int]) -> None:
    text = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    refuse_here("wrong-schedule", f"{schedule!r} is wrong for {text}: {what}")


def _is_read(algorithm: Algorithm, name: str) -> bool:
    return any(load.array == name for one in algorithm.statements for load in loads(one))


def plain_algorithm(algorithm: Algorithm) -> Algorithm:
    """The algorithm as one thread computes it: without numbers for each iteration of a sum, and with sums innermost."""
    reduced = algorithm.reduced
    lets = {s.name: s.value for s in algorithm.statements if isinstance(s, Let) and reduced & set(s.axes)}
    statements = [_inlined(one, lets) for one in algorithm.statements if getattr(one, "name", "") not in lets]
    axes = {axis: algorithm.axes[axis] for axis in sorted(algorithm.axes, key=lambda axis: axis in reduced)}
    return replace(algorithm, statements=tuple(statements), axes=axes)


def _inlined(one: Statement, lets: Mapping[str, Expression]) -> Statement:
    def of(value: Expression) -> Expression:
        match value:
            case Name(name) if name in lets:
                return of(lets[name])
            case Applied(name, operands):
                return Applied(name, tuple(map(of, operands)))
        return value

    changed: dict[str, Any] = {"value": of(one.value)}
    if (condition := getattr(one, "condition", None)) is not None:
        changed["condition"] = of(condition)
    return replace(one, **changed)

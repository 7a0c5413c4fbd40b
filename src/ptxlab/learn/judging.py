"""Whether a kernel does its task: it runs on the emulator at every size, and the first thing wrong is said in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.learn.needs import Need
from ptxlab.learn.task import Case, Size, Task
from ptxlab.report import Diagnostic, KernelError, PtxError
from ptxlab.verify.values import compare, is_same, spell

if TYPE_CHECKING:
    from ptxlab.device.result import Result
    from ptxlab.ir import Function, Module

_SHOWN = ("grid", "block", "blocks")  # of a size: the extents say it
SECONDS = 30.0  # that compiling and running a launch may take: a kernel that does not end is a mistake, too


@dataclass(frozen=True)
class ExerciseVerdict:
    """What came of it: right, or the first problem."""

    code: str
    """`right`, the code of a finding, or `no-kernel`, `wrong-values`, `changed-input`, `unmet-need`."""
    said: tuple[str, ...] = ()
    """What is missing, a paragraph each."""
    diagnostics: tuple[Diagnostic, ...] = ()
    launches: int = 0
    """How many launches were right."""
    size: int | None = field(default=None, repr=False)
    """The number of the size that went wrong."""

    @property
    def is_right(self) -> bool:
        """Whether nothing is missing."""
        return self.code == "right"


def judge(
    module: Module, task: Task, needs: Sequence[Need] = (), advice: Mapping[str, str] | None = None
) -> ExerciseVerdict:  # fmt: skip
    """Run the kernel of a task at all its sizes, each with a schedule of its own; `advice` is by the code of a finding.

    What is needed beside right values is judged at the last size.
    """
    kernel = kernel_of(module, task)
    if isinstance(kernel, ExerciseVerdict):
        return kernel
    for number in range(len(task.sizes)):
        is_last = number == len(task.sizes) - 1
        found = _try(kernel, task, number, needs if is_last else (), advice or {})
        if found is not None:
            return found
    return ExerciseVerdict("right", launches=len(task.sizes))


def kernel_of(module: Module, task: Task) -> Function | ExerciseVerdict:
    """The kernel that is meant: the one of that name, or the only one."""
    entries = list(module.entries)
    if task.kernel not in entries and len(entries) != 1:
        there = f"it has {', '.join(f'`{name}`' for name in entries)}" if entries else "it has no kernel"
        return ExerciseVerdict("no-kernel", (f"the file needs a kernel `.visible .entry {task.kernel}(...)`; {there}",))
    kernel: Function = module[task.kernel if task.kernel in entries else entries[0]]
    wanted = task.case(0).arguments
    if len(kernel.parameters) != len(wanted):
        names = ", ".join(f"`{name}`" for name in wanted)
        count = len(kernel.parameters)
        problem = f"`{kernel.name}` has {count} parameters, and is launched with {len(wanted)} arguments: {names}"
        return ExerciseVerdict("no-kernel", (problem,))
    return kernel


def run(kernel: Function, case: Case, seed: int, **how: Any) -> Result:
    """Launch it on the emulator with all detectors; arrays of the case are changed."""
    given = list(case.arguments.values())
    return kernel.launch(case.grid, case.block, given, shared=case.shared, cluster=case.cluster, device="cpu",
                         seed=seed, on_error="collect", timeout=SECONDS, **how)  # fmt: skip


def _try(
    kernel: Function, task: Task, number: int, needs: Sequence[Need], advice: Mapping[str, str]
) -> ExerciseVerdict | None:  # fmt: skip
    """The first problem at a size, if there is one."""
    case, before = task.case(number), task.case(number)
    where = f"launched {spell_size(task.sizes[number], case)}:"
    try:
        result = run(kernel, case, seed=number, profile=bool(needs))
        found, warnings = result.diagnostics, result.warnings
    except (KernelError, PtxError) as wrong:  # what is wrong before anything runs
        found, warnings = wrong.diagnostics, []
    if found:
        code = found[0].code
        return ExerciseVerdict(code, (where, *_of(advice, code)), tuple(found[:1]), number, number)
    for code, said in _wrong_values(case, before):
        more = () if len(said) > 1 else _of(advice, code)
        return ExerciseVerdict(code, (where, *said, *more), tuple(warnings), number, number)
    unmet = [need.otherwise(result.counters) for need in needs if not need.holds(result.counters)]
    if unmet:
        return ExerciseVerdict("unmet-need", ("the values are right.", *unmet), (), number + 1, number)
    if warnings:
        code = warnings[0].code
        may = "the values are right, but on another run or GPU they may not be:"
        return ExerciseVerdict(code, (may, *_of(advice, code)), tuple(warnings[:1]), number + 1, number)
    return None


def _of(advice: Mapping[str, str], code: str) -> tuple[str, ...]:
    return (advice[code],) if code in advice else ()


def _wrong_values(case: Case, before: Case) -> Iterator[tuple[str, list[str]]]:
    """What the arguments hold after a launch and are not to hold."""
    for name, wanted in before.expected.items():
        found = compare(case.held(name), before.held(name), wanted, case.tolerance)
        if found is not None:
            yield "wrong-values", [spell(name, found), *_recognized(case, before)]
    for name, value in before.arguments.items():
        if name not in (*case.expected, *case.scratch) and isinstance(value, np.ndarray):
            found = compare(case.arguments[name], value, value, 0.0)
            if found is not None:
                yield "changed-input", [f"`{name}` is only to be read, and has changed: {spell(name, found)}"]


def _recognized(case: Case, before: Case) -> list[str]:
    """What to say of a mistake that gives exactly these values; those from before may be arrays of the case itself."""
    return [
        text
        for text, values in before.mistakes.items()
        if all(is_same(case.held(name), wrong, case.tolerance) for name, wrong in values.items())
    ][:1]


def spell_size(size: Size, case: Case) -> str:
    """A size in words: `with n = 100, in 2 blocks of 64 threads`."""
    grid, block = (_extent(extent) for extent in (case.grid, case.block))
    values = ", ".join(f"{name} = {value}" for name, value in size.items() if name not in _SHOWN)
    return f"{f'with {values}, ' if values else ''}in {grid} block{'s' * (grid != '1')} of {block} threads"


def _extent(extent: int | Sequence[int]) -> str:
    return " × ".join(map(str, extent)) if isinstance(extent, Sequence) else str(extent)

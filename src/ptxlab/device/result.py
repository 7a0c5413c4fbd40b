"""What came of a launch, on whichever device."""

from __future__ import annotations

import shutil
import weakref
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab.device.coverage import Coverage
from ptxlab.device.dependence import Cause, Dependence, ScheduleDifference, dependence_of
from ptxlab.device.fidelity import Fidelity
from ptxlab.device.regions import ReadBytes
from ptxlab.report import Diagnostic, summary
from ptxlab.services import service
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptxlab.timelines import Timeline
    from ptxlab.trace import Trace, Traces


class Recording:
    """The file of a recorded launch, or the folder of several that ran at the same time.

    A temporary one is removed when the last result that has it is.
    """

    def __init__(self, path: Path, is_temporary: bool) -> None:
        self.path = path
        if is_temporary and path.is_dir():
            weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        elif is_temporary:
            weakref.finalize(self, path.unlink, missing_ok=True)


@dataclass
class Result:
    """What a launch gave: findings, what the kernel printed, what was counted, and how long it took."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    output: str = ""
    counters: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    coverage: Coverage = field(default_factory=lambda: Coverage(()))
    """The schedules by which it ran, and which bugs they find with what probability."""

    fidelity: Fidelity | None = None
    """Which instructions were measured on hardware, which are modelled; None where the kernel has not run."""

    differences: tuple[ScheduleDifference, ...] = ()
    """The arrays that other seeds leave with other values."""

    otherwise: Cause | None = field(default=None, repr=False)
    """What that is put down to, where no finding explains it."""

    warnings: list[Diagnostic] = field(default_factory=list, compare=False)
    """What `ptxlab.check` warns of in the module of the kernel, whether or not the run has shown it."""

    copied: int = field(default=0, compare=False)
    """Bytes of arrays on a GPU that were copied here for a launch on the emulator, and back."""

    recording: Recording | None = field(default=None, repr=False)
    """The file of the launch, if it was recorded."""

    finished: tuple[bool, ...] = field(default=(), compare=False)
    """Of grids that ran together: which of them have ended."""

    reads: tuple[ReadBytes, ...] = field(default=(), repr=False, compare=False)
    """What the grids have read of the memory that was watched."""

    _trace: Any = field(default=None, repr=False, compare=False)
    read_timeline: Callable[[], Timeline] | None = field(default=None, repr=False, compare=False)
    """What reads the timeline of the launch, if it has recorded one."""

    @property
    def depends_on(self) -> Dependence:
        """What the results depend on beside the arguments, as far as findings and schedules (`seeds=`) show."""
        return dependence_of(len(self.coverage.schedules), self.diagnostics, self.differences, self.otherwise)

    @cached_property
    def timeline(self) -> Timeline | None:
        """What warps did when; None if the launch was not to record it."""
        return None if self.read_timeline is None else self.read_timeline()

    @property
    def trace(self) -> Trace | None:
        """The launch as it was recorded; None if it was not, or is one of several: see `traces`."""
        if self.recording is None or self.recording.path.is_dir():
            return None
        if self._trace is None:  # layers above: what reads a recording also draws and compares it
            self._trace = service("trace").Trace.open(self.recording.path)
        found: Trace = self._trace
        return found

    @cached_property
    def traces(self) -> Traces | None:
        """The launches that ran at the same time, as they were recorded; None if they were not."""
        if self.recording is None or not self.recording.path.is_dir():
            return None
        found: Traces = service("trace").Traces.open(self.recording.path)
        return found

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import findings_html, folded_html, table_html, text_html, title_html

        title = f"{summary(self.diagnostics, 'the run')}{self._warned()}; {self._work()}"
        parts = [title_html(title), findings_html([*self.diagnostics, *self.warnings])]
        if self.output:
            parts.append(text_html(self.output))
        if self.fidelity is not None:
            parts.append(folded_html("fidelity", text_html(str(self.fidelity))))
        counted = [[name, f"{value:,}"] for name, value in self.counters.items() if isinstance(value, int)]
        if counted:
            parts.append(folded_html("counters", table_html(counted, has_header=False)))
        return "".join(parts)

    def _warned(self) -> str:
        count = len(self.warnings)
        return f", {count} warning{'s' * (count != 1)} of `ptxlab.check`" if count else ""

    def _work(self) -> str:
        count = self.counters.get("instructions")
        copied = f", {self.copied:,} bytes copied from the GPU and back" if self.copied else ""
        return f"{'' if count is None else f'{count:,} instructions in '}{self.seconds:.3g} s{copied}"

    def __repr__(self) -> str:
        printed = f", {len(self.output):,} characters printed" if self.output else ""
        return f"<result: {summary(self.diagnostics, 'the run')}{self._warned()}, {self._work()}{printed}>"

"""What came of a launch, on whichever device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ptxlab.device.coverage import Coverage
from ptxlab.device.fidelity import Fidelity
from ptxlab.report import Diagnostic, summary


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

    def __repr__(self) -> str:
        count = self.counters.get("instructions")
        work = f"{self.seconds:.3g} s" if count is None else f"{count:,} instructions in {self.seconds:.3g} s"
        printed = f", {len(self.output):,} characters printed" if self.output else ""
        return f"<result: {summary(self.diagnostics, 'the run')}, {work}{printed}>"

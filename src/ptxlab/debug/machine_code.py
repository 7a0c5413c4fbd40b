"""The SASS of a recorded kernel beside its PTX, where ptxas and nvdisasm are installed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptxlab.report import PtxError
from ptxlab.toolchain import side_by_side

_LOCATION = re.compile(r"^[ \t]*\.loc\b[^;\n{}]*$", re.MULTILINE)


@dataclass(frozen=True)
class MachineCode:
    """The SASS of each line of the PTX; `absence` is the reason why there is none."""

    lines: dict[int, tuple[str, ...]]
    target: str = ""
    absence: str = ""

    @classmethod
    def of(cls, text: str) -> MachineCode:
        """What a PTX text becomes, by its own lines: those of `.loc` are left out."""
        try:
            listing = side_by_side(_LOCATION.sub("", text))
        except (PtxError, OSError) as problem:
            reason = problem.diagnostics[0].message if isinstance(problem, PtxError) else str(problem)
            return cls({}, absence=reason)
        found = {row.line: tuple(one.text for one in row.sass) for row in listing.rows if row.sass}
        return cls(found, listing.assembly.target or "")

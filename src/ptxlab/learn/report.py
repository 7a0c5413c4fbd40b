"""A verdict as it is shown: in a terminal, and in a notebook."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from ptxlab.learn.judging import ExerciseVerdict
from ptxlab.report import render


@dataclass(frozen=True, repr=False)
class Report:
    """What a check says of a solution."""

    title: str
    verdict: ExerciseVerdict

    @property
    def is_right(self) -> bool:
        """Whether nothing is missing."""
        return self.verdict.is_right

    @property
    def summary(self) -> str:
        """The first line."""
        if self.is_right:
            return f"right: {self.title} ({_launches(self.verdict.launches)}, no findings)"
        before = (
            f", after {_launches(self.verdict.launches)} that {'was' if self.verdict.launches == 1 else 'were'} right"
            if self.verdict.launches
            else ""
        )
        return f"not yet: {self.title}{before}"

    def text(self, width: int = 100, color: bool = False) -> str:
        """All of it, in lines of this width; what a finding shows of the source stays as it is."""
        where, *others = self.verdict.said or ("",)
        parts = [self.summary, where, render(self.verdict.diagnostics, "full", color).rstrip(), *others]
        return "\n\n".join(part if "\n" in part else _filled(part, width) for part in parts if part)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ptxlab.report.notebook import findings_html, title_html

        where, *others = self.verdict.said or ("",)
        said = [f"{title_html(part)}" for part in (where, *others) if part]
        return (
            title_html(self.summary) + "".join(said[:1]) + findings_html(self.verdict.diagnostics) + "".join(said[1:])
        )


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _launches(count: int) -> str:
    return f"{count} launch{'es' * (count != 1)}"

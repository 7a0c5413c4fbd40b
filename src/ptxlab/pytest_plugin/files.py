"""PTX files as tests: how pytest collects, runs and reports them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ptxlab.pytest_plugin import devices_of, seeds_of, why_no_gpu

_IS_CASE = re.compile(rb"^// *(?:run|check):", re.MULTILINE)
_HEAD = 4096  # bytes


class UnexpectedError(Exception):
    """What came of a case is not what its file says."""


def is_case(path: Path) -> bool:
    """Whether the first lines of a PTX file say how to run it, or what `ptxlab.check` finds in it."""
    with path.open("rb") as file:
        return _IS_CASE.search(file.read(_HEAD)) is not None


class PtxFile(pytest.File):
    """A case, with its other spellings."""

    def collect(self) -> Iterator[pytest.Item]:
        from ptxlab.pytest_plugin.case import Case, CaseError, cases_of

        try:
            has_results = bool(Case(self.path).results) and not Case(self.path).findings
            found = cases_of(self.path)
        except CaseError as problem:
            raise self.CollectError(f"{self.path}: {problem}") from None
        for device in devices_of(self.config):
            for case in found:
                if device == "cpu":
                    yield PtxItem.from_parent(self, name=str(case), case=case)
                elif has_results:  # only the emulator has findings
                    yield GpuItem.from_parent(self, name=f"{case}[cuda]", case=case)


class PtxItem(pytest.Item):
    """A case on the emulator."""

    def __init__(self, *, case: Any, **given: Any) -> None:
        super().__init__(**given)
        self.case = case
        self.seen: list[Any] = []  # by each seed, once it has run

    def runtest(self) -> None:
        from ptxlab.pytest_plugin.case import bless, differences

        case = self.case
        seeds = max(case.seeds, seeds_of(self.config)) if case.how else 0
        seen = self.seen = [case.launch(seed) for seed in range(seeds)]
        checked = case.check() if case.lines("check") else []
        if self.config.getoption("ptxlab_bless") and not case.spelling:
            bless(case, seen, checked)
            return
        found = differences(case, seen)
        wanted = [finding.key for finding in case.checked]
        if [finding.key for finding in checked] != wanted:
            found.append("`check` found " + (", ".join(map(str, checked)) or "nothing"))
        _expect_none(found, [run.report for run in seen])

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from ptxlab.pytest_plugin.case import CaseError

        if isinstance(excinfo.value, CaseError | UnexpectedError):
            return f"{self.path}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, self.name


class GpuItem(PtxItem):
    """A case that says what it computes, on a GPU."""

    def runtest(self) -> None:
        from ptxlab.pytest_plugin.case import differences

        if reason := why_no_gpu():
            pytest.skip(reason)
        from ptxlab.gpu import gpu

        target = self.case.module.target
        if gpu().architecture_for(target) is None:
            pytest.skip(f"{gpu().name} does not run {target}")
        run = self.case.launch(device="cuda")
        _expect_none([found for found in differences(self.case, [run]) if "says" not in found], [run.report])


def _expect_none(differences: Sequence[str], reports: Sequence[str]) -> None:
    """Fail by what differs, and show what the run reports that differs first."""
    if not differences:
        return
    seed = re.match(r"seed (\d+):", differences[0])
    report = reports[int(seed[1]) if seed else 0] if reports else ""
    lines = [f"  {one}" for one in _fold(differences)]
    raise UnexpectedError("\n".join(["not as expected", *lines, "", report]).rstrip())


def _fold(differences: Sequence[str]) -> list[str]:
    """What several seeds give alike, on one line: `seeds 0, 1, 2: found data-race 20 with 18`."""
    seeds: dict[str, list[str]] = {}
    for one in differences:
        seed, mark, what = one.partition(": ") if one.startswith("seed ") else ("", "", one)
        seeds.setdefault(what, []).extend([seed.removeprefix("seed ")] * bool(mark))
    return [
        f"seed{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {what}" if numbers else what
        for what, numbers in seeds.items()
    ]

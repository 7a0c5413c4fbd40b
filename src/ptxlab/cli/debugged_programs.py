"""A whole program under the debugger: its `main()` runs, and the launches that it makes are recorded."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptxlab.cli.compiling import source_folders
from ptxlab.cli.programs import ended_by_sigterm
from ptxlab.project import Project
from ptxlab.report import PtxError

if TYPE_CHECKING:
    from ptxlab.debug.adapter import Opened
    from ptxlab.device.record import Record
    from ptxlab.ir import Module
    from ptxlab.programs.log import Log

MOST_LAUNCHES = 1000  # that are recorded, each of which is a file


@dataclass(frozen=True)
class DebuggedProgram:
    """A `.cu` file with a `main()`: how it is built and run, and what is recorded of its launches."""

    path: Path
    target: str | None
    nvcc: str
    arguments: Sequence[str]
    entry: str | None
    seed: int
    blocks: list[tuple[int, ...]] | None
    warps: tuple[int, ...]
    limit: int
    device_debug: bool
    is_quiet: bool
    """Whether standard output is not for what the program prints."""

    @ended_by_sigterm()
    def open(self) -> Opened:
        """Build it, run it to its end, and debug what it launched."""
        from ptxlab.debug import Debugger, UnknownError
        from ptxlab.debug.adapter import Opened
        from ptxlab.debug.launches import Launch
        from ptxlab.programs.building import build
        from ptxlab.programs.program import ProgramOptions, run_program

        with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
            program = Path(folder) / self.path.stem
            build(self.path, program, self._target, [*self._options, *["-G"] * self.device_debug])
            folders = source_folders(self.path, shlex.split(self.nvcc))
            options = ProgramOptions(None, {"seed": self.seed}, folders, self.is_quiet, self._recorder())
            result = run_program([str(program), *self.arguments], options)
        if not self.is_quiet:
            click.echo()  # the program's last line may have no end
        if not result.recorded:
            named = f" of `{self.entry}`" if self.entry is not None else ""
            ended = "; ".join(f"{one.code}: {one.message}" for one in result.findings[:3])
            raise UnknownError(f"the program made no launch{named}, and ended with status {result.status}"
                               + (f": {ended}" if ended else ""))  # fmt: skip
        launches = [
            Launch(one.kernel, lambda one=one: one.result.trace, one.result.diagnostics, place)  # type: ignore[misc]
            for one, place in result.recorded
        ]
        debugger = Debugger(launches[0].open(), launches[0].findings, self._with_debug_info, launches)
        return Opened(debugger, owner=result)

    @property
    def _target(self) -> str | None:
        return self.target or Project.of(self.path).target

    @property
    def _options(self) -> list[str]:
        try:
            return [*Project.of(self.path).options, *shlex.split(self.nvcc)]
        except ValueError as problem:
            raise click.UsageError(f"`--nvcc {self.nvcc}`: {problem}") from None

    def _recorder(self) -> Callable[[str, Log], Record | None]:
        from ptxlab.device.record import Record
        from ptxlab.ir.mangled import matches

        def next_record(kernel: str, log: Log) -> Record | None:
            left = self.limit - sum(one.result.trace.steps for one in log.recorded if one.result.trace is not None)
            is_wanted = self.entry in (None, kernel) or bool(matches(self.entry or "", [kernel]))
            if left <= 0 or not is_wanted or len(log.recorded) >= MOST_LAUNCHES:
                return None
            return Record(blocks=self.blocks, warps=self.warps or None, limit=left)

        return next_record

    def _with_debug_info(self) -> Module | None:
        """The kernels compiled for their debug information alone; None where that is not there."""
        from ptxlab.programs.building import build
        from ptxlab.syntax import read, read_text

        if self.device_debug:
            return None
        with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
            path = Path(folder) / f"{self.path.stem}.ptx"
            try:
                build(self.path, path, self._target, [*self._options, "-G", "-ptx"])
                return read(read_text(path), path.name)[0]
            except PtxError:  # some code compiles with optimization only
                return None

"""What a project sets for all commands and for editors: `[tool.ptxlab]` in its pyproject.toml.

The table is of the nearest pyproject.toml at or above a file that has it. It is data: a project may be a stranger's, so
no key names a program, a file to write or a module to import. A key that is not known is an error, as is a value of a
wrong type. `docs/ci.md` describes the keys, and how options of the command line combine with them.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ptxlab.project.paths import matches
from ptxlab.project.selection import Selection, is_always_shown, is_among, is_selected, wrong_word
from ptxlab.report import Diagnostic
from ptxlab.report.nearest import nearest
from ptxlab.values import dataclass

__all__ = ["FailOn", "Project", "ProjectError", "Selection", "wrong_word"]

FailOn = Literal["error", "warning"]
NOTHING = Selection()
KEYS = ("target", "cuda-options", "select", "ignore", "per-file-ignores", "exclude", "fail-on")


class ProjectError(ValueError):
    """A pyproject.toml that cannot be read, or whose `[tool.ptxlab]` is wrong."""


@dataclass(frozen=True, slots=True)
class Project:
    """The table of a project; where there is none, nothing is set."""

    folder: Path | None = None
    """Where its pyproject.toml is: paths and patterns are relative to it."""
    target: str | None = None
    """What CUDA C++ is compiled for."""
    options: tuple[str, ...] = ()
    """Options of its compiler, `cuda-options`, as after `--`."""
    selection: Selection = NOTHING
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of files, and the codes that are ignored in them."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that are not checked."""
    fail_on: FailOn | None = None
    """The least level that fails a command."""

    @classmethod
    def of(cls, path: Path) -> Project:
        """That of the project a file belongs to; nothing where there is none. Raises `ProjectError`."""
        found = (_read(folder / "pyproject.toml") for folder in path.absolute().parents)
        return next((project for project in found if project is not None), cls())

    def is_excluded(self, path: Path, more: Sequence[str] = ()) -> bool:
        """Whether a file is not to be checked; `more` are patterns relative to the current folder."""
        own = self.folder is not None and matches(path, self.exclude, self.folder)
        return own or matches(path, more, Path.cwd())

    def wants(self, found: Diagnostic, path: Path, more: Selection = NOTHING) -> bool:
        """Whether a finding in a file is wanted, after what `more` selects and ignores in turn."""
        if is_always_shown(found.code):
            return True
        return is_selected(found.code, (self.selection, more)) and not self._is_ignored_in(found, path)

    def _is_ignored_in(self, found: Diagnostic, path: Path) -> bool:
        if self.folder is None or not self.per_file:
            return False
        files = [path] if found.file is None else [path, Path(found.file)]
        return any(
            is_among(found.code, codes) and any(matches(file, [pattern], self.folder) for file in files)
            for pattern, codes in self.per_file
        )


def _read(file: Path) -> Project | None:
    """The table in a file; None where there is no such file, or no table in it."""
    try:
        status = file.stat()
    except OSError:
        return None
    return _read_version(file, status.st_mtime_ns, status.st_size) if stat.S_ISREG(status.st_mode) else None


@lru_cache
def _read_version(file: Path, changed: int, size: int) -> Project | None:
    import tomllib

    try:
        table = tomllib.loads(file.read_text("utf-8")).get("tool", {})
        table = table.get("ptxlab") if isinstance(table, dict) else None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as problem:
        raise ProjectError(f"`{file}` can't be read: {problem}") from None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ProjectError(f"`{file}`: `tool.ptxlab` is not a table")
    return _Table(file, table).project()


@dataclass(frozen=True)
class _Table:
    """`[tool.ptxlab]` as it is written."""

    file: Path
    values: dict[str, Any]

    def project(self) -> Project:
        """What it sets; any other key or type is refused."""
        for key in self.values:
            if key not in KEYS:
                close = nearest(key, KEYS)
                meant = f"did you mean `{close}`?" if close else f"it may have {', '.join(f'`{one}`' for one in KEYS)}"
                raise self.wrong(f"there is no key `{key}`; {meant}")
        select = self.codes("select") if "select" in self.values else None
        return Project(
            self.file.parent,
            self.target(),
            self.compiler_options(),
            Selection(select, self.codes("ignore")),
            self.per_file(),
            self.texts("exclude", "build/*"),
            self.fail_on(),
        )

    def wrong(self, what: str) -> ProjectError:
        return ProjectError(f"`{self.file}`: `[tool.ptxlab]`: {what}")

    def texts(self, key: str, example: str, value: object = None) -> tuple[str, ...]:
        """A list of texts."""
        found = self.values.get(key, []) if value is None else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.wrong(f'`{key}` is a list of texts: ["{example}"]')
        return tuple(found)

    def codes(self, key: str, value: object = None) -> tuple[str, ...]:
        """A list of codes of diagnostics, or patterns of them."""
        found = self.texts(key, "unreachable-code", value)
        wrong = wrong_word(found, is_ignored=key != "select")
        if wrong is not None:
            raise self.wrong(f"`{key}`: {wrong}")
        return found

    def target(self) -> str | None:
        from ptxlab.isa.targets import TARGETS

        target = self.values.get("target")
        if target is None or (isinstance(target, str) and target in TARGETS):
            return target
        close = nearest(str(target), TARGETS)
        raise self.wrong(f"there is no target `{target}`" + (f"; did you mean `{close}`?" if close else ""))

    def compiler_options(self) -> tuple[str, ...]:
        if "cuda-options" not in self.values:
            return ()
        from ptxlab.project.compiler_options import rooted, unsafe_option  # few projects set any

        options = self.texts("cuda-options", "-Iinclude")
        unsafe = unsafe_option(options)
        if unsafe is not None:
            raise self.wrong(
                f"`cuda-options` may not have `{unsafe}`, which could run a program or write a file: only options of "
                "headers, macros, the language and arithmetic; give others after `--`"
            )
        return tuple(rooted(options, self.file.parent))

    def per_file(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        table = self.values.get("per-file-ignores", {})
        if not isinstance(table, dict):
            raise self.wrong('`per-file-ignores` is a table: {"generated/*" = ["unreachable-code"]}')
        return tuple((pattern, self.codes("per-file-ignores", codes)) for pattern, codes in table.items())

    def fail_on(self) -> FailOn | None:
        level = self.values.get("fail-on")
        if level is not None and level not in get_args(FailOn):
            raise self.wrong(f'`fail-on` is "error" or "warning", not {level!r}')
        return cast("FailOn | None", level)

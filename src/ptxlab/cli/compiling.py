"""CUDA C++ on the command line: its compiler's options, after `--` and in pyproject.toml, and the PTX it becomes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.report import Diagnostic, PtxError

if TYPE_CHECKING:
    from ptxlab.toolchain import Compilation

CUDA = ".cu"
_GIVEN = "ptxlab.options"  # in the context: the words after `--`
_TO_PTXAS = ("-Xptxas", "--ptxas-options")
# The options that a project may set: nvcc has others that name programs to run and files to write.
_PROJECT_OPTION = re.compile(
    r"-[DUI].+|-O[0-3]|-[wG]|-(isystem|include).+|"
    r"--?(include-path|system-include|pre-include|define-macro|undefine-macro)=.+|"
    r"--?(std|ftz|fmad|prec-div|prec-sqrt|maxrregcount|diag-suppress|diag-warn|diag-error)=[\w+,]+|"
    r"--?(use_fast_math|lineinfo|generate-line-info|device-debug|restrict|(expt-)?extended-lambda|"
    r"expt-relaxed-constexpr|default-device|disable-warnings)"
)
_TAKES_VALUE = re.compile(
    r"-[DUI]|-isystem|-include|--?(include-path|system-include|pre-include|define-macro|undefine-macro)"
)
_FOLDERS = ("-I", "--include-path", "-isystem", "--system-include", "-include", "--pre-include")


class Compiling(click.Command):
    """A command that takes options of a compiler after `--`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Keep the words after `--` from the command's own options and arguments."""
        own, given = args, []
        if "--" in args:
            own, given = args[: args.index("--")], args[args.index("--") + 1 :]
        context.meta[_GIVEN] = tuple(given)
        return super().parse_args(context, own)

    def collect_usage_pieces(self, context: click.Context) -> list[str]:
        """Show that there is something after `--`."""
        return [*super().collect_usage_pieces(context), "[-- COMPILER OPTIONS]"]


def options_given() -> tuple[str, ...]:
    """The words after `--` of this command."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_GIVEN, ()) if context is not None else ()


def refuse_options(files: Sequence[Path]) -> None:
    """Refuse words after `--` where nothing is compiled."""
    if options_given() and not any(file.suffix == CUDA for file in files):
        raise click.UsageError("what follows `--` goes to the compiler of CUDA C++, and there is no `.cu` file")


def ptxas_options(path: Path) -> list[str]:
    """The options for ptxas after `--`: all of them for PTX, those after `-Xptxas` for CUDA C++."""
    given = options_given()
    if path.suffix != CUDA:
        return list(given)
    return [word for flag, word in pairwise(given) if flag in _TO_PTXAS]


def has_debug_info() -> bool:
    """Whether the words after `--` of this command ask for debug information."""
    from ptxlab.toolchain.compilation import DEBUG_INFO

    return not DEBUG_INFO.isdisjoint(options_given())


def compile_file(path: Path, target: str | None, entry: str | None, *, debug_info: bool = False) -> Compilation:
    """The PTX of a `.cu` file; raises `PtxError` where it is wrong.

    `entry` with template arguments is made of its template; with `debug_info` it is not optimized, and names variables.
    """
    from ptxlab.ir.mangled import ELLIPSIS
    from ptxlab.toolchain import compile_cuda
    from ptxlab.toolchain.compilation import DEFAULT_TARGET

    project = Project.of(path)
    options = ["-G" if debug_info else "-lineinfo", *project.options, *_without_ptxas(options_given())]
    wanted = [entry] if entry is not None and entry.endswith(">") and ELLIPSIS not in entry else []
    compilation = compile_cuda(path, target or project.target or DEFAULT_TARGET, options, instantiate=wanted)
    if compilation.text is None:
        raise PtxError(compilation.diagnostics)
    return compilation


def show_compiler_warnings(found: Sequence[Diagnostic], name: str) -> None:
    """Print what the compiler of CUDA C++ warned of, beside an output that is not about findings."""
    from ptxlab.cli.findings import show_findings

    if found:
        show_findings(found, name, to_stderr=True)


def _without_ptxas(options: Sequence[str]) -> list[str]:
    """The options that are the compiler's own."""
    return [
        word
        for at, word in enumerate(options)
        if word not in _TO_PTXAS and (at == 0 or options[at - 1] not in _TO_PTXAS)
    ]


@dataclass(frozen=True, slots=True)
class Project:
    """What `[tool.ptxlab]` of the nearest pyproject.toml says: `target`, and `cuda-options` as after `--`."""

    target: str | None = None
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: Path) -> Project:
        """That of the project a file belongs to; nothing where there is none."""
        for folder in path.absolute().parents:
            file = folder / "pyproject.toml"
            if file.is_file():
                return cls._read(file)
        return cls()

    @classmethod
    def _read(cls, file: Path) -> Project:
        try:
            table = tomllib.loads(file.read_text("utf-8")).get("tool", {}).get("ptxlab", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
            raise click.UsageError(f"`{file}` can't be read: {problem}") from None
        return cls(*_checked(file, table))


def _checked(file: Path, table: dict[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """The values of the table; any other key or type is refused."""
    from ptxlab.isa.targets import TARGETS

    unknown = [key for key in table if key not in ("target", "cuda-options")]
    if unknown:
        raise click.UsageError(
            f"`{file}`: `[tool.ptxlab]` has no `{unknown[0]}`; it may have `target` and `cuda-options`"
        )
    target, options = table.get("target"), table.get("cuda-options", [])
    if target is not None and target not in TARGETS:
        raise click.UsageError(f"`{file}`: `target` of `[tool.ptxlab]` is `{target}`, which is not a target")
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise click.UsageError(f'`{file}`: `cuda-options` of `[tool.ptxlab]` is a list of texts: ["-Iinclude"]')
    unsafe = _unsafe_option(options)
    if unsafe is not None:
        raise click.UsageError(
            f"`{file}`: `cuda-options` of `[tool.ptxlab]` may not have `{unsafe}`, which could run a program or write "
            "a file: only options of headers, macros, the language and arithmetic; give others after `--`"
        )
    return target, tuple(_rooted(options, file.parent))


def _unsafe_option(options: Sequence[str]) -> str | None:
    """The first option that a project of someone else must not set."""
    from ptxlab.toolchain.nvcc import SHELL_CHARACTERS

    takes_value = False
    for option in options:
        is_known = takes_value if option[:1] not in ("-", "@") else bool(_PROJECT_OPTION.fullmatch(option))
        takes_value = not takes_value and bool(_TAKES_VALUE.fullmatch(option))
        if SHELL_CHARACTERS & {*option} or not (is_known or takes_value):
            return option
    return options[-1] if takes_value else None


def _rooted(options: Sequence[str], folder: Path) -> list[str]:
    """The options with folders of headers relative to the project, not to where the command runs."""
    found = []
    for at, option in enumerate(options):
        flag = next((flag for flag in _FOLDERS if option.startswith(flag) and option != flag), None)
        if flag is not None:
            given = option[len(flag) :].removeprefix("=")
            found.append(f"{flag}{'=' if flag.startswith('--') else ''}{folder / given}")
        elif at and options[at - 1] in _FOLDERS:
            found.append(str(folder / option))
        else:
            found.append(option)
    return found

"""What decides whether a command fails: which findings are wanted, and from which level on.

All commands that report findings share this. The configuration of the project (`ptxlab.project`) is applied first, then
the command line: `--select` starts anew, `--ignore` takes away more, `--fail-on` replaces. `per-file-ignores` hold
whatever is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

import click

from ptxlab.cli.compiling import project_of
from ptxlab.cli.findings import is_misuse
from ptxlab.project import FailOn, Selection, wrong_word
from ptxlab.report import Diagnostic
from ptxlab.values import dataclass

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
_GIVEN = "ptxlab.gate"  # in the context: what the options of the command line say


@dataclass(frozen=True, slots=True)
class Gate:
    """What the options of the command line say."""

    selection: Selection
    fail_on: FailOn | None
    exit_zero: bool

    @classmethod
    def given(cls) -> Gate:
        """That of this command."""
        context = click.get_current_context(silent=True)
        given: dict[str, Any] = context.meta.get(_GIVEN, {}) if context is not None else {}
        selection = Selection(given.get("select"), given.get("ignore") or ())
        return cls(selection, given.get("fail_on"), bool(given.get("exit_zero")))


def _keep(context: click.Context, parameter: click.Parameter, value: tuple[str, ...] | None) -> None:
    """Put the value of an option where `Gate.given` finds it."""
    context.meta.setdefault(_GIVEN, {})[parameter.name] = value


def _keep_codes(context: click.Context, parameter: click.Parameter, value: Sequence[str]) -> None:
    """The same for codes with commas between them."""
    codes = tuple(word.strip() for text in value for word in text.split(",") if word.strip())
    wrong = wrong_word(codes, is_ignored=parameter.name == "ignore") if codes else None
    if wrong is not None:
        raise click.BadParameter(wrong)
    _keep(context, parameter, codes if value else None)


_OPTIONS = [
    click.option("--select", metavar="CODE,...", multiple=True, expose_value=False, callback=_keep_codes,
                 help="Report only these findings; missing-* means several."),
    click.option("--ignore", metavar="CODE,...", multiple=True, expose_value=False, callback=_keep_codes,
                 help="Leave out these findings."),
    click.option("--fail-on", type=click.Choice(get_args(FailOn)), expose_value=False, callback=_keep,
                 help="The least level that makes the command exit 1; warning unless the project says otherwise."),
    click.option("--exit-zero", is_flag=True, expose_value=False, callback=_keep,
                 help="Exit 0 whatever is found."),
]  # fmt: skip


def gate_options(command: Decorated) -> Decorated:
    """The options of a command that say which findings are wanted, and which of them make it fail."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def wanted(found: Sequence[Diagnostic], path: Path) -> list[Diagnostic]:
    """The findings in a file that the project and the command line leave."""
    project, gate = project_of(path), Gate.given()
    return [one for one in found if project.wants(one, path, gate.selection)]


def failing(found: Sequence[Diagnostic], path: Path) -> list[Diagnostic]:
    """The findings that make the command fail; `status_of` says how."""
    gate = Gate.given()
    fail_on = gate.fail_on or project_of(path).fail_on
    levels = ("error",) if fail_on == "error" else ("error", "warning")
    return [one for one in found if (one.level in levels and not gate.exit_zero) or is_misuse(one)]


def exclusions() -> tuple[str, ...]:
    """The patterns after `--exclude`."""
    context = click.get_current_context(silent=True)
    given = context.meta.get(_GIVEN, {}).get("exclude") if context is not None else None
    return cast("tuple[str, ...]", given or ())


exclude_option = click.option(
    "--exclude", metavar="PATTERN", multiple=True, expose_value=False, callback=_keep,
    help="Leave out files that match, such as 'build/*'; may be repeated.",
)  # fmt: skip

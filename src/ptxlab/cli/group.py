"""The subcommands, each loaded from its own file when it is needed."""

from __future__ import annotations

from importlib import import_module

import click

from ptxlab import __version__
from ptxlab.report.nearest import nearest
from ptxlab.report.reader import command_line

# In the order of the help: first what one does every day.
SUBCOMMANDS = (
    "check",
    "run",
    "equal",
    "verify",
    "grade",
    "prove",
    "exec",
    "debug",
    "lab",
    "format",
    "ptx",
    "assemble",
    "sass",
    "python",
    "draw",
    "litmus",
    "bench",
    "devices",
    "explain",
    "docs",
    "learn",
    "lsp",
    "mcp",
    "tour",
)


UNREAD = 141  # as of a program that SIGPIPE ended, like 130 of one that SIGINT did


class LazyGroup(click.Group):
    """A group whose subcommands are the modules beside this one; each defines `command`."""

    def list_commands(self, context: click.Context) -> list[str]:
        """All subcommands, in the order of the help."""
        return list(SUBCOMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The subcommand of that name, loaded now."""
        if name not in SUBCOMMANDS:
            close = nearest(name, SUBCOMMANDS)
            meant = f"; did you mean `{close}`?" if close else ""
            raise click.UsageError(f"there is no command `{name}`{meant}", context)
        command: click.Command = import_module(f"ptxlab.cli.{name}").command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ptxlab %(version)s")
@click.pass_context
def ptxlab(context: click.Context) -> None:
    """The workbench for people who write NVIDIA PTX.

    \b
    Example:
      ptxlab check kernel.ptx
    """
    context.with_resource(command_line())


def run() -> int:
    """Run the command line and return its exit status."""
    try:
        status: int | None = ptxlab.main(prog_name="ptxlab", standalone_mode=False)
    except click.ClickException as usage:
        usage.show()
        return usage.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:  # what click makes of a pipe whose reader has left
        return UNREAD
    return status or 0

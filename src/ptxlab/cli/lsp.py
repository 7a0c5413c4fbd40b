"""`ptxlab lsp`: the language server, for editors."""

from __future__ import annotations

import sys

import click

from ptxlab.cli.files import target_option


@click.command("lsp", short_help="Serve editors: the Language Server Protocol.")
@target_option
@click.option("--stdio", is_flag=True, help="Standard input and output, which is the only way; editors say it.")
def command(target: str | None, stdio: bool) -> None:
    """Serve the Language Server Protocol on standard input and output: PTX in an editor.

    The editor shows what `ptxlab check` reports while you type, with its quick fixes; the forms of an instruction and
    the declaration of a name under the cursor; which modifiers, registers and names may come next; where a name is
    declared and used. It renames registers, labels and variables, and formats the file. An editor starts this command;
    docs/editors.md has the lines for several.

    \b
    Example:
      ptxlab lsp
    """
    from ptxlab.editor.server import serve

    serve(sys.stdin.buffer, sys.stdout.buffer, target)

"""`ptxlab lsp`: the language server, for editors."""

from __future__ import annotations

import sys

import click

from ptxlab.cli.files import target_option


@click.command("lsp", short_help="Serve editors: the Language Server Protocol.")
@target_option
@click.pass_context
@click.option("--stdio", is_flag=True, help="Standard input and output, which is the only way; editors say it.")
@click.option("--python", is_flag=True, help="Execute .py files that are opened or saved, to check their kernels.")
def command(context: click.Context, target: str | None, stdio: bool, python: bool) -> None:
    """Serve the Language Server Protocol on standard input and output: PTX in an editor.

    The editor shows what `ptxlab check` reports while you type, with its quick fixes; the forms of an instruction and
    the declaration of a name under the cursor; which modifiers, registers and names may come next; where a name is
    declared and used. It renames registers, labels and variables, and formats the file. CUDA C++ is compiled, and what
    is wrong with the PTX in it is shown on its lines; with --python, so are kernels in Python. An editor starts this
    command; docs/editors.md has the lines for several. Needs `pip install 'ptxlab[editor]'`.

    \b
    Example:
      ptxlab lsp
    """
    try:
        from ptxlab.editor.server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        said = "error[missing-package]: `pygls` is not installed; run `pip install 'ptxlab[editor]'`"
        click.echo(said, err=True)
        context.exit(2)
    serve(sys.stdin.buffer, sys.stdout.buffer, target, python)

"""`ptxlab mcp`: the Model Context Protocol server, for agents."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("mcp", short_help="Serve agents: the Model Context Protocol.")
@click.pass_context
@click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".",
              help="Files are read below this folder only.  [default: the current one]")  # fmt: skip
@click.option("--timeout", metavar="SECONDS", default=60.0, show_default=True, type=click.FloatRange(0, min_open=True),
              help="What a tool may take.")  # fmt: skip
@click.option("--memory", metavar="GB", default=8.0, show_default=True, type=click.FloatRange(0.5),
              help="Memory that a tool may use, where the system can limit it.")  # fmt: skip
def command(context: click.Context, root: Path, timeout: float, memory: float) -> None:
    """Serve the Model Context Protocol on standard input and output: ptxlab as the tools of an agent.

    The tools check, run, debug, estimate and explain PTX and CUDA C++, show its SASS, draw layouts and search the
    guides. Each answer has 2,000 characters at most and says how to get the rest. A tool runs in a process of its own
    and is given no files but those below --root. Needs `pip install 'ptxlab[mcp]'`; see docs/agents.md.

    \b
    Example:
      ptxlab mcp --root .
    """
    try:
        from ptxlab.cli.agent_tools import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("mcp", "anyio", "pydantic"):
            raise
        click.echo("error[missing-package]: `mcp` is not installed; run `pip install 'ptxlab[mcp]'`", err=True)
        context.exit(2)
    serve(root.resolve(), timeout, memory)

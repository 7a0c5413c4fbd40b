"""`ptxlab docs`: the guides, in the terminal."""

from __future__ import annotations

import click

from ptxlab.report.nearest import nearest

MOST = 12  # sections that a search shows


@click.command("docs", short_help="Read the guides, or search them.")
@click.argument("topic", required=False)
@click.option("--search", "words", metavar="WORDS", help="List the sections that have all these words.")
def command(topic: str | None, words: str | None) -> None:
    """Show a guide as it was written, list all of them, or search them.

    \b
    Examples:
      ptxlab docs
      ptxlab docs memory-model
      ptxlab docs --search "proxy fence"
    """
    from ptxlab import guides

    known = guides.guides()
    if not known:
        raise click.ClickException("the guides were not installed with ptxlab")
    if words is not None:
        found = guides.search(words)
        for section in found[:MOST]:
            click.echo(f"{section.guide}: {section.heading}")
        if len(found) > MOST:
            click.echo(f"and {len(found) - MOST} more sections")
        if not found:
            raise click.ClickException(f"no section has all of `{words}`")
    elif topic is None:
        width = max(map(len, known))
        for name, file in known.items():
            click.echo(f"{name:{width}}  {guides.title_of(file)}")
    elif topic in known:
        click.echo(known[topic].read_text(encoding="utf-8"))
    else:
        close = nearest(topic, known)
        meant = f"; did you mean `{close}`?" if close else "; `ptxlab docs` lists them"
        raise click.UsageError(f"there is no guide `{topic}`{meant}")

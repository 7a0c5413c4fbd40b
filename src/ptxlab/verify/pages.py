"""A verdict as a page: text for a terminal, Markdown, HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ptxlab.verify.verdict import FAILED, OPEN, PARTS, PASSED, Finding, Part, Verdict

_MARKS = {PASSED: "ok", FAILED: "FAILED", OPEN: "open"}


def text(verdict: Verdict) -> str:
    """For a terminal."""
    lines = [f"{verdict.submission}: {verdict.status} for {verdict.task}", ""]
    for part in verdict.parts:
        lines.append(f"  {_MARKS[part.status]:7} {part.name:10} {_said(part)}".rstrip())
        for one in part.findings:
            lines += [f"          {line}" for line in _finding_lines(one)]
    lines += ["", verdict.log_line]
    return "\n".join(lines)


def _said(part: Part) -> str:
    said = {PASSED: PARTS[part.name], FAILED: "", OPEN: "not decided: see what failed"}
    return "; ".join(part.notes) or said[part.status]


def _finding_lines(finding: Finding) -> Iterator[str]:
    where = ""
    if finding.sizes:
        where = " (" + ", ".join(f"{name} = {value}" for name, value in finding.sizes.items()) + ")"
    yield f"{finding.code}: {finding.message}{where}"
    yield from (f"    {line}" for line in finding.witness.splitlines())
    if finding.replay:
        yield f"    replay: {finding.replay}"


def markdown(verdict: Verdict) -> str:
    """For a pull request, or a page."""
    lines = [f"# {verdict.submission}: {verdict.status}", "", f"Task: {verdict.task}.", ""]
    lines += ["| part | | what it says |", "|---|---|---|"]
    lines += [f"| {part.name} | {_MARKS[part.status]} | {_cell(_said(part))} |" for part in verdict.parts]
    for part in verdict.parts:
        for one in part.findings:
            first, *rest = _finding_lines(one)
            lines += [
                "",
                f"**{part.name}**: {first}",
                *(["", "```", *(line[4:] for line in rest), "```"] if rest else []),
            ]
    return "\n".join([*lines, "", f"`{verdict.log_line}`", ""])


def _cell(said: str) -> str:
    return said.replace("|", "\\|").replace("\n", " ")


_STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ccc;
vertical-align:top}pre{background:#f4f4f4;color:#111;padding:.7rem;overflow-x:auto}.failed{color:#b00020}.open{color:#7a5b00}
.passed{color:#0b6b2e}"""


def html(verdict: Verdict) -> str:
    """A page of its own, without scripts."""
    marks = {part.name: f'<td class="{part.status}">{_MARKS[part.status]}</td>' for part in verdict.parts}
    rows = [f"<tr><td>{part.name}</td>{marks[part.name]}<td>{escape(_said(part))}</td></tr>" for part in verdict.parts]
    found = []
    for part in verdict.parts:
        for one in part.findings:
            first, *rest = _finding_lines(one)
            shown = escape("\n".join(line[4:] for line in rest))
            found.append(f"<h2>{part.name}: {escape(one.code)}</h2><p>{escape(first)}</p>"
                         + (f"<pre>{shown}</pre>" if shown else ""))  # fmt: skip
    title = escape(f"{verdict.submission}: {verdict.status}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>Task: {escape(verdict.task)}</p><table>{''.join(rows)}</table>{''.join(found)}"
        f"<p><code>{escape(verdict.log_line)}</code></p></html>"
    )

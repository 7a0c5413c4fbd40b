"""The page as one file: its modules, its style, and, where it is to be mailed, what it shows."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources

_START = 'import { start } from "lab/main.js"; start();'
_PAIR = (
    "<style>body{margin:0;display:flex;height:100vh;font:14px sans-serif;color-scheme:light dark}"
    "section{flex:1 1 0;min-width:0;display:flex;flex-direction:column}h1{font-size:inherit;margin:.4em .8em}"
    "iframe{flex:1;border:0;border-top:1px solid #8888}section+section{border-left:1px solid #8888}</style>"
)
_MODULES = resources.files("ptxlab.lab") / "page"


@cache
def _parts() -> tuple[str, str, dict[str, str]]:
    """The document, the style, and the modules by name."""
    modules = {one.name: one.read_text("utf-8") for one in _MODULES.iterdir() if one.name.endswith(".js")}
    return (_MODULES / "page.html").read_text("utf-8"), (_MODULES / "style.css").read_text("utf-8"), modules


def page(embedded: dict[str, object] | None = None, *, asks_parent: bool = False, of_node: bool = False) -> str:
    """The page; with `embedded`, it asks nothing of a server, with `asks_parent`, it asks the page that frames it.

    With `of_node`, it shows several launches that ran at the same time.

    Modules import each other as `lab/name.js`; the import map says that these are here.
    """
    document, style, modules = _parts()
    imports = {f"lab/{name}": _as_url(text) for name, text in sorted(modules.items())}
    imported = json.dumps({"imports": imports})
    parts = {
        "<!--policy-->": _policy(imported, _START),
        "<!--style-->": f"<style>\n{style}</style>",
        "<!--imports-->": f'<script type="importmap">{imported}</script>',
        "<!--start-->": f'<script type="module">{_START}</script>',
        "<!--data-->": "" if embedded is None else _as_script(embedded),
    }
    if asks_parent:
        document = document.replace("<html ", '<html data-asks="parent" ', 1)
    if of_node:
        document = document.replace("<html ", '<html data-node="yes" ', 1)
    for mark, text in parts.items():
        assert mark in document
        document = document.replace(mark, text)
    return document


def pair(titles: Sequence[str], pages: Sequence[str] = ()) -> str:
    """A page with two others beside each other: those that a server has at `0/` and `1/`, or these."""
    frames = [f'srcdoc="{escape(one)}"' for one in pages] or ['src="0/"', 'src="1/"']
    parts = [
        f'<section><h1>{escape(title)}</h1><iframe title="{escape(title)}" {frame}></iframe></section>'
        for title, frame in zip(titles, frames, strict=True)
    ]
    # What frames contain has policies of its own, which a policy here would restrict further.
    head = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>ptxlab lab</title>{_PAIR}'
    return f"{head}{''.join(parts)}</html>\n"


def _policy(*scripts: str) -> str:
    """Only these scripts run, with the modules that they import, and nothing is asked of another host."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes} data:; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )
    return f'<meta http-equiv="Content-Security-Policy" content="{policy}">'


def _as_url(text: str) -> str:
    return "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()


def _as_script(embedded: dict[str, object]) -> str:
    text = json.dumps(embedded).replace("<", "\\u003c")
    return f'<script type="application/json" id="embedded">{text}</script>'

"""A page of documentation as a test: its examples run in order, and its errors are the ones that it shows.

`<!-- needs torch -->` before an example says what it needs: a package, or a GPU. Without it, it is left out.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ptxlab import gpu
from ptxlab.report import PtxError

DOCS = Path(__file__).parents[1] / "docs"


def has(needed: str) -> bool:
    """Whether there is a GPU, or all packages of `torch and triton`."""
    return gpu.absence() is None if needed == "a GPU" else all(map(find_spec, needed.lower().split(" and ")))


def run_page(name: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Run the examples of a page; the names that they made, and the texts that the page shows."""
    text = (DOCS / name).read_text(encoding="utf-8")
    found = re.findall(r"(?:^<!-- needs (.*?) -->\n)?^```(\S[^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    blocks = [(kind, example) for needed, kind, example in found if not needed or has(needed)]
    names: dict[str, Any] = {"__name__": "page"}
    shown = [text for kind, text in blocks if kind == "text"]
    for number, (kind, example) in enumerate(blocks):
        if not kind.startswith("python"):
            continue
        file = folder / f"block_{number}.py"
        file.write_text(example)
        code = compile(example, str(file), "exec", dont_inherit=True)
        if kind == "python error":
            with pytest.raises(PtxError) as raised:
                exec(code, names)
            assert str(raised.value).replace(str(file), name) + "\n" in shown
        else:
            exec(code, names)
    return names, shown

"""The Python files that a module was compiled from, so that findings are shown on their lines."""

from __future__ import annotations

from pathlib import Path

from ptxlab import ir
from ptxlab.report import Source
from ptxlab.syntax import parse


def module_from(text: str, name: str, left_out: Path | None = None) -> ir.Module:
    """A module of PTX whose `.file` directives name files here; those below `left_out` are not the user's."""
    module = parse(text, name=name)
    for item in module.items:
        if not isinstance(item, ir.File):
            continue
        path = Path(item.name)
        if (left_out is not None and left_out in path.parents) or not path.is_file():
            continue
        module.origins[item.name] = Source(_short(path), path.read_text(encoding="utf-8", errors="replace"))
    return module


def _short(path: Path) -> str:
    """A path from here, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)

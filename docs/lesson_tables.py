"""Tables of the lessons, made of what was measured and is kept in `evidence`; the lessons' test keeps the pages so.

A page has a table between `<!-- measured: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

EVIDENCE = Path(__file__).parent.parent / "evidence"
TABLES: dict[str, Callable[[], str]] = {}


def table(function: Callable[[], str]) -> Callable[[], str]:
    """What a page may name."""
    TABLES[function.__name__] = function
    return function


def kept(name: str) -> Any:
    """A file of the evidence."""
    return json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))


def source(found: Any) -> str:
    """Where and when something was measured, as a line below its table."""
    machine = found["machine"]
    return (
        f"\n{machine['gpu']}, driver {machine['driver']}, ptxas {machine['ptxas']}, {found['date']}, by "
        f"`{found['command']}`.\n"
    )


@table
def core_matrices() -> str:
    """Tiles whose core matrices are any bytes apart, read with three kinds of descriptors."""
    found = kept("core_matrices")
    tiles = found["tiles"]
    lines = ["| the descriptor has | products that are right | bits as the emulator has them |", "|---|---:|---:|"]
    names = {
        "the same": "the strides that the tile was written with",
        "exchanged": "leading and stride offset exchanged",
        "another stride offset": "another stride offset",
    }
    for key, name in names.items():
        right, same = (sum(tile[key][what] for tile in tiles) for what in ("is right", "as emulated"))
        lines.append(f"| {name} | {right} of {len(tiles)} | {same} of {len(tiles)} |")
    return "\n".join([*lines, source(found)])

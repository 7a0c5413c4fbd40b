"""Targets as ptxas knows them: which it makes code for, and which one a text asks for."""

from __future__ import annotations

import re
import tempfile
from functools import lru_cache
from pathlib import Path

from ptxlab.toolchain.header import stated_target
from ptxlab.toolchain.process import run
from ptxlab.toolchain.tools import Tool

_HELP_SECONDS = 60.0


def architecture_for(tool: Tool, target: str | None, text: str) -> str | None:
    """The `-arch` for a text: None, the tool's default, for a target too old or unknown, so that ptxas judges it."""
    if target:
        return target
    stated = (stated_target(text) or "").replace("sm_101", "sm_110")  # renamed in PTX 9.0
    return stated if stated in architectures(tool) else None


@lru_cache(maxsize=64)
def architectures(tool: Tool) -> frozenset[str]:
    """The targets this ptxas makes code for."""
    with tempfile.TemporaryDirectory(prefix="ptxlab-") as folder:
        outcome = run([tool.path, "--help"], Path(folder), _HELP_SECONDS)
    return frozenset(re.findall(r"'(sm_\w+)'", outcome.text))

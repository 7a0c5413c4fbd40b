"""What tests need that a machine may lack, and the reason they give when they skip for it."""

import pytest

from ptxlab.isa.targets import Version
from ptxlab.report import PtxError
from ptxlab.toolchain import Tool, find, find_assembler
from ptxlab.toolchain.tools import newest_version


def is_there(name: str) -> bool:
    """Whether a tool can be had."""
    try:
        find(name)
    except PtxError:
        return False
    return True


needs_ptxas = pytest.mark.skipif(not is_there("ptxas"), reason="no ptxas: install `ptxlab[toolchain]`")


def assembler_for(version: Version) -> Tool:
    """A ptxas that reads this version of PTX; skips the test where there is none."""
    tool = find_assembler(version)
    if (newest_version(tool) or version) < version:
        pytest.skip(f"no ptxas for PTX {version[0]}.{version[1]}: install `ptxlab[toolchain]`")
    return tool

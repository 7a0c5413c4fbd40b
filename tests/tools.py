"""What tests need that a machine may lack, and the reason they give when they skip for it."""

import pytest

from ptxlab.report import PtxError
from ptxlab.toolchain import find


def is_there(name: str) -> bool:
    """Whether a tool can be had."""
    try:
        find(name)
    except PtxError:
        return False
    return True


needs_ptxas = pytest.mark.skipif(not is_there("ptxas"), reason="no ptxas: install `ptxlab[toolchain]`")

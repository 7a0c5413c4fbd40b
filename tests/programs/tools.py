"""What tests of programs need."""

import shutil
import sys

import pytest

from ptxlab.toolchain.tools import can_find

needs_compilers = pytest.mark.skipif(
    sys.platform != "linux" or not can_find("nvcc") or shutil.which("g++") is None or shutil.which("cc") is None,
    reason="needs nvcc, g++ and cc, on Linux",
)

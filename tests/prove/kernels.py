"""A kernel of a few lines to prove, and a mark for tests that need the solver."""

from __future__ import annotations

from typing import Any

import pytest

import ptxlab
from ptxlab.prove.theories import solver

needs_solver = pytest.mark.skipif(
    solver.z3 is None, reason="the solver is not installed: `pip install 'ptxlab[prove]'`"
)
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def kernel(body: str, parameters: str = ".param .u64 x, .param .u32 n", directive: str = ".reqntid 64") -> Any:
    registers = ".reg .pred %p<8>; .reg .b32 %r<16>, %t, %n; .reg .b64 %d<8>, %x; .reg .f32 %f<4>;\n"
    registers += ".shared .align 16 .b32 tile[64];\n"
    read = "ld.param.u64 %x, [x];\nld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\n"
    text = f"{HEADER}.visible .entry k({parameters}) {directive} {{\n{registers}{read}{body}\nret;\n}}\n"
    return ptxlab.parse(text, "k.ptx")["k"]

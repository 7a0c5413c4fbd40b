"""Kernels that people write, run on a GPU, against NumPy."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.gpu import gpu
from tests.emulate.kernels import CASES, Case, execute

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel(case: Case) -> None:
    target = ptxlab.load(case.path).target
    if gpu().architecture_for(target) is None:
        pytest.skip(f"this GPU is not an `{target}`")
    fails = case.make(np.random.default_rng(0)).fails
    if not fails:
        execute(case, device="cuda")
        return
    # A kernel that stops with an error takes the context of its process with it.
    code = f"""
import ptxlab
from tests.emulate.kernels import CASES, execute
case = next(case for case in CASES if case.name == {case.name!r})
try:
    execute(case, device="cuda")
except ptxlab.KernelError as problem:
    print(problem)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert fails in shown.stdout, shown.stderr[-2000:]

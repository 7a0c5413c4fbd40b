"""Functions under `torch.compile` before any other call, whichever of torch and ptxlab was imported first."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

FIRST = """
from ptxlab.kernels import rms_norm, softmax
"""
PROGRAM = """
import torch

x = torch.randn(2, 40)
compiled = torch.compile(lambda x: softmax(2 * x) + 1, fullgraph=True, backend="aot_eager")
assert torch.allclose(compiled(x), torch.softmax(2 * x, -1) + 1)
given = x.clone().requires_grad_()
loss = torch.compile(lambda x: rms_norm(x, weight).square().sum(), fullgraph=True, backend="aot_eager")
weight = torch.ones(40)
(found,) = torch.autograd.grad(loss(given), given)
(wanted,) = torch.autograd.grad(torch.nn.functional.rms_norm(given, (40,), weight, 1e-6).square().sum(), given)
assert torch.allclose(found, wanted, atol=1e-5)
print("right")
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
@pytest.mark.parametrize("order", ["import torch" + FIRST, FIRST])
def test_the_first_call_is_compiled(order: str) -> None:
    done = subprocess.run([sys.executable, "-c", order + PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr[-2000:]

"""Problems of KernelBench and GPU MODE; both need torch, and submissions Triton."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlab import verify
from ptxlab.verify import load_task

pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = [pytest.mark.bulk, pytest.mark.filterwarnings("default")]

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return torch.relu(x) * self.weight

rows = 1024
columns = 4096

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return [columns]
"""
NEW = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x, w, y, n, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.maximum(tl.load(x + at, mask=at < n), 0.0)
    tl.store(y + at, value * tl.load(w + at % columns, mask=at < n), mask=at < {bound})

class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        x = x.cuda()
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, self.weight, y, x.numel(), x.shape[1], BLOCK=128)
        return {result}
"""
INLINE = """
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = '''
#include <torch/extension.h>
__global__ void kernel(const float* x, const float* w, float* y, int n, int columns) {{
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < {bound}) y[at] = fmaxf(x[at], 0.0f) * w[at % columns];
}}
torch::Tensor scaled(torch::Tensor x, torch::Tensor w) {{
    TORCH_CHECK(x.is_contiguous(), "x");
    auto y = torch::empty_like(x);
    const int threads = 128;
    kernel<<<(x.numel() + threads - 1) / threads, threads>>>(x.data_ptr<float>(), w.data_ptr<float>(),
                                                           y.data_ptr<float>(), x.numel(), x.size(1));
    return y;
}}
'''
scaled = load_inline("scaled", "torch::Tensor scaled(torch::Tensor x, torch::Tensor w);", SOURCE, ["scaled"])

class ModelNew(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return scaled.scaled(x.cuda(), self.weight)
"""
SUBMISSIONS = {
    "inline": (INLINE.format(bound="n"), None),
    "inline tail": (INLINE.format(bound="n / 128 * 128"), "stale-memory"),
    "right": (NEW.format(bound="n", result="y"), None),
    "tail": (NEW.format(bound="n // 128 * 128", result="y"), "stale-memory"),
    "torch": (NEW.format(bound="n", result="torch.relu(x) * self.weight"), "no-kernel"),
    "alias": (NEW.format(bound="n", result="x"), "aliased-output"),
}
REFERENCE = """
import torch
from task import input_t

def generate_input(n, seed):
    torch.manual_seed(seed)
    return torch.randn(n, device="cuda"), torch.empty(n, device="cuda")

def ref_kernel(data):
    x, y = data
    y[:] = x * 2
    return y
"""
CUSTOM = """
import torch, triton
import triton.language as tl
from task import input_t

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * {factor}, mask=at < n)

def custom_kernel(data):
    x, y = data
    kernel[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
    return y
"""


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_kernelbench(name: str, tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(MODEL)
    text, code = SUBMISSIONS[name]
    (tmp_path / "new.py").write_text(text)
    found = verify(tmp_path / "problem.py", tmp_path / "new.py", estimate=False, seed=1)
    assert found.accepted == (code is None), str(found)
    assert code is None or code in found.codes, str(found)


def test_gpu_mode(tmp_path: Path) -> None:
    (tmp_path / "problem").mkdir()
    for name, text in {
        "task.yml": 'lang: "py"\ntests:\n  - {"n": 96, "seed": 1}\n  - {"n": 160, "seed": 2}\n\nbenchmarks:\n'
        '  - {"n": 65536, "seed": 3}\n',
        "task.py": "input_t = tuple\n",
        "reference.py": REFERENCE,
    }.items():
        (tmp_path / "problem" / name).write_text(text)
    task = load_task(tmp_path / "problem")
    assert (task.sizes["n"].step, task.timed) == (32, [{"n": 65536}])
    assert [array.name for array in task.outputs] == ["out0"]
    for factor, status in (("2.0", "accepted"), ("2.1", "rejected")):
        (tmp_path / "submission.py").write_text(CUSTOM.format(factor=factor))
        found = verify(task, tmp_path / "submission.py", estimate=False, seed=1)
        assert found.status == status, str(found)

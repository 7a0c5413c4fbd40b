"""Kernels as operators of torch, and the page that teaches them with JAX and CuPy."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from ptxlab.cli.samples import SAXPY
from ptxlab.frameworks.operators import start, torch_operator
from tests.processes import run

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(?:<!-- needs ([^>]*) -->\n)?```python\n(.*?)```", PAGE, re.DOTALL)
EVERYWHERE = "\n".join(code for needs, code in BLOCKS if not needs)
ON_GPU = "\n".join(code for needs, code in BLOCKS if needs in ("", "a GPU"))
PACKAGES = {"Triton": "triton", "Triton and torch": "torch", "CuTe": "cutlass", "Numba": "numba_cuda", "JAX": "jax"}

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
on_gpu = pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")


class Operator:
    """As much of torch's operators as is asked for."""

    def __init__(self, name: str, function: Any, mutates_args: tuple[str, ...]) -> None:
        self.name, self.compute, self.mutates = name, function, mutates_args

    def register_fake(self, function: Any) -> None:
        self.describe = function


@pytest.fixture
def saxpy(monkeypatch: pytest.MonkeyPatch) -> Any:
    library = ModuleType("torch.library")
    library.custom_op = Operator  # type: ignore[attr-defined]
    torch = ModuleType("torch")
    torch.library = library  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.library", library)
    kernel = ptxlab.parse(SAXPY)["saxpy"]

    @torch_operator("test::saxpy", mutates=["y"])
    def saxpy(x: Any, y: Any) -> Any:
        start(kernel, 4, 256, [x, y, 2.0, len(x)])
        return np.empty_like(y)

    return saxpy


def test_an_operator_runs_on_the_emulator(saxpy: Any) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    saxpy.compute(x, y)
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert (saxpy.name, saxpy.mutates) == ("test::saxpy", ("y",))


def test_torch_that_is_missing_or_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ModuleType("torch")
    old.__version__ = "2.1.0"  # type: ignore[attr-defined]
    for there, wanted in ((None, "needs the package `torch`: pip install torch"), (old, "2.4 or later, and 2.1.0 is")):
        monkeypatch.setitem(sys.modules, "torch", there)
        with pytest.raises(ImportError, match=wanted):
            torch_operator("test::missing")(print)


def test_nothing_runs_where_only_the_result_is_described(saxpy: Any) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    assert saxpy.describe(x, y).shape == (1000,)
    np.testing.assert_array_equal(y, 1)
    saxpy.compute(x, y)
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_a_description_that_fails_leaves_launches_as_they_were(saxpy: Any) -> None:
    with pytest.raises(TypeError):
        saxpy.describe(None, np.ones(1000, np.float32))
    test_an_operator_runs_on_the_emulator(saxpy)


@needs_torch
def test_the_page_on_this_machine() -> None:
    run(EVERYWHERE.replace("dynamic=True", 'dynamic=True, backend="aot_eager"'))


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["Triton", "CuTe", "Numba", "JAX"])
def test_the_page_on_other_frameworks(subject: str, tmp_path: Path) -> None:
    wanted = [need for need in PACKAGES if need.startswith(subject) and find_spec(PACKAGES[need]) is not None]
    if subject not in wanted:
        pytest.skip(f"{PACKAGES[subject]} is not installed")
    path = tmp_path / "page.py"  # Triton and CuTe read the source of a kernel
    path.write_text("\n".join(code for need, code in BLOCKS if need in wanted))
    run(f"import runpy, warnings\nwarnings.simplefilter('ignore')\nrunpy.run_path({str(path)!r})")


@pytest.mark.gpu
@on_gpu
@pytest.mark.skipif(not all(map(find_spec, ["torch", "jax", "cupy"])), reason="needs torch, JAX and CuPy")
def test_the_page_on_a_gpu() -> None:
    run(ON_GPU)


STREAMS = """
import torch
from ptxlab.author import f32, kernel, pointer, ptx, u32
from ptxlab.frameworks.operators import start, torch_operator

@kernel
def add_one(x: pointer[f32], y: pointer[f32], n: u32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with ptx.when(i < n):
        y[i] = x[i] + 1.0

@torch_operator("test::add_one")
def plus(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    start(add_one, -(-x.numel() // 256), 256, [x, y, x.numel()])
    return y

big = torch.randn(8192, 8192, device="cuda")
plus(big)
torch.cuda.synchronize()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):  # a long product first: a launch elsewhere would read before it has ended
    found = plus(big @ big)
    other = plus(found)
stream.synchronize()
assert torch.equal(other, (big @ big) + 1 + 1)

graph = torch.cuda.CUDAGraph()
x = torch.zeros(1000, device="cuda")
with torch.cuda.graph(graph):
    y = plus(plus(x))
x += 5
graph.replay()
torch.cuda.synchronize()
assert torch.equal(y, torch.full_like(y, 7))

compiled = torch.compile(lambda x: plus(x * 2) - 1, fullgraph=True, mode="reduce-overhead")
for number in range(4):
    x = torch.full((1000,), float(number), device="cuda")
    assert torch.equal(compiled(x), 2 * x)
print("equal")
"""


@pytest.mark.gpu
@on_gpu
@needs_torch
def test_launches_are_in_line_with_what_torch_does() -> None:
    assert run(STREAMS) == "equal\n"

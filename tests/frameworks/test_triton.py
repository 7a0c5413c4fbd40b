"""Kernels of Triton and Gluon on the emulator, with the real package where it is installed."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.processes import run as run_apart

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed: pip install triton")
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")]
FILE = Path(__file__).with_name("triton_kernels.py")


@pytest.fixture
def kernels() -> Any:
    pytest.importorskip("triton", reason="Triton is not installed: pip install triton")
    from tests.frameworks import triton_kernels

    return triton_kernels


def line_of(text: str) -> int:
    return FILE.read_text().split("\n").index(text) + 1


def test_triton_is_not_imported_before_it_is_used() -> None:
    names = "ptxlab.triton.run, ptxlab.cute.run, ptxlab.from_framework"
    code = f"import sys, ptxlab\n{names}\nprint('triton' in sys.modules, 'cutlass' in sys.modules)"
    assert run_apart(code) == "False False\n"


def test_what_is_wrong_without_triton_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "triton", None)
    with pytest.raises(ImportError, match=r"`ptxlab\.triton` needs the package `triton`: pip install triton"):
        ptxlab.triton.run(None, (1,))
    with pytest.raises(ValueError, match="target='sm_70': there are sm_80"), ptxlab.triton.emulated("sm_70"):
        pass
    with pytest.raises(TypeError, match="there is no option `sead`"), ptxlab.triton.emulated(sead=1):
        pass


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
def test_a_kernel_for_each_target(kernels: Any, target: str) -> None:
    x, y, out = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32), np.zeros(1000, np.float32)
    result = ptxlab.triton.run(kernels.add, (4,), x, y, out, 1000, BLOCK=256, target=target)
    np.testing.assert_array_equal(out, x + 1)
    assert (result.diagnostics, result.fidelity is not None) == ([], True)


def test_findings_are_on_lines_of_triton(kernels: Any) -> None:
    x, out = np.ones(100, np.float32), np.zeros(128, np.float32)
    with pytest.raises(ptxlab.KernelError) as raised:
        ptxlab.triton.run(kernels.add_without_mask, 1, x, out, BLOCK=128)
    (found,) = raised.value.diagnostics
    assert (found.code, found.line) == ("out-of-bounds", line_of("    x = tl.load(x_ptr + i)"))
    assert "argument 0 (`x_ptr`)" in found.message
    result = ptxlab.triton.run(kernels.race, 2, np.zeros(1, np.int32), on_error="collect")
    assert [one.code for one in result.diagnostics] == ["data-race"]
    assert result.diagnostics[0].line == line_of("    tl.store(out_ptr, tl.program_id(0))")


def test_what_a_newer_triton_cures(kernels: Any) -> None:
    version = pytest.importorskip("triton").__version__
    a, b, out = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16), np.zeros((64, 64), np.float32)
    result = ptxlab.triton.run(kernels.matmul, 1, a, b, out, 64, DEPTH=32, on_error="collect")
    assert (out == 64).all()
    helps = {help.text for one in result.diagnostics for help in one.helps}
    is_old = tuple(map(int, version.split(".")[:2])) <= (3, 6)
    expected = f"Triton {version} leaves this fence out: upgrade to 3.9 or later, which writes it"
    assert helps == ({expected} if is_old else set())


def test_copies_of_an_element_do_not_race_unless_they_are_used(kernels: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    assert not ptxlab.triton.run(kernels.in_place, 1, x, BLOCK=64).diagnostics
    np.testing.assert_array_equal(x, 2 * np.arange(64))
    assert not ptxlab.triton.run(kernels.count_in_place, 1, count := np.zeros(1, np.int32), 5, seeds=2).diagnostics
    assert count[0] == 5
    reversed = ptxlab.triton.run(kernels.reverse_in_place, 1, x, BLOCK=64, on_error="collect")
    assert [one.code for one in reversed.diagnostics] == ["data-race"]


def test_copies_of_an_element_are_added_up_by_warps_that_store_nothing(kernels: Any) -> None:
    """Up to Triton 3.6. In 3.9 these warps store their sums over those of the others, and the race is real."""
    version = tuple(map(int, pytest.importorskip("triton").__version__.split(".")[:2]))
    if (3, 6) < version < (3, 9):
        pytest.skip("what this version of Triton stores is not known")
    x, total = np.arange(64, dtype=np.float32), np.zeros(1, np.float32)
    result = ptxlab.triton.run(kernels.sum_in_place, 1, x, total, BLOCK=64, on_error="collect")
    assert [one.code for one in result.diagnostics] == ([] if version <= (3, 6) else ["data-race"])
    assert (x[63], total[0]) == (64, 2016) or version > (3, 6)


def test_copies_of_an_element_decide_branches_around_its_store(kernels: Any) -> None:
    x, out = np.zeros(1, np.int32), np.zeros(128, np.int32)
    assert not ptxlab.triton.run(kernels.set_once, 1, x, out, seeds=3).diagnostics
    assert (x[0], out[0]) == (1, 7)
    for kernel in (kernels.set_once_and_fill, kernels.choose_and_fill, kernels.count_and_reset):
        found = ptxlab.triton.run(kernel, 1, np.zeros(1, np.int32), out, on_error="collect").diagnostics
        assert "data-race" in [one.code for one in found]


def test_what_kernels_print_and_assert(kernels: Any) -> None:
    x = np.arange(32, dtype=np.int32)
    result = ptxlab.triton.run(kernels.chatty, 1, x, 32, BLOCK=32, num_warps=1, debug=True, seed=5)
    assert result.output.count("seed: 5") == 32  # `seed` is the kernel's
    with pytest.raises(ptxlab.KernelError, match="too large"):
        ptxlab.triton.run(kernels.chatty, 1, x, 31, 5, BLOCK=32, num_warps=1, debug=True)


def test_the_first_configuration_that_fits_runs_or_all_of_them(kernels: Any) -> None:
    x = np.zeros(128, np.int32)
    ptxlab.triton.run(kernels.tuned, lambda meta: (128 // meta["BLOCK"],), x, 128)
    np.testing.assert_array_equal(x, 65)
    with ptxlab.triton.emulated(configs="all") as session:
        kernels.tuned[lambda meta: (128 // meta["BLOCK"],)](x, 128)
    assert [one.grid[0] for one in session.launches] == [2, 4, 2]
    assert not kernels.tuned.cache


@pytest.mark.filterwarnings("ignore:warmup, rep")
def test_nothing_is_timed(kernels: Any) -> None:
    """A tuner with a `run` of its own gets to the benchmark of configurations, and so does a program by itself."""
    triton = pytest.importorskip("triton")

    class Tuner(triton.runtime.autotuner.Autotuner):  # type: ignore[misc]
        def run(self, *args: Any, **named: Any) -> Any:
            self.nargs = dict(zip(self.arg_names, args, strict=False))
            times = {config: self._bench(*args, config=config, **named) for config in self.configs}
            return self.fn.run(*args, **named, **min(times, key=lambda config: times[config]).all_kwargs())

    tuned = kernels.tuned
    tuner = Tuner(tuned.fn, tuned.arg_names, tuned.configs, ["n"], None, None, warmup=1, rep=1)
    x, grid = np.zeros(128, np.int32), lambda meta: (128 // meta["BLOCK"],)
    with ptxlab.triton.emulated() as session:
        tuner[grid](x, 128)
        tuner[grid](x, 128)
        assert np.isnan(triton.testing.do_bench(lambda: tuner[grid](x, 128), warmup=1, rep=1))
        assert len(triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2, 0.8])) == 3
    assert [one.grid[0] for one in session.launches] == [2, 2, 2]
    assert (x == 65).all()


@needs_torch
def test_random_numbers_have_a_seed_and_an_offset() -> None:
    import torch

    pytest.importorskip("triton")
    if torch.cuda.is_available():
        pytest.skip("torch has the generator of a GPU")
    with ptxlab.triton.emulated():
        torch.cuda.manual_seed(5)
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        state = generator.get_state()
        seed, offset = state.view(torch.int64)
        assert (int(seed), int(offset), generator.initial_seed()) == (5, 0, 5)
        offset += 8
        generator.set_state(state)
        assert generator.get_state().view(torch.int64).tolist() == [5, 8]


def test_no_model_of_a_gpus_speed_is_asked(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("triton")

    def fastest(**given: Any) -> float:
        raise AssertionError("the model was asked")

    def fast(configs: Any, *given: Any, **named: Any) -> Any:
        return triton.runtime.driver.active.utils.get_device_properties(0)["mem_clock_rate"]

    x = np.zeros(128, np.int32)
    monkeypatch.setattr(kernels.tuned, "perf_model", fastest)
    for prune, grids in ((lambda configs, *_, **__: configs[2:], {4}), (fast, {2, 4})):
        monkeypatch.setattr(kernels.tuned, "early_config_prune", prune)
        with ptxlab.triton.emulated(configs="all") as session:
            kernels.tuned[lambda meta: (128 // meta["BLOCK"],)](x, 128)
        assert {one.grid[0] for one in session.launches} == grids
    assert kernels.tuned.perf_model is fastest
    with ptxlab.triton.emulated(), pytest.raises(KeyError, match="mem_clock_rate: the emulator has no clocks"):
        fast(())


def test_wrong_arguments_are_explained(kernels: Any) -> None:
    x = np.zeros(32, np.float32)
    with pytest.raises(TypeError, match="`add` missing 2 required positional arguments: 'n' and 'BLOCK'"):
        ptxlab.triton.run(kernels.add, 1, x, x, x)
    with ptxlab.triton.emulated():
        compiled = kernels.add.warmup(x, x, x, 32, BLOCK=32, grid=(1,))
        with pytest.raises(TypeError, match=r"`add` takes 5 arguments \(x_ptr, y_ptr, out_ptr, n, BLOCK\), .* not 4"):
            compiled[(1, 1, 1)](x, x, x, 32)
    with pytest.raises(TypeError, match="`BLOK` is not a parameter of the kernel"):
        ptxlab.triton.run(kernels.add, 1, x, x, x, 32, BLOCK=32, BLOK=1)
    with pytest.raises(TypeError, match=r"`run` takes a kernel, a function with @triton\.jit"):
        ptxlab.triton.run(print, 1)
    with pytest.raises(TypeError, match=r"\[1, 2\] is not an argument of a kernel: those are tensors of torch, arrays"):
        ptxlab.triton.run(kernels.add, 1, [1, 2], x, x, 32, BLOCK=32)
    with pytest.raises(TypeError, match="grid='4': it is a number"):
        ptxlab.triton.run(kernels.add, "4", x, x, x, 32, BLOCK=32)
    with pytest.raises(ValueError, match="a GPU can't read an array of object"):
        ptxlab.triton.run(kernels.add, 1, np.array([None]), x, x, 32, BLOCK=32)
    with pytest.raises(ValueError, match="configs='some': expected 'first' or 'all'"):
        ptxlab.triton.run(kernels.race, 1, np.zeros(1, np.int32), configs="some")


def test_gluon(kernels: Any) -> None:
    x, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    ptxlab.triton.run(kernels.gluon_double, 1, x, out, BLOCK=128, target="sm_100a")
    np.testing.assert_array_equal(out, 2 * x)


@needs_torch
def test_host_code_with_tensors(kernels: Any) -> None:
    import torch
    import triton
    from triton import knobs
    from triton.tools.tensor_descriptor import TensorDescriptor

    hooked: list[str] = []
    has_gpu = torch.cuda.is_available()
    with ptxlab.triton.emulated("sm_90a", profile=True) as session:
        x = torch.randn(16, 64, device="cuda")
        assert (x.is_cuda, x.is_cpu, x.device, x.get_device()) == (True, False, torch.device("cuda", 0), 0)
        assert torch.empty_like(x, device=x.device).device == triton.runtime.driver.active.get_active_torch_device()
        assert torch.cuda.get_device_capability() == (9, 0)
        before = x.cpu()
        x += 1
        assert not torch.equal(before, x.cpu())
        out = torch.zeros(16, 32, device=torch.device("cuda:0"))
        hook = lambda metadata: hooked.append(metadata.get()["name"])  # noqa: E731
        knobs.runtime.launch_enter_hook.add(hook)
        kernels.copy_tile[(1,)](TensorDescriptor.from_tensor(x, [16, 32]), out, ROWS=16, COLUMNS=32)
        knobs.runtime.launch_enter_hook.remove(hook)
        parts = [torch.full((3,), float(number)) for number in range(4)]
        table, found = torch.tensor([part.data_ptr() for part in parts]), torch.zeros(4)
        kernels.gather[(4,)](table, found)
        kernels.add[(1,)](x[:, ::2], x.T, out, 32, BLOCK=32)
    assert torch.cuda.is_available() == has_gpu
    torch.testing.assert_close(found, torch.arange(4.0))
    torch.testing.assert_close(out.flatten()[:32], 2 * x.flatten()[:32])
    assert ("bytes copied from the GPU and back" in str(session.launches[0].result)) == has_gpu
    assert hooked == ["copy_tile"]
    assert "lines" in session.launches[0].result.counters
    assert [one.name for one in session.launches] == ["copy_tile", "gather", "add"]


@needs_torch
def test_backward_sees_the_same_gpu(kernels: Any) -> None:
    import torch

    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(context: Any, grad: Any) -> Any:
            (x,) = context.saved_tensors
            out = torch.zeros(4, device="cuda")
            kernels.add[(1,)](View(x), grad.contiguous(), View(out), 4, BLOCK=4)
            seen.append((x.is_cuda, x.data_ptr()))
            return out

    class View:
        """As much of a tensor as Triton asks for."""

        def __init__(self, base: Any) -> None:
            self._address, self.dtype = base.data_ptr(), base.dtype

        def data_ptr(self) -> int:
            return int(self._address)

        def element_size(self) -> int:
            return int(self.dtype.itemsize)

        def untyped_storage(self) -> Any:
            raise NotImplementedError

    with ptxlab.triton.emulated("sm_80"):
        x = torch.ones(4, device="cuda", requires_grad=True)
        Double.apply(x).sum().backward()
        assert seen == [(True, x.data_ptr())]
    torch.testing.assert_close(x.grad.cpu(), torch.full((4,), 2.0))

"""Variables of a module on a GPU: set before and after it is loaded, read where a kernel ran last."""

import ctypes
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from ptxlab.device.options import LaunchOptions
from ptxlab.launch import prepare
from tests.gpu import programs
from tests.gpu.driver_of_python import CUresult, Driver
from tests.gpu.fakes import OnGpu

# Adds a step of constant memory to a counter, which it returns.
STEPS = programs.text(
    """
    ld.const.u32 %r1, [step];
    ld.global.u32 %r2, [total];
    add.u32 %r2, %r2, %r1;
    st.global.u32 [total], %r2;"""
    + programs.store("%r2"),
    before=".const .u32 step = 1;\n.global .u32 total = 40;\n.global .u64 where = total;\n",
)


class Steps:
    """The kernel by hand, and the GPU's memory of its variables as the compiler makes it."""

    def __init__(self, fake: Driver) -> None:
        self.step, self.total = bytearray(b"\1\0\0\0"), bytearray(b"\x28\0\0\0")
        fake.variables |= {b"step": self.step, b"total": self.total}
        fake.missing.add(b"where")
        fake.parameters, fake.kernel = 1, self.run

    def run(self, places: list[int], config: object) -> None:
        total = int.from_bytes(self.total, "little") + int.from_bytes(self.step, "little")
        self.total[:] = total.to_bytes(4, "little")
        ctypes.c_uint32.from_address(ctypes.c_uint64.from_address(places[0]).value).value = total


def launch(module: ptxlab.ir.Module, device: str, **how: Any) -> int:
    out = np.zeros(1, np.uint32)
    module["k"].launch(1, 1, [out], device=device, **how)
    return int(out[0])


def test_what_is_set_before_the_first_launch_is_there_when_the_module_is_loaded(fake: Driver) -> None:
    steps, module = Steps(fake), ptxlab.parse(STEPS)
    module.set("step", 5)
    assert (steps.step[0], "cuModuleGetGlobal" in fake.calls) == (1, False)
    assert launch(module, "cuda") == 45
    assert module.get("total") == 45


def test_what_is_set_later_reaches_every_copy(fake: Driver) -> None:
    Steps(fake)
    module = ptxlab.parse(STEPS)
    launch(module, "cuda")
    launch(module, "cuda", compile="driver")
    assert launch(module, "cpu") == 41
    before = len(fake.calls)
    module.set("step", 7)
    assert fake.calls[before:].count("cuMemcpyHtoD") == 2
    assert fake.calls[before:].count("cuCtxSynchronize") == 2
    assert (launch(module, "cuda"), launch(module, "cpu")) == (49, 48)


def test_each_device_has_its_own_and_auto_is_where_a_kernel_ran_last(fake: Driver) -> None:
    Steps(fake)
    module = ptxlab.parse(STEPS)
    assert [module.get("total", device=device) for device in ("auto", "cpu", "cuda")] == [40, 40, 40]
    launch(module, "cuda")
    launch(module, "cuda")
    assert [module.get("total", device=device) for device in ("auto", "cpu", "cuda")] == [42, 40, 42]
    launch(module, "cpu")
    assert [module.get("total", device=device) for device in ("auto", "cpu", "cuda")] == [41, 41, 42]
    launch(module, "both")
    assert [module.get("total", device=device) for device in ("auto", "cpu", "cuda")] == [42, 42, 42]
    module.set("total", 9)
    assert [module.get("total", device=device) for device in ("auto", "cpu", "cuda:0")] == [9, 9, 9]


def test_both_begin_with_what_was_set(fake: Driver) -> None:
    steps, module = Steps(fake), ptxlab.parse(STEPS)
    module.set("step", 3)
    module.set("total", 100)
    assert launch(module, "both") == 103
    steps.step[0] = 4
    with pytest.raises(ptxlab.KernelError, match="differ in 1 of 1 elements of the variable `total`"):
        launch(module, "both")


def test_a_variable_that_the_compiler_left_out_is_what_it_was_set_to(fake: Driver) -> None:
    Steps(fake)
    module = ptxlab.parse(STEPS)
    launch(module, "cuda")
    with pytest.raises(ptxlab.KernelError, match="`where` holds addresses, which NVIDIA H200 has once a kernel"):
        module.get("where")
    module.set("where", 6)
    assert module.get("where", device="cuda") == 6


def test_a_prepared_launch_counts_as_one(fake: Driver) -> None:
    Steps(fake)
    module = ptxlab.parse(STEPS)
    out = np.zeros(1, np.uint32)
    prepared = prepare(module["k"], [OnGpu(out)], LaunchOptions(1, 1))
    prepared.launch()
    assert module.get("total") == 41


def test_what_a_gpu_says_is_explained(fake: Driver) -> None:
    Steps(fake)
    module = ptxlab.parse(STEPS)
    launch(module, "cuda")
    with pytest.raises(ptxlab.KernelError, match="the value for `step` is on a GPU"):
        module.set("step", OnGpu(np.ones(1, np.float32)))
    fake.variables[b"step"] = bytearray(8)
    with pytest.raises(ptxlab.KernelError, match="`step` has 4 bytes in the module, and 8 in what was loaded"):
        module.set("step", 2)
    with gpu.graph(), pytest.raises(ValueError, match="a graph is being recorded"):
        module.get("total")
    with pytest.raises(ValueError, match="this machine has 1 GPU"):
        module.get("total", device="cuda:3")
    fake.fail["cuCtxSynchronize"] = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(ptxlab.KernelError, match="an access outside of all memory the kernel has"):
        module.get("total")
    with pytest.raises(ptxlab.KernelError, match="an earlier kernel broke the GPU's context"):
        module.set("total", 1)
    assert module.get("total", device="cpu") == 40


@pytest.mark.gpu
@pytest.mark.parametrize("compile", ["ptxas", "driver"])
def test_on_a_real_gpu(compile: str) -> None:
    module = ptxlab.parse(STEPS)
    module.set("step", 5)
    assert launch(module, "cuda", compile=compile) == 45
    module.set("step", [7])
    module.set("total", np.uint32(100))
    assert launch(module, "cuda", compile=compile) == 107
    assert [module.get("total", device=device) for device in ("auto", "cpu", "cuda")] == [107, 100, 107]
    assert launch(module, "both", compile=compile) == 107
    assert module.get("step", device="cuda") == 7

"""Kernels of the CuTe DSL on the emulator, and the functions of CUDA that their host code calls."""

import ctypes
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.cli.samples import SAXPY
from ptxlab.device.host_memory import START, HostMemory
from ptxlab.frameworks.cuda_calls import CudaCalls
from tests.processes import run as run_apart


def test_a_launch_of_host_code() -> None:
    memory, x, y = HostMemory(), np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    assert memory.add(x, "x").base == START
    memory.add(y, "y")
    calls = CudaCalls(ptxlab.parse(SAXPY), memory, {})
    handle = ctypes.c_void_p()
    assert calls.function("_cudaLibraryGetKernel")(ctypes.addressof(handle), None, b"saxpy") == 0
    values = [ctypes.c_uint64(x.ctypes.data), ctypes.c_uint64(y.ctypes.data), ctypes.c_float(2), ctypes.c_uint32(64)]
    args = (ctypes.c_void_p * 4)(*[ctypes.addressof(one) for one in values])
    launch = calls.function("_cudaLaunchKernel")
    assert launch(handle, 1, 1, 1, 64, 1, 1, ctypes.addressof(args), 0, None) == 0
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert (len(calls.results), calls.problem) == (1, None)


def test_a_launch_of_host_code_on_a_gpu_of_a_node() -> None:
    node = ptxlab.node(2)
    x, y = node[0].array(np.arange(64, dtype=np.float32)), node[1].array(np.ones(64, np.float32))
    calls = CudaCalls(ptxlab.parse(SAXPY), node.memory, {}, node[1])
    handle = ctypes.c_void_p()
    calls.function("_cudaLibraryGetKernel")(ctypes.addressof(handle), None, b"saxpy")
    addresses = [ctypes.c_uint64(one.data.ctypes.data) for one in (x, y)]
    values = [*addresses, ctypes.c_float(2), ctypes.c_uint32(64)]
    args = (ctypes.c_void_p * 4)(*[ctypes.addressof(one) for one in values])
    assert calls.function("_cudaLaunchKernel")(handle, 1, 1, 1, 64, 1, 1, ctypes.addressof(args), 0, None) == 0
    assert (y.data == 1).all()  # until it is synchronized
    np.testing.assert_array_equal(y.numpy(), 2 * x.numpy() + 1)
    assert calls.problem is None


def test_arrays_of_a_node_need_a_gpu_of_it() -> None:
    pytest.importorskip("cutlass", reason="the CuTe DSL is not installed: pip install nvidia-cutlass-dsl")
    array = ptxlab.node(2)[0].zeros(4)
    with pytest.raises(ValueError, match="an argument with `on`, a GPU of that node"):
        ptxlab.cute.run(print, array)
    with pytest.raises(ValueError, match="`seed` with `on`"):
        ptxlab.cute.run(print, on=array.node[0], seed=1)
    with pytest.raises(TypeError, match="`on` is a GPU of a node"):
        ptxlab.cute.run(print, array, on=array.node)


def test_what_host_code_may_not_call_is_named() -> None:
    calls = CudaCalls(ptxlab.parse(SAXPY), HostMemory(), {})
    number = ctypes.c_int32(0)
    attribute = calls.function("_cudaDeviceGetAttribute")
    assert (attribute(ctypes.addressof(number), 75, 0), number.value) == (0, 8)
    assert calls.function("_cudaGraphLaunch")() == 719
    assert str(calls.problem) == "the host code calls `cudaGraphLaunch`, which the emulator does not have"
    assert attribute(ctypes.addressof(number), 75, 0) == 719  # nothing more happens


def test_a_tensor_map_that_host_code_encodes_is_the_drivers() -> None:
    array = np.zeros((128, 256), np.float16)
    wanted = ptxlab.tensor_map(array, box=(64, 64), swizzle="128B", l2_promotion="128B")
    into, numbers = ctypes.create_string_buffer(128), (ctypes.c_uint64 * 2)(256, 128)
    stride, box, steps = (ctypes.c_uint64 * 1)(512), (ctypes.c_uint32 * 2)(64, 64), (ctypes.c_uint32 * 2)(1, 1)
    encode = CudaCalls(ptxlab.parse(SAXPY), HostMemory(), {}).function("_cuTensorMapEncodeTiled")
    places = [ctypes.addressof(one) for one in (numbers, stride, box, steps)]
    assert encode(ctypes.addressof(into), 6, 2, 0x1000, *places, 0, 3, 2, 0) == 0
    assert into.raw == wanted.encode(0x1000)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cutlass", None)
    with pytest.raises(
        ImportError, match=r"`ptxlab\.cute` needs the package `cutlass`: pip install nvidia-cutlass-dsl"
    ):
        ptxlab.cute.run(print)


KERNELS = """
import os
import tempfile
import cutlass
from cutlass import cute
from cutlass.cute.runtime import from_dlpack
import numpy as np
import ptxlab

os.chdir(tempfile.mkdtemp())

@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < n:
        b[i] = a[i] + b[i]

@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, n: cutlass.Int32):
    add_kernel(a, b, n).launch(grid=[(cute.size(a) + 127) // 128, 1, 1], block=[128, 1, 1])

@cute.kernel
def copy_kernel(a: cute.Tensor, b: cute.Tensor):
    tile = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
    i = cute.arch.thread_idx()[0]
    copy = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
    cute.copy(copy, cute.local_tile(a, (1,), (i,)), cute.local_tile(tile, (1,), (i,)))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    b[i] = tile[i]

@cute.jit
def copy(a: cute.Tensor, b: cute.Tensor):
    copy_kernel(a, b).launch(grid=[1, 1, 1], block=[128, 1, 1])

a, b = np.arange(128, dtype=np.float32), np.ones(128, np.float32)
ptxlab.cute.run(copy, a, from_dlpack(b, assumed_align=16))  # cp.async reads what the DSL knows to be global memory
assert (b == a).all()

for target in ("sm_80", "sm_120a"):
    a, b = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    result = ptxlab.cute.run(add, a, b, 1000, target=target, seed=1)
    assert (b == a + 1).all() and not result.diagnostics

@cute.kernel
def total_kernel(inputs: list[cute.Tensor], b: cute.Tensor, scale: cutlass.Constexpr):
    i = cute.arch.thread_idx()[0]
    sum = cutlass.Float32(0)
    for one in inputs:
        sum += one[i]
    b[i] = sum * scale

@cute.jit
def total(inputs: list[cute.Tensor], scale: cutlass.Constexpr, b: cute.Tensor):
    total_kernel(inputs, b, scale).launch(grid=[1, 1, 1], block=[64, 1, 1])

node = ptxlab.node(2)
x = [device.array(np.full(64, device.rank + 1, np.float32)) for device in node]
sums = [device.zeros(64) for device in node]
for device in node:
    ptxlab.cute.run(total, x, 2, sums[device.rank], on=device)
assert (sums[0].numpy() == 6).all() and (sums[1].numpy() == 6).all()
ptxlab.cute.run(total, x, 2, sums[0], on=node[0])
node[1].fill(x[1])
(race,) = node.synchronize(on_error="collect").diagnostics
assert race.code == "data-race" and "sums[0], on=node[0])" in str(race), race

try:
    ptxlab.cute.run(add, a, b, 1001)
except ptxlab.KernelError as problem:
    print(problem.diagnostics[0].code, problem.diagnostics[0].line)
assert not os.listdir()  # the compiler writes files, and not here
"""


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("cutlass") is None, reason="the CuTe DSL is not installed: pip install nvidia-cutlass-dsl"
)
def test_a_kernel_of_cute(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    line = KERNELS.split("\n").index("        b[i] = a[i] + b[i]") + 1
    assert run_apart(f"import runpy\nrunpy.run_path({str(path)!r})") == f"out-of-bounds {line}\n"

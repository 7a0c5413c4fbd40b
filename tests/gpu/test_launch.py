"""Launches on a GPU: what arrays end up as."""

import ctypes
import threading

import numpy as np
import pytest

import ptxlab
from tests.processes import run

from . import programs
from .programs import kernel, saxpy

pytestmark = pytest.mark.gpu


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    return generator.standard_normal(1000).astype(np.float32), generator.standard_normal(1000).astype(np.float32)


@pytest.mark.parametrize("compile", [None, "ptxas", "driver"])
def test_numpy_arrays_are_copied_there_and_back(data, compile) -> None:
    x, y = data
    x.flags.writeable = False
    here = y.copy()
    saxpy(x, here, device="cpu")
    result = saxpy(x, y, compile=compile)
    np.testing.assert_array_equal(y, here)
    assert result.seconds > 0
    assert not result.diagnostics


@pytest.mark.parametrize("device", ["cuda", "both"])
def test_arrays_in_a_structure(device: str) -> None:
    body = """
    ld.param.b64 %rd1, [p];
    ld.param.b64 %rd2, [p+8];
    ld.param.b32 %r1, [p+16];
    ld.global.b32 %r2, [%rd1];
    mul.lo.u32 %r2, %r2, %r1;
    st.global.b32 [%rd2], %r2;
    ret;
    """
    x, y = np.array([7], np.uint32), np.zeros(1, np.uint32)
    kernel(programs.text(body, ".param .align 8 .b8 p[24]")).launch(1, 1, [((x, y), 6)], device=device)
    assert y[0] == 42


def test_grids_that_overlap() -> None:
    body = """
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    {first}
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
    """
    first, second = (
        kernel(
            programs.text(body.format(first=f"griddepcontrol.{one};"), ".param .u64 x, .param .u64 y", target="sm_90")
        )
        for one in ("launch_dependents", "wait")
    )
    for device in ("cpu", "cuda"):
        x, y, z = np.array([40], np.uint32), np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        results = ptxlab.launch_chain((first, 1, 1, [x, y]), (second, 1, 1, [y, z]), device=device)
        assert (z[0], [result.diagnostics for result in results]) == (42, [[], []])


def test_one_array_given_twice_is_one_memory() -> None:
    x = np.arange(1000, dtype=np.float32)
    saxpy(x, x)
    np.testing.assert_array_equal(x, 3 * np.arange(1000, dtype=np.float32))


def test_a_part_of_an_array_is_that_part() -> None:
    both = np.arange(2000, dtype=np.float32)
    saxpy(both, both[1000:])
    np.testing.assert_array_equal(both[1000:], np.arange(1000, 2000) + 2 * np.arange(1000, dtype=np.float32))


def test_auto_takes_the_gpu_where_no_checks_are_wanted(data) -> None:
    x, y = data
    assert "instructions" not in saxpy(x, y, device="auto", detectors=False).counters
    assert "instructions" in saxpy(x, y, device="auto").counters


@pytest.mark.parametrize("library", ["torch", "cupy", "jax"])
def test_arrays_of_other_libraries_are_not_copied(data, library) -> None:
    code = f"""
import numpy as np, ptxlab
from ptxlab.cli.samples import SAXPY
kernel = ptxlab.parse(SAXPY)["saxpy"]
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
library = {library!r}
if library == "torch":
    import torch
    a, b = torch.tensor(x, device="cuda", requires_grad=True), torch.tensor(y, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
elif library == "cupy":
    import cupy
    a, b = cupy.asarray(x), cupy.asarray(y)
    stream = cupy.cuda.Stream()
    cupy.cuda.Device().synchronize()
else:
    import jax.numpy
    a, b = jax.numpy.asarray(x), jax.numpy.asarray(y)
    stream = None
kernel.launch(4, 256, [a, b, 2.0, 1000], stream=stream)
found = b.cpu().numpy() if library == "torch" else b.get() if library == "cupy" else np.asarray(b)
np.testing.assert_array_equal(found, 2 * x + y)
print("equal")
"""
    pytest.importorskip(library)
    assert run(code) == "equal\n"


def test_torch_tensors_of_every_kind() -> None:
    pytest.importorskip("torch")
    assert run("""
import torch, ptxlab
from ptxlab.device.options import LaunchOptions
from ptxlab.launch import prepare
from tests.gpu import programs
k = ptxlab.parse(programs.text("    mov.u32 %r1, 7;" + programs.store("%r1")))["k"]
for type in (torch.bfloat16, torch.float8_e4m3fn, torch.int32):
    out = torch.zeros(256, device="cuda", dtype=torch.uint8).view(type)
    k.launch(1, 32, [out])
    assert out.view(torch.int32)[:32].eq(7).all() and not out.view(torch.int32)[32:].any()
here = torch.zeros(32, dtype=torch.int32)
k.launch(1, 32, [here], device="cuda")
assert here.eq(7).all()
emulated = torch.zeros(32, dtype=torch.bfloat16)
k.launch(1, 16, [emulated], device="cpu")
assert emulated.view(torch.int32).eq(7).all()
for wrong, device, words in (
    (torch.zeros(64, device="cuda", dtype=torch.int32)[::2], "cuda", "has gaps"),
    (torch.zeros(64, device="cuda", dtype=torch.int32), "cpu", "is on a GPU"),
):
    try:
        k.launch(1, 32, [wrong], device=device)
    except ptxlab.KernelError as problem:
        assert words in str(problem), problem
    else:
        raise AssertionError(words)
both = torch.zeros(32, device="cuda", dtype=torch.int32)
k.launch(1, 32, [both], device="both")
assert both.eq(7).all()
pointer = torch.zeros(32, device="cuda", dtype=torch.int32)
k.launch(1, 32, [pointer.data_ptr()], device="cuda")
assert pointer.eq(7).all()
pointer.zero_()
prepared = prepare(k, [pointer], LaunchOptions(1, 32))
prepared.launch()
torch.cuda.synchronize()
assert pointer.eq(7).all()
k.launch(1, 32, [pointer], wait=False)
torch.cuda.synchronize()
print("fine")
""") == "fine\n"  # fmt: skip


def test_variables_keep_their_values() -> None:
    k = kernel(programs.COUNT)
    out = np.zeros(1, np.uint32)
    found = []
    for _ in range(3):
        k.launch(1, 1, [out], device="cuda")
        found.append(int(out[0]))
    assert found == [41, 42, 43]


def test_dynamic_shared_memory_beyond_48_kilobytes() -> None:
    k = kernel(programs.DYNAMIC)
    for kilobytes in (200, 100, 200):
        out = np.zeros(kilobytes, np.uint32)
        k.launch(1, kilobytes, [out], shared=kilobytes * 1024, device="cuda")
        np.testing.assert_array_equal(out, np.arange(kilobytes))


def test_48_kilobytes_are_for_declared_and_dynamic_memory_together() -> None:
    out = np.zeros(48, np.uint32)
    kernel(programs.BOTH_KINDS_OF_SHARED).launch(1, 48, [out], shared=48 * 1024, device="cuda")
    np.testing.assert_array_equal(out, np.arange(48))


def test_variables_of_both_begin_alike_and_are_compared() -> None:
    k = kernel(programs.COUNT)
    out = np.zeros(1, np.uint32)
    for device, expected in (("cuda", 41), ("cuda", 42), ("cpu", 41), ("both", 42), ("both", 43), ("cuda", 44)):
        assert not k.launch(1, 1, [out], device=device).diagnostics
        assert out[0] == expected, device


def test_a_thread_that_has_never_called_the_driver_can_launch() -> None:
    k = kernel(programs.COUNT)
    found: list[int] = []

    def work() -> None:
        out = np.zeros(1, np.uint32)
        k.launch(1, 1, [out], device="cuda")
        found.append(int(out[0]))

    for _ in range(3):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert found == [41, 42, 43]


def test_graphs() -> None:
    pytest.importorskip("torch")
    assert run("""
import gc, torch, ptxlab
from ptxlab import gpu
from tests.gpu import programs
module = ptxlab.parse(programs.SAXPY)
k = module["saxpy"]
x, y = torch.arange(1000, device="cuda", dtype=torch.float32), torch.ones(1000, device="cuda")
torch.cuda.synchronize()
with gpu.graph() as steps:  # the module is loaded while it is recorded
    k.launch(4, 256, [x, y, 2.0, 1000])
    k.launch(4, 256, [x, y, 3.0, 1000], device="cuda", wait=False)
torch.cuda.synchronize()
assert y.eq(1).all()
for _ in range(3):
    steps.launch()
side = torch.cuda.Stream()
torch.cuda.synchronize()
steps.launch(side)
torch.cuda.synchronize()
assert y.eq(20 * x + 1).all(), y

y.fill_(1)
stream = torch.cuda.Stream()
torch.cuda.synchronize()
with gpu.graph(stream=stream) as mixed, torch.cuda.stream(stream):  # what torch does there is recorded too
    k.launch(4, 256, [x, y, 2.0, 1000])
    y.mul_(2)
mixed.launch()
torch.cuda.synchronize()
assert y.eq(4 * x + 2).all(), y

y.fill_(1)
theirs = torch.cuda.CUDAGraph()
with torch.cuda.graph(theirs):
    k.launch(4, 256, [x, y, 2.0, 1000], stream=torch.cuda.current_stream(), wait=False)
theirs.replay()
theirs.replay()
torch.cuda.synchronize()
assert y.eq(4 * x + 1).all(), y
own = torch.ones(1000, device="cuda")
with gpu.graph() as keeps:
    k.launch(4, 256, [x, own, 2.0, 1000])
place = own.data_ptr()
del own
gc.collect()
assert torch.ones(1000, device="cuda").data_ptr() != place  # the graph keeps it
keeps.launch()
torch.cuda.synchronize()
print("fine")
""") == "fine\n"  # fmt: skip


def test_a_launch_in_place_of_one_with_other_numbers() -> None:
    pytest.importorskip("torch")
    assert run("""
import torch, ptxlab
from tests.gpu import programs
k = ptxlab.parse(programs.SAXPY)["saxpy"]
x = torch.arange(1000, device="cuda", dtype=torch.float32)
torch.cuda.synchronize()
results = [torch.zeros(1000, device="cuda") for _ in range(500)]
torch.cuda.synchronize()
for factor, y in enumerate(results):
    k.launch(4, 256, [x, y, float(factor), 1000], wait=False)
torch.cuda.synchronize()
assert all(y.eq(factor * x).all() for factor, y in enumerate(results))
print("fine")
""") == "fine\n"  # fmt: skip


def test_too_much_shared_memory_is_refused() -> None:
    with pytest.raises(ptxlab.KernelError, match=r"262144 bytes of shared memory, .* has 232448 for a block"):
        kernel(programs.DYNAMIC).launch(1, 32, [np.zeros(32, np.uint32)], shared=256 * 1024, device="cuda")


@pytest.mark.parametrize("size", [2, 16])
def test_clusters(size) -> None:
    out = np.zeros(64 * 32, np.uint32)
    kernel(programs.CLUSTER).launch(64, 32, [out], cluster=size, device="cuda")
    np.testing.assert_array_equal(out, np.repeat(np.arange(64) % size, 32))


def test_a_cluster_that_does_not_divide_the_grid() -> None:
    with pytest.raises(ptxlab.KernelError, match="is not a multiple of the cluster"):
        kernel(programs.CLUSTER).launch(3, 32, [np.zeros(96, np.uint32)], cluster=2, device="cuda")


def test_cooperative_launches() -> None:
    out = np.zeros(64, np.uint32)
    k = kernel(programs.text("    mov.u32 %r1, 7;" + programs.store("%r1")))
    k.launch(2, 32, [out], cooperative=True, device="cuda")
    assert (out == 7).all()
    with pytest.raises(ptxlab.KernelError, match="must all fit on the GPU at once"):
        k.launch(100_000, 1024, [np.zeros(1024 * 100_000, np.uint32)], cooperative=True, device="cuda")


def test_both_agree(data) -> None:
    x, y = data
    expected = y.copy()
    saxpy(x, expected, device="cpu")
    assert not saxpy(x, y, device="both").diagnostics
    np.testing.assert_array_equal(y, expected)


def test_both_disagree() -> None:
    out = np.zeros(32, np.uint32)
    result = kernel(programs.CLOCK).launch(1, 32, [out], device="both", on_error="collect")
    (found,) = result.diagnostics
    assert found.code == "disagreement"
    assert "of 32 elements of `out`" in found.message
    assert "the first is element [0]: " in found.notes[0]


def test_the_device_of_a_pointer_of_ctypes() -> None:
    with pytest.raises(ptxlab.KernelError, match="is not a number, array or bytes"):
        saxpy(ctypes.c_void_p(0), 0)

"""What is done with a GPU, tried without one: a Python driver answers in its place."""

import ctypes
import re
import struct
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from ptxlab.gpu import arrays, driver
from ptxlab.gpu.streams import stream_handle
from tests.gpu import programs
from tests.gpu.driver_of_python import CUresult, Driver
from tests.gpu.fakes import OnGpu, Tensor, launch, ramp

H200 = gpu.Gpu(0, "NVIDIA H200", "sm_90", 140 << 30, 132, 232448, (13, 0))


def test_arrays_are_copied_there_and_back_and_freed(fake: Driver) -> None:
    x, y = ramp(), np.ones(8, np.float32)
    launch(x, y)
    np.testing.assert_array_equal(y, 2 * x + 1)
    assert fake.memory == {}


def test_a_read_only_array_is_not_written(fake: Driver) -> None:
    y = ramp()
    y.flags.writeable = False
    launch(ramp(), y)
    np.testing.assert_array_equal(y, ramp())


def test_a_view_points_into_its_array(fake: Driver) -> None:
    both = np.arange(16, dtype=np.float32)
    launch(both, both[8:])
    np.testing.assert_array_equal(both[8:], np.arange(8, 16) + 2 * np.arange(8))
    assert fake.calls.count("cuMemAlloc") == 1


def test_arrays_on_the_gpu_are_passed_as_they_are(fake: Driver) -> None:
    x, y = ramp(), np.ones(8, np.float32)
    assert "cuMemAlloc" not in fake.calls
    launch(OnGpu(x), Tensor(y, True), device="auto")  # where the arrays are
    np.testing.assert_array_equal(y, 2 * x + 1)
    launch(x.ctypes.data, y.ctypes.data)
    np.testing.assert_array_equal(y, 4 * x + 1)
    assert "cuMemAlloc" not in fake.calls


def test_none_is_a_null_pointer(fake: Driver) -> None:
    passed: list[int] = []
    fake.kernel = lambda places, config: passed.append(ctypes.c_uint64.from_address(places[0]).value)
    launch(None, ramp())
    launch(None, OnGpu(ramp()))
    assert passed == [0, 0]
    with pytest.raises(ptxlab.KernelError, match="`None` is a null pointer"):
        launch(ramp(), ramp(), count=None)  # type: ignore[arg-type]


def test_arrays_in_a_structure_are_copied_there_and_back(fake: Driver) -> None:
    def run(places: list[int], config: object) -> None:
        address, other, count = struct.unpack("<QQI", ctypes.string_at(places[0], 20))
        given, changed = ((ctypes.c_float * count).from_address(at) for at in (address, other))
        changed[:] = [2 * value for value in given]

    fake.parameters, fake.kernel = 1, run
    x, y = ramp(), np.zeros(8, np.float32)
    body = "ld.param.b64 %rd1, [p];\n    ld.param.b64 %rd2, [p+8];\n    ld.param.b32 %r1, [p+16];\n    ret;"
    kernel = ptxlab.parse(programs.text(body, ".param .align 8 .b8 p[24]"))["k"]
    kernel.launch(1, 1, [((x, y), 8)], device="cuda")
    np.testing.assert_array_equal(y, 2 * x)
    kernel.launch(1, 1, [(OnGpu(y), x, 8)])  # on the GPU, where one of the arrays is
    np.testing.assert_array_equal(x, 2 * y)
    assert fake.memory == {}


def test_a_stream_that_an_array_is_made_on_is_waited_for(fake: Driver) -> None:
    launch(OnGpu(ramp(), stream=7), OnGpu(ramp(), stream=1))
    assert fake.calls.count("cuStreamSynchronize") == 2  # the array's, and ours at the end


def test_arrays_of_other_libraries_in_this_machines_memory(fake: Driver) -> None:
    for device in ("cuda", "cpu"):
        y = np.ones(8, np.float32)
        launch(ramp(), Tensor(y, False), device=device)
        np.testing.assert_array_equal(y, 2 * ramp() + 1)


def test_dlpack_of_the_host_is_not_copied() -> None:
    class Exporter:
        def __init__(self) -> None:
            self.array = ramp()

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

        def __dlpack__(self) -> object:
            return self.array.__dlpack__()

    exporter = Exporter()
    view = arrays.host_view(exporter)
    assert view.nbytes == 32
    view[:4] = 255
    assert np.isnan(exporter.array[0])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (OnGpu(ramp(), strides=(8,)), "the array has gaps"),
        (Tensor(np.arange(16, dtype=np.float32)[::2], True), "the array has gaps"),
        ("text", "str is not a number, array or bytes"),
    ],
)
def test_arguments_that_do_not_fit(fake: Driver, x: object, words: str) -> None:
    with pytest.raises(ptxlab.KernelError, match=words) as raised:
        launch(x, ramp())
    assert (raised.value.diagnostics[0].code, raised.value.diagnostics[0].line) == ("bad-argument", 6)
    assert fake.memory == {}


def test_an_array_on_another_gpu(fake: Driver) -> None:
    elsewhere = Tensor(ramp(), True)
    elsewhere.get_device = lambda: 1  # type: ignore[method-assign]
    with pytest.raises(ptxlab.KernelError, match=r'is on GPU 1, the launch is on GPU 0.*`device="cuda:1"`'):
        launch(elsewhere, ramp())
    assert fake.memory == {}


def test_without_a_driver_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def cuInit(self, flags: int) -> None:  # noqa: N802
            raise RuntimeError("Failed to dlopen libcuda.so.1")

    monkeypatch.setattr(driver, "import_module", lambda name: Missing())
    found = driver._open.__wrapped__()
    assert found.code == "no-gpu"
    assert found.notes == ("the CUDA driver can't be loaded: failed to dlopen libcuda.so.1",)
    assert "install NVIDIA's driver" in found.helps[0].text


def test_an_array_on_the_gpu_is_refused_by_the_emulator(fake: Driver) -> None:
    with pytest.raises(ptxlab.KernelError, match="argument 1 is on a GPU"):
        launch(ramp(), OnGpu(ramp()), device="cpu")


@pytest.mark.parametrize(
    ("call", "status", "code", "words"),
    [
        ("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY, "out-of-memory", "use smaller arrays"),
        ("cuLaunchKernelEx", CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "bad-launch", "use smaller blocks"),
        ("cuLaunchKernelEx", CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "bad-launch", "use fewer blocks"),
        ("cuLaunchKernelEx", CUresult.CUDA_ERROR_UNKNOWN, "driver-error", "in cuLaunchKernelEx, on NVIDIA H200"),
    ],
)
def test_a_failure_is_explained_and_leaves_nothing_allocated(fake: Driver, call, status, code, words) -> None:
    fake.fail[call] = status
    with pytest.raises(ptxlab.KernelError, match=words) as raised:
        launch(ramp(), ramp())
    (found,) = raised.value.diagnostics
    assert (found.code, found.file, found.line) == (code, "saxpy.ptx", 6)
    assert fake.memory == {}
    assert driver.broken() is None


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, "out-of-bounds"),
        (CUresult.CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned-access"),
        (CUresult.CUDA_ERROR_LAUNCH_FAILED, "trap"),
        (CUresult.CUDA_ERROR_ASSERT, "assertion-failed"),
    ],
)
def test_a_kernel_that_breaks_the_context(fake: Driver, status, code) -> None:
    fake.fail["cuEventQuery"] = status
    result = launch(ramp(), ramp(), on_error="collect")
    assert [found.code for found in result.diagnostics] == [code]
    assert "start it again" in result.diagnostics[0].notes[-1]
    assert 'device="cpu"' in result.diagnostics[0].helps[0].text
    del fake.fail["cuEventQuery"]
    with pytest.raises(ptxlab.KernelError, match="an earlier kernel broke the GPU's context"):
        launch(ramp(), ramp())
    launch(ramp(), ramp(), device="cpu")


def test_a_kernel_that_does_not_end(fake: Driver) -> None:
    fake.fail["cuEventQuery"] = CUresult.CUDA_ERROR_NOT_READY
    with pytest.raises(ptxlab.KernelError, match="had not ended when its time was up"):
        launch(ramp(), ramp(), timeout=0.01)
    assert len(fake.memory) == 2, "the kernel may still write there"


def test_how_a_launch_is_configured(fake: Driver) -> None:
    launch(ramp(), ramp(), shared=100_000, cluster=1, cooperative=True, stream=5)
    (config,) = fake.configs
    assert (config.gridDimX, config.blockDimX, config.sharedMemBytes, config.hStream) == (1, 32, 100_000, 5)
    assert [attribute.id for attribute in config.attrs] == [
        "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", "CU_LAUNCH_ATTRIBUTE_COOPERATIVE"
    ]  # fmt: skip
    # All that there is, so that a launch with less leaves enough for the next one with more.
    assert fake.attributes == {"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 232448}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"shared": 300_000}, "300000 bytes of shared memory, NVIDIA H200 has 232448 for a block"),
        ({"cluster": 2}, "not a multiple of the cluster"),
    ],
)
def test_launches_that_the_gpu_has_no_room_for(fake: Driver, how, words) -> None:
    with pytest.raises(ptxlab.KernelError, match=words):
        launch(ramp(), ramp(), **how)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"blocks": [(0, 0, 0)]}, "`blocks` is for the emulator alone"),
        ({"profile": True}, "`profile` is for the emulator alone"),
        ({"device": "cpu", "stream": 1}, "`stream` is for a GPU alone"),
        ({"device": "cuda:3"}, "this machine has 1 GPU, counted from 0"),
        ({"device": "cpu:1"}, "expected one of 'auto', 'cpu', 'cuda', 'cuda:1', 'both'"),
        ({"compile": "nvcc"}, "expected 'ptxas', 'driver' or the path of a `.cubin` file"),
        ({"wait": False}, "`wait=False` and graphs need arrays on the GPU"),
    ],
)
def test_ways_to_run_that_make_no_sense(fake: Driver, how, words) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        launch(ramp(), ramp(), **how)


def test_streams() -> None:
    class Standard:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 9)

    torch_stream = type("Stream", (), {"cuda_stream": 8})()
    handle = stream_handle
    assert [handle(stream) for stream in (None, 3, Standard(), torch_stream)] == [0, 3, 9, 8]
    with pytest.raises(TypeError, match="str is not a stream"):
        handle("main")


def test_a_cubin_that_was_compiled_ahead(fake: Driver, tmp_path: Path) -> None:
    path = tmp_path / "saxpy.cubin"
    path.write_bytes(b"\x7fELF")
    for given in (path, str(path)):
        y = np.ones(8, np.float32)
        launch(ramp(), y, compile=given)
        np.testing.assert_array_equal(y, 2 * ramp() + 1)
    assert fake.image == b"\x7fELF"
    with pytest.raises(ptxlab.PtxError, match=r"`none\.cubin` can't be read: no such file or directory"):
        launch(ramp(), ramp(), compile="none.cubin")

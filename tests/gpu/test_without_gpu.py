"""What is done with a GPU, tried without one: a driver of Python answers in its place."""

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab import gpu
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.gpu import arrays, driver, hardware, loading
from ptxlab.gpu.driver import DriverError, explain_initialisation
from ptxlab.gpu.failures import FATAL, OTHERS, explain
from ptxlab.gpu.loading import read_log
from ptxlab.gpu.prepared import _KEPT
from ptxlab.gpu.streams import stream_handle
from ptxlab.report import Source
from tests.gpu import programs
from tests.gpu.driver_of_python import CUresult, Driver
from tests.tools import needs_ptxas

H200 = gpu.Gpu(0, "NVIDIA H200", "sm_90", 140 << 30, 132, 232448, (13, 0))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Driver]:
    """An H200 whose kernel `saxpy` is Python, and a cubin that nobody had to compile."""
    made = Driver(saxpy)
    made.parameters = 4
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(driver, "_open", lambda: made)
    monkeypatch.setattr(driver, "_contexts", {})
    monkeypatch.setattr(driver, "_broken", [])
    monkeypatch.setattr(loading, "compile_text", lambda *given: b"cubin")
    monkeypatch.setattr(loading, "_default_compiler", lambda: "ptxas")
    hardware.gpu.cache_clear()
    yield made
    hardware.gpu.cache_clear()


def saxpy(places: list[int], config: object) -> None:
    """What the kernel of that name does, by hand."""
    x, y = (ctypes.c_uint64.from_address(place).value for place in places[:2])
    factor = ctypes.c_float.from_address(places[2]).value
    count = ctypes.c_uint32.from_address(places[3]).value
    given, changed = ((ctypes.c_float * count).from_address(at) for at in (x, y))
    for index in range(count):
        changed[index] += factor * given[index]


def launch(x: object, y: object, count: int = 8, **how: object) -> gpu.launching.Result:
    module = ptxlab.parse(programs.SAXPY, name="saxpy.ptx")
    return module["saxpy"].launch(1, 32, [x, y, 2.0, count], **{"device": "cuda"} | how)


def ramp() -> np.ndarray:
    return np.arange(8, dtype=np.float32)


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


class OnGpu:
    """An array of a library that has the CUDA array interface."""

    def __init__(self, array: np.ndarray, **more: object) -> None:
        self.array = array
        interface = array.__array_interface__
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": "<f4", "data": interface["data"], "version": 3, **more
        }  # fmt: skip


class Tensor:
    """As much of a tensor of torch as is asked for."""

    def __init__(self, array: np.ndarray, is_cuda: bool) -> None:
        self.array, self.is_cuda, self.shape = array, is_cuda, array.shape
        self.device = type("Device", (), {"index": 0, "type": "cuda" if is_cuda else "cpu"})()

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def get_device(self) -> int:
        return 0 if self.is_cuda else -1

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize


def test_arrays_on_the_gpu_are_passed_as_they_are(fake: Driver) -> None:
    x, y = ramp(), np.ones(8, np.float32)
    assert "cuMemAlloc" not in fake.calls
    launch(OnGpu(x), Tensor(y, True), device="auto")  # where the arrays are
    np.testing.assert_array_equal(y, 2 * x + 1)
    launch(x.ctypes.data, y.ctypes.data)
    np.testing.assert_array_equal(y, 4 * x + 1)
    assert "cuMemAlloc" not in fake.calls


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
        ("text", "str is no number, array or bytes"),
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
    with pytest.raises(ptxlab.KernelError, match=r'lies on GPU 1, the launch is on GPU 0.*`device="cuda:1"`'):
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
    with pytest.raises(ptxlab.KernelError, match="argument 1 lies on a GPU"):
        launch(ramp(), OnGpu(ramp()), device="cpu")


def test_both_give_the_emulators_arrays_and_name_the_first_difference(fake: Driver) -> None:
    y = np.ones(8, np.float32)
    assert launch(ramp(), y, device="both").diagnostics == []
    np.testing.assert_array_equal(y, 2 * ramp() + 1)

    def wrong(places: list[int], config: object) -> None:
        saxpy(places, config)
        ctypes.c_float.from_address(ctypes.c_uint64.from_address(places[1]).value + 12).value = -1

    fake.kernel = wrong
    y = np.ones(8, np.float32)
    (found,) = launch(ramp(), y, device="both", on_error="collect").diagnostics
    assert found.code == "disagreement"
    assert found.message == "the emulator and NVIDIA H200 differ in 1 of 8 elements of `y`"
    assert found.notes == ("the first is element [3]: 7.0 (0x40e00000) on the emulator, -1.0 (0xbf800000) on the GPU",)
    np.testing.assert_array_equal(y, 2 * ramp() + 1)
    with pytest.raises(ptxlab.KernelError, match="differ in 1 of 8"):
        launch(ramp(), y, device="both")


def test_both_with_arrays_on_the_gpu(fake: Driver) -> None:
    x, y = ramp(), np.ones(8, np.float32)
    assert launch(OnGpu(x), OnGpu(y), device="both").diagnostics == []
    np.testing.assert_array_equal(y, 2 * x + 1)


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
        (CUresult.CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned"),
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
        ({"cluster": 2}, "no multiple of the cluster"),
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
        ({"device": "cpu", "cooperative": True}, "`cooperative` is for a GPU alone"),
        ({"device": "cuda:3"}, "this machine has 1 GPU, counted from 0"),
        ({"device": "cpu:1"}, "there are 'auto', 'cpu', 'cuda', 'cuda:1' and 'both'"),
        ({"compile": "nvcc"}, "there are 'ptxas', 'driver' and the path of a `.cubin` file"),
        ({"wait": False}, "`wait=False` and graphs need arrays that lie on the GPU"),
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
    with pytest.raises(TypeError, match="str is no stream"):
        handle("main")


def test_a_prepared_launch_takes_arrays_on_the_gpu_only(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    how = {"grid": (1, 1, 1), "block": (32, 1, 1)}
    x, y = ramp(), np.ones(8, np.float32)
    prepared = gpu.prepare(module, module["saxpy"], gpu.gpu(), args=[OnGpu(x), OnGpu(y), 2.0, 8], **how)
    prepared.launch()
    prepared.launch()
    np.testing.assert_array_equal(y, 4 * x + 1)
    with pytest.raises(ValueError, match=r"these would be copied each time: argument 0 \(`x`\)"):
        gpu.prepare(module, module["saxpy"], gpu.gpu(), args=[x, OnGpu(y), 2.0, 8], **how)


def test_a_module_is_loaded_once(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    for _ in range(3):
        module["saxpy"].launch(1, 32, [ramp(), ramp(), 2.0, 8], device="cuda")
    assert fake.calls.count("cuModuleLoadDataEx") == 1


def test_what_repeats_is_looked_at_once(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    x, y = ramp(), np.ones(8, np.float32)

    def again(factor: float = 2.0, count: int = 8) -> list[str]:
        fake.calls.clear()
        module["saxpy"].launch(1, 32, [Tensor(x, True), Tensor(y, True), factor, count], device="cuda", wait=False)
        return fake.calls

    assert "cuModuleLoadDataEx" in again()
    assert [name for name in again() if name != "cuCtxGetCurrent"] == ["cuLaunchKernelEx"]
    np.testing.assert_array_equal(y, 4 * x + 1)
    again(factor=1)  # an integer for a float
    again(factor=0.5, count=4)
    np.testing.assert_array_equal(y, np.where(np.arange(8) < 4, 5.5, 5) * x + 1)


def test_what_changes_is_looked_at_again(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    args = [OnGpu(ramp()), OnGpu(ramp()), 2.0, 8]
    for grid, shared, stream in ((1, 0, 5), (2, 0, 5), (2, 64, 5), (2, 64, 6), (1, 0, 5)):
        module["saxpy"].launch(grid, 32, args, shared=shared, stream=stream, device="cuda", wait=False)
        config = fake.configs[-1]
        assert (config.gridDimX, config.sharedMemBytes, config.hStream) == (grid, shared, stream)
    for wrong, words in (
        ([*args[:3], -1 << 40], "does not fit `.u32`"),
        ([*args[:2], 1e39, 8], "argument 2"),
        ([*args[:3], 8.0], "8.0 is no integer"),
        (args[:3], "takes 4 arguments, not 3"),
        ([OnGpu(ramp(), strides=(8,)), *args[1:]], "the array has gaps"),
    ):
        with pytest.raises(ptxlab.KernelError, match=words):
            module["saxpy"].launch(1, 32, wrong, stream=5, device="cuda", wait=False)
    launches = len(fake.configs)
    with pytest.raises(ptxlab.KernelError, match="at most 1024 are possible"):
        module["saxpy"].launch(1, 2048, args, device="cuda", wait=False)
    assert len(fake.configs) == launches


@pytest.mark.parametrize("value", [-1, np.uint32(7), np.int64(7), True, 7])
def test_numbers_are_packed_as_the_emulator_packs_them(fake: Driver, value: object) -> None:
    module = ptxlab.parse(programs.SAXPY)
    found = []
    fake.kernel = lambda places, config: found.append(ctypes.string_at(places[3], 4))
    module["saxpy"].launch(1, 32, [0, 0, 1, value], device="cuda", wait=False)
    assert found == [(int(value) & 0xFFFFFFFF).to_bytes(4, "little")]  # type: ignore[call-overload]


def test_launches_that_stay_ready_are_not_too_many(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    for grid in range(1, _KEPT + 40):
        module["saxpy"].launch(grid, 32, [0, 0, 1.0, 0], device="cuda", wait=False)
    assert len(module.on_gpu["ready"]) == _KEPT
    fake.configs.clear()
    module["saxpy"].launch(1, 32, [0, 0, 1.0, 0], device="cuda", wait=False)
    assert fake.configs[0].gridDimX == 1


def test_a_cubin_that_is_replaced_is_loaded_anew(fake: Driver, tmp_path: Path) -> None:
    module = ptxlab.parse(programs.SAXPY)
    path = tmp_path / "saxpy.cubin"
    for image in (b"\x7fELF", b"\x7fELF2"):
        path.write_bytes(image)
        module["saxpy"].launch(1, 32, [0, 0, 1.0, 0], device="cuda", compile=path)
        assert fake.image == image


def test_schedules_are_tried_after_a_launch_on_a_gpu(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    for how in ({"device": "cuda"}, {"device": "cpu", "seeds": 2}):
        y = np.ones(8, np.float32)
        module["saxpy"].launch(1, 32, [ramp(), y, 2.0, 8], **how)
        np.testing.assert_array_equal(y, 2 * ramp() + 1)


# Graphs.


def test_a_graph_runs_what_was_recorded(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    x, y = ramp(), np.ones(8, np.float32)
    with gpu.graph() as twice:
        for factor in (2.0, 3.0):
            module["saxpy"].launch(1, 32, [OnGpu(x), OnGpu(y), factor, 8])
        np.testing.assert_array_equal(y, 1)
        with pytest.raises(ValueError, match="still being recorded"):
            twice.launch()
    np.testing.assert_array_equal(y, 1)
    for times in (1, 2):
        twice.launch()
        np.testing.assert_array_equal(y, 5 * times * x + 1)
    launch(OnGpu(x), OnGpu(y))
    np.testing.assert_array_equal(y, 12 * x + 1)
    assert [config.hStream for config in fake.configs] == [77, 77, 0]
    assert fake.calls.count("cuStreamDestroy") == fake.calls.count("cuStreamCreate") == 1
    del twice
    assert fake.calls.count("cuGraphExecDestroy") == 1


def test_a_graph_takes_arrays_on_the_gpu_only(fake: Driver) -> None:
    with pytest.raises(ValueError, match="graphs need arrays that lie on the GPU"), gpu.graph():
        launch(ramp(), ramp())
    assert fake.calls.count("cuStreamDestroy") == 1
    assert fake.calls.count("cuGraphDestroy") == 1
    with gpu.graph(), pytest.raises(ValueError, match="recorded already"), gpu.graph():
        pass
    with gpu.graph(), pytest.raises(ValueError, match="nothing to compare"):
        launch(OnGpu(ramp()), OnGpu(ramp()), device="both")


def test_a_graph_that_the_driver_refuses(fake: Driver) -> None:
    fake.fail["cuGraphInstantiate"] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    both = gpu.graph()
    both.__enter__()
    for _ in range(2):
        launch(OnGpu(ramp()), OnGpu(ramp()))
    with pytest.raises(ptxlab.KernelError, match="too little memory left") as raised:
        both.__exit__(None, None, None)
    assert raised.value.diagnostics[0].notes[0] == "it may be any launch of the graph, which has `saxpy`"
    assert fake.calls.count("cuStreamDestroy") == 1
    assert fake.calls.count("cuGraphDestroy") == 1
    launch(OnGpu(ramp()), OnGpu(ramp()), stream=3)
    assert fake.configs[-1].hStream == 3


# Variables on both.


def test_variables_of_the_module_are_compared(fake: Driver) -> None:
    module = ptxlab.parse(programs.COUNT)
    fake.parameters = 1
    fake.variables[b"total"] = total = bytearray((1000).to_bytes(4, "little"))

    def count(places: list[int], config: object, step: int = 1) -> None:
        total[:] = (int.from_bytes(total, "little") + step).to_bytes(4, "little")
        ctypes.c_uint32.from_address(ctypes.c_uint64.from_address(places[0]).value).value = int.from_bytes(
            total, "little"
        )

    fake.kernel = count
    out = np.zeros(1, np.uint32)
    for expected in (41, 42):
        assert module["k"].launch(1, 1, [out], device="both").diagnostics == []
        assert (out[0], int.from_bytes(total, "little")) == (expected, expected)

    def wrong(places: list[int], config: object) -> None:
        count(places, config)
        total[0] = 7

    fake.kernel = wrong
    (found,) = module["k"].launch(1, 1, [out], device="both", on_error="collect").diagnostics
    assert found.code == "disagreement"
    assert found.message == "the emulator and NVIDIA H200 differ in 1 of 1 elements of the variable `total`"
    assert found.notes == ("the first is element 0: 0x0000002b on the emulator, 0x00000007 on the GPU",)
    assert found.labels[0].span.text.startswith("total")


def test_variables_that_the_compiler_left_out_or_that_hold_addresses_are_not_compared(fake: Driver) -> None:
    text = programs.text("    ld.param.u64 %rd1, [out];", before=".global .u32 a;\n.global .u64 b = a;\n")
    fake.parameters, fake.kernel = 1, None
    fake.variables[b"b"] = there = bytearray(8)
    fake.missing.add(b"a")
    assert ptxlab.parse(text)["k"].launch(1, 1, [0], device="both").diagnostics == []
    assert there == bytes(8)


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


# What is said.


def test_a_module_for_another_gpu(fake: Driver) -> None:
    text = programs.SAXPY.replace("8.0", "8.7").replace("sm_80", "sm_120a")
    with pytest.raises(ptxlab.PtxError) as raised:
        ptxlab.parse(text, name="saxpy.ptx")["saxpy"].launch(1, 32, [0, 0, 1.0, 0], device="cuda")
    (found,) = raised.value.diagnostics
    assert (found.code, found.line) == ("wrong-target", 2)
    assert found.message == "a module for `sm_120a` can't run on NVIDIA H200, which is `sm_90`"
    assert "write `.target sm_90`" in found.helps[0].text


def test_auto_emulates_what_the_gpu_can_not_run(fake: Driver) -> None:
    text = programs.SAXPY.replace("8.0", "8.7").replace("sm_80", "sm_120a")
    y = np.ones(8, np.float32)
    result = ptxlab.parse(text)["saxpy"].launch(1, 32, [ramp(), y, 2.0, 8], checks=False)
    assert result.counters
    assert fake.configs == []


def test_auto_takes_the_gpu_where_no_checks_are_wanted(fake: Driver) -> None:
    launch(ramp(), ramp(), device="auto")
    launch(ramp(), ramp(), device="auto", checks=False, profile=True)
    assert fake.configs == []
    launch(ramp(), ramp(), device="auto", checks=False)
    assert len(fake.configs) == 1


def test_run_on_both(fake: Driver, tmp_path: Path) -> None:
    path = tmp_path / "saxpy.ptx"
    path.write_text(programs.SAXPY)
    arguments = ["run", str(path), "--block", "32"]
    for argument in ("f32[8]=arange", "f32[8]=ones", "f32=2.0", "u32=8"):
        arguments += ["--arg", argument]
    shown = CliRunner().invoke(command_line, [*arguments, "--device", "both"])
    assert (shown.exit_code, len(fake.configs)) == (0, 1)
    shown = CliRunner().invoke(command_line, [*arguments, "--device", "cuda"])
    assert " s on the GPU" in shown.output
    assert "1 3 5 7 9 11 13 15" in shown.output
    fake.kernel = None
    shown = CliRunner().invoke(command_line, [*arguments, "--device", "both"])
    assert shown.exit_code == 1
    assert "error[disagreement]: the emulator and NVIDIA H200 differ in 7 of 8 elements of `y`" in shown.output
    shown = CliRunner().invoke(command_line, [*arguments, "--device", "cuda", "--profile"])
    assert shown.exit_code == 2


def test_a_version_that_the_driver_does_not_read(fake: Driver) -> None:
    with pytest.raises(ptxlab.PtxError, match=r"PTX 9\.4 is too new for this driver, which reads up to PTX 9\.0"):
        ptxlab.parse(programs.SAXPY.replace("8.0", "9.4"))["saxpy"].launch(
            1, 32, [0, 0, 1.0, 0], device="cuda", compile="driver"
        )


def test_messages_of_the_drivers_compiler_stand_on_their_line(fake: Driver) -> None:
    fake.fail["cuModuleLoadDataEx"] = CUresult.CUDA_ERROR_INVALID_PTX
    fake.log = b"ptxas application ptx input, line 19; error   : Unknown symbol '%p'\n"
    fake.log += b"ptxas fatal   : Ptx assembly aborted due to errors\n"
    with pytest.raises(ptxlab.PtxError) as raised:
        launch(ramp(), ramp(), compile="driver")
    (found,) = raised.value.diagnostics
    assert (found.code, found.file, found.line) == ("ptxas-unknown-symbol", "saxpy.ptx", 19)
    assert found.labels[0].span.text == "%p"


def test_a_refusal_without_a_log(fake: Driver) -> None:
    fake.fail["cuModuleLoadDataEx"] = CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(ptxlab.PtxError, match="the code is for another GPU"):
        launch(ramp(), ramp())
    assert read_log(b"\0", Source("a.ptx", ""), H200) == []


@needs_ptxas
def test_cubins_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path))
    first = loading.compile_text(programs.SAXPY, "sm_90", None)
    assert first[:4] == b"\x7fELF"
    monkeypatch.setattr(loading, "assemble", None)
    assert loading.compile_text(programs.SAXPY, "sm_90", None) == first


@needs_ptxas
def test_what_ptxas_refuses_stands_on_the_line_that_the_author_wrote() -> None:
    text = programs.SAXPY.replace("ret;", "\n\n    bra nowhere;")
    with pytest.raises(ptxlab.PtxError) as raised:
        loading.compile_text(text.replace("\n\n", "\n"), "sm_90", Source("saxpy.ptx", text))
    (found,) = raised.value.diagnostics
    assert found.file == "saxpy.ptx"
    assert text.splitlines()[found.line - 1].strip() == "bra nowhere;"


@pytest.mark.parametrize("name", sorted({**FATAL, **OTHERS}))
def test_every_failure_is_a_sentence_of_ours(name: str) -> None:
    module = ptxlab.parse(programs.SAXPY, name="saxpy.ptx")
    found = explain(DriverError(name, "cuSomething"), module, module["saxpy"], H200)
    assert found.message.startswith("`saxpy` on NVIDIA H200: ")
    assert "CUDA_ERROR" not in ptxlab.render([found])
    assert len(found.notes) <= 2
    assert len(found.helps) <= 2


def test_the_names_of_failures_are_the_drivers() -> None:
    bindings = pytest.importorskip("cuda.bindings.driver")
    known = set(bindings.CUresult.__members__)
    assert {name for name in {**FATAL, **OTHERS} if name not in known} <= {"CUDA_ERROR_TENSOR_MEMORY_LEAK"}


@pytest.mark.parametrize("name", ["CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "CUDA_ERROR_UNKNOWN"])
def test_no_gpu_has_a_reason_and_a_remedy(name: str) -> None:
    found = explain_initialisation(name)
    assert found.code == "no-gpu"
    assert len(found.notes) == 1
    assert found.helps[-1].text == '`device="cpu"` runs the kernel on this machine, without a GPU'


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys; sys.modules['cuda'] = None\n"
        "import ptxlab\nfrom ptxlab.cli.tour import SAXPY\n"
        "try: ptxlab.parse(SAXPY)['saxpy'].launch(1, 1, [0, 0, 1.0, 0], device='cuda')\n"
        "except ptxlab.KernelError as problem: print(problem)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "error[no-gpu]: there is no GPU to run on" in shown.stdout
    assert "run `pip install ptxlab[cuda]`" in shown.stdout


def test_devices_lists_gpus(fake: Driver) -> None:
    shown = CliRunner().invoke(command_line, ["devices"])
    assert "cuda:0  NVIDIA H200, sm_90, 140.0 GiB, 132 multiprocessors\n" in shown.output
    assert "CUDA 13.0; runs modules for sm_90 and earlier, sm_90a\n" in shown.output
    assert "compiles PTX up to 9.0" in shown.output
    assert '"target": "sm_90"' in CliRunner().invoke(command_line, ["devices", "--format", "json"]).output


def test_devices_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_open", lambda: driver.no_gpu("none was found", "buy one"))
    shown = CliRunner().invoke(command_line, ["devices"])
    assert shown.output == (
        "no GPU: none was found\n        buy one\n"
        "cpu     the emulator runs kernels here, for every target it knows, and finds what is wrong in them\n"
    )


@pytest.mark.parametrize(
    ("gpu_target", "module_target", "architecture"),
    [
        ("sm_90", "sm_80", "sm_90"),
        ("sm_90", "sm_90a", "sm_90a"),
        ("sm_90", "sm_100", None),
        ("sm_103", "sm_100f", "sm_103f"),
        ("sm_103", "sm_100a", None),
        ("sm_120", "sm_100f", None),
    ],
)
def test_which_code_a_module_becomes(gpu_target, module_target, architecture) -> None:
    one = gpu.Gpu(0, "a GPU", gpu_target, 0, 1, 0, (13, 0))
    assert one.architecture_for(module_target) == architecture


def test_the_newest_ptx_of_a_driver() -> None:
    assert hardware.newest_ptx((12, 6)) == (8, 5)
    assert hardware.newest_ptx((13, 0)) == (9, 0)
    assert hardware.newest_ptx((99, 0)) == max(hardware._PTX_OF_CUDA.values())

"""Launches that repeat: what is checked once, what each time; without a GPU."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.device.options import LaunchOptions
from ptxlab.gpu.prepared import _KEPT
from ptxlab.launch import prepare
from ptxlab.launch.contexts import context_of
from tests.gpu import programs
from tests.gpu.driver_of_python import Driver
from tests.gpu.fakes import OnGpu, Tensor, ramp


def test_a_prepared_launch_takes_arrays_on_the_gpu_only(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    options = LaunchOptions(1, 32)
    x, y = ramp(), np.ones(8, np.float32)
    prepared = prepare(module["saxpy"], [OnGpu(x), OnGpu(y), 2.0, 8], options)
    prepared.launch()
    prepared.launch()
    np.testing.assert_array_equal(y, 4 * x + 1)
    with pytest.raises(ValueError, match=r"these would be copied each time: argument 0 \(`x`\)"):
        prepare(module["saxpy"], [x, OnGpu(y), 2.0, 8], options)


def test_a_module_is_loaded_once(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    for _ in range(3):
        module["saxpy"].launch(1, 32, [ramp(), ramp(), 2.0, 8], device="cuda")
    assert fake.calls.count("cuModuleLoadDataEx") == 1


def test_what_repeats_is_checked_once(fake: Driver) -> None:
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


def test_what_changes_is_checked_again(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    args = [OnGpu(ramp()), OnGpu(ramp()), 2.0, 8]
    for grid, shared, stream in ((1, 0, 5), (2, 0, 5), (2, 64, 5), (2, 64, 6), (1, 0, 5)):
        module["saxpy"].launch(grid, 32, args, shared=shared, stream=stream, device="cuda", wait=False)
        config = fake.configs[-1]
        assert (config.gridDimX, config.sharedMemBytes, config.hStream) == (grid, shared, stream)
    for wrong, words in (
        ([*args[:3], -1 << 40], "does not fit `.u32`"),
        ([*args[:2], 1e39, 8], "argument 2"),
        ([*args[:3], 8.0], "8.0 is not an integer"),
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
    assert len(context_of(module).on_gpu.ready) == _KEPT
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

"""The same launch on the emulator and on a GPU, which a driver in Python replaces."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from tests.gpu import programs
from tests.gpu.driver_of_python import Driver
from tests.gpu.fakes import OnGpu, launch, ramp, saxpy


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

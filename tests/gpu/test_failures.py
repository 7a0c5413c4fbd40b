"""Launches on a GPU: what is said when something goes wrong."""

import gc

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from ptxlab.gpu.driver import call, current
from ptxlab.gpu.loading import Loaded, read_log
from ptxlab.report import Source
from tests.processes import run

from . import programs
from .programs import kernel, saxpy

pytestmark = pytest.mark.gpu


def test_a_module_for_another_gpu() -> None:
    with pytest.raises(ptxlab.PtxError, match="a module for `sm_120a` can't run on"):
        kernel(programs.SAXPY.replace("8.0", "8.7").replace("sm_80", "sm_120a")).launch(
            1, 1, [0, 0, 1.0, 0], device="cuda"
        )


def test_a_version_that_the_driver_does_not_read() -> None:
    with pytest.raises(ptxlab.PtxError, match=r"PTX 9\.4 is too new for this driver"):
        kernel(programs.SAXPY.replace("8.0", "9.4")).launch(1, 1, [0, 0, 1.0, 0], device="cuda", compile="driver")


def test_messages_of_the_driver_are_on_their_line() -> None:
    text = programs.SAXPY.replace("fma.rn.f32", "fma.f32")
    log = bytearray(4096)
    with pytest.raises(Exception, match="CUDA_ERROR_INVALID_PTX"):
        Loaded(text.encode() + b"\0", gpu.gpu(), log)
    found = read_log(log, Source("saxpy.ptx", text), gpu.gpu())
    print(bytes(log).split(b"\0")[0].decode())
    assert found
    assert "fma" in found[0].labels[0].span.source.line(found[0].line)


@pytest.mark.alone
def test_too_little_memory_leaks_nothing(tmp_path) -> None:
    gc.collect()  # modules of other tests
    before = free_memory()
    big = np.memmap(tmp_path / "big", dtype=np.float32, mode="w+", shape=(200 << 30) // 4)
    with pytest.raises(ptxlab.KernelError, match="too little memory"):
        saxpy(np.zeros(1 << 28, np.float32), big)
    assert free_memory() >= before


def free_memory() -> int:
    with current(0):
        return call("cuMemGetInfo")[0]


@pytest.mark.parametrize(
    ("program", "code"),
    [("WILD", "out-of-bounds"), ("MISALIGNED", "misaligned-access"), ("TRAP", "trap")],
)
def test_nothing_runs_after_a_broken_kernel_and_that_is_said(program, code) -> None:
    assert run(f"""
import numpy as np, ptxlab
from tests.gpu import programs
wrong = ptxlab.parse(programs.{program})["k"]
right = ptxlab.parse(programs.COUNT)["k"]
out = np.zeros(32, np.uint32)
right.launch(1, 1, [out], device="cuda")
for kernel in (wrong, right):
    try:
        kernel.launch(1, 1, [out] * len(kernel.parameters), device="cuda")
    except ptxlab.KernelError as problem:
        (found,) = problem.diagnostics
        assert "start" in str(problem) and 'device="cpu"' in str(problem), problem
        print(found.code)
right.launch(1, 1, [out], device="cpu")
print(out[0])
""") == f"{code}\nbroken-context\n41\n"  # fmt: skip


def test_a_kernel_that_does_not_end() -> None:
    shown = run("""
import numpy as np, ptxlab
from tests.gpu import programs
for _ in range(2):
    try:
        ptxlab.parse(programs.ENDLESS)["k"].launch(1, 1, [np.zeros(9)], device="cuda", timeout=0.2)
    except ptxlab.KernelError as problem:
        print(problem.diagnostics[0].code)
""")
    assert shown == "timeout\nbroken-context\n"

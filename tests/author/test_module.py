"""Several kernels in one module, and how fast a kernel is written."""

import time

import numpy as np
import pytest

from ptxlab.author import Module, Pointer, b32, f32, kernel, pointer, ptx, u32
from ptxlab.report import PtxError


def test_kernels_share_a_variable() -> None:
    module = Module("sm_80", lines=False)
    counter = module.declare(".visible .global .align 4 .u32 counter = 5;")

    @module.kernel
    def count():
        ptx.red.global_.add.u32(counter, 1)

    @module.kernel(maxntid=32)
    def show(x: pointer[u32]):
        x[0] = ptx.ld["global"].u32(counter)

    assert module.module.entries == ["count", "show"]
    assert ".loc" not in module.ptx
    x = np.zeros(1, np.uint32)
    module["count"].launch(grid=2, block=32)
    module["show"].launch(grid=1, block=1, args=[x])
    assert x[0] == 5 + 64
    assert show.name == "show"


def test_kernels_of_a_module_run_in_one_program() -> None:
    module = Module()
    hits: list[Pointer] = []

    @module.kernel
    def count(x: pointer[u32]):
        hits.append(ptx.global_(u32, 1, name="hits"))
        ptx.red.global_.add.u32(hits[0], 1)

    @module.kernel
    def show(x: pointer[u32]):
        x[0] = hits[0][0]

    x = np.zeros(1, np.uint32)
    count.launch(grid=2, block=32, args=[x])
    show.launch(grid=1, block=1, args=[x])
    assert x[0] == 64
    assert count.module is module.module


def test_untyped_results_are_bits() -> None:
    module = Module("sm_80", untyped=True)

    @module.kernel
    def reinterpret(x: pointer[f32]):
        bits = ptx.ld["global"].u32(x)
        assert isinstance(bits, b32)
        ptx.st["global"].f32(x, ptx.add.rn.f32(bits, bits))

    x = np.array([1.5], np.float32)
    module["reinterpret"].launch(grid=1, block=1, args=[x])
    assert x[0] == 3.0


def test_wrong_headers() -> None:
    with pytest.raises(PtxError, match="there is no target `sm_81`"):
        Module("sm_81")
    with pytest.raises(PtxError, match="'eight' is not a version of PTX"):
        kernel(version="eight")
    with pytest.raises(PtxError, match=r"there is no directive `\.maxthreads` of a kernel"):
        kernel(maxthreads=3)


def test_two_thousand_instructions_take_no_time() -> None:
    def seconds() -> float:
        @kernel
        def long(x: pointer[f32], n: u32):
            total = f32(0.0)
            for i in range(1000):
                total = ptx.fma.rn.f32(total, x[i], total)
            x[0] = total

        start = time.process_time()
        assert long.ptx.count("fma.rn.f32") == 1000
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < 0.3

"""Numbers that are subnormal, in a process whose threads flush them to zero, as XLA's do."""

import ctypes
import platform
import sys
import threading

import numpy as np
import pytest

import ptxlab

SOURCE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .f32 %f<3>;
    .reg .u64 %rd;
    ld.param.u64 %rd, [x];
    ld.global.f32 %f1, [%rd];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd], %f2;
    ret;
}
"""
# Where `fenv_t` has the bits that flush subnormal numbers, and which: `MXCSR`'s FTZ and DAZ, `FPCR`'s FZ.
FLUSHES = {"x86_64": (28, 0x8040), "aarch64": (0, 1 << 24)}


@pytest.mark.skipif(sys.platform != "linux" or platform.machine() not in FLUSHES, reason="another C library or CPU")
def test_a_thread_that_flushes_them_does_not_change_a_kernel() -> None:
    library = ctypes.CDLL("libm.so.6")
    offset, bits = FLUSHES[platform.machine()]
    kernel, tiny, found = ptxlab.parse(SOURCE)["twice"], np.float32(1e-40), np.zeros(1, np.float32)
    flushed: list[float] = []

    def run() -> None:
        environment = ctypes.create_string_buffer(64)
        library.fegetenv(environment)
        ctypes.c_uint32.from_buffer(environment, offset).value |= bits
        library.fesetenv(environment)
        flushed.append(float((np.full(1, tiny) + np.full(1, tiny))[0]))
        found[:] = np.frombuffer(tiny.tobytes(), np.float32)
        kernel.launch(1, 1, [found])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert flushed == [0.0]
    assert found.view(np.uint32)[0] == 2 * tiny.view(np.uint32)

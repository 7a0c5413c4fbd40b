"""Kernels that do not end by themselves: stopped by a time limit, Ctrl-C or what `progress` raises."""

import gc
import signal
import threading
import time

import numpy as np
import pytest

from tests.emulate.launching import kernel, launch, problem

SPIN = "again:\nadd.u32 %r1, %r1, 1;\nbra again;"


def test_ctrl_c_stops_at_once_and_says_where() -> None:
    spin = kernel(SPIN)
    spin.launch(1, 1, [], device="cpu", timeout=0.01, on_error="collect")  # compiles it before the signal comes
    started = time.perf_counter()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        spin.launch(64, 128, [], device="cpu")
    assert time.perf_counter() - started < 3
    assert "the kernel was stopped by Ctrl-C" in str(caught.value)
    assert "bra again;" in str(caught.value)
    assert launch("ret;").diagnostics == []


def test_what_progress_raises_stops_the_kernel() -> None:
    def progress(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="0 of 4"):
        launch(SPIN, grid=4, progress=progress)
    gc.collect()


def test_a_thread_that_prints_forever_is_stopped() -> None:
    before = """.extern .func (.param .b32 result) vprintf(.param .b64 text, .param .b64 arguments);
.global .align 1 .b8 text[8] = {37, 57, 57, 57, 57, 57, 100, 0};
"""
    body = """
    .local .align 8 .b8 numbers[8];
    .param .b64 first;
    .param .b64 second;
    .param .b32 count;
    st.local.u64 [numbers], 0;
    again:
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    st.param.b64 [first], %rd1;
    mov.u64 %rd2, numbers;
    cvta.local.u64 %rd2, %rd2;
    st.param.b64 [second], %rd2;
    call (count), vprintf, (first, second);
    bra again;
    """
    result = launch(body, before=before, timeout=0.5, on_error="collect")
    assert [found.code for found in result.diagnostics] == ["timeout"]
    assert 1024 <= len(result.output) <= 16 << 20


def test_endless_calls_are_stopped() -> None:
    """A loop that does nothing but call takes no fuel from the caller."""
    before = ".func f() { ret; }\n"
    start = time.perf_counter()
    found = problem("again:\ncall f;\nbra again;", before=before, timeout=0.3)
    assert found.code == "timeout"
    assert time.perf_counter() - start < 5


TREE = """.func (.param .b32 result) deeper(.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p1;
    ld.param.b32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra end;
    sub.u32 %r1, %r1, 1;
    {
        .param .b32 passed;
        .param .b32 returned;
        st.param.b32 [passed], %r1;
        call (returned), deeper, (passed);
        ld.param.b32 %r2, [returned];
    }
    {
        .param .b32 passed;
        .param .b32 returned;
        st.param.b32 [passed], %r1;
        call (returned), deeper, (passed);
        ld.param.b32 %r3, [returned];
    }
    add.u32 %r1, %r2, %r3;
end:
    st.param.b32 [result], %r1;
    ret;
}
"""
CALL = """
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
.param .b32 passed;
.param .b32 returned;
st.param.b32 [passed], %r1;
call (returned), deeper, (passed);
ld.param.b32 %r2, [returned];
st.global.b32 [%rd1], %r2;
ret;
"""


def test_a_tree_of_calls_is_stopped() -> None:
    start = time.perf_counter()
    found = problem(CALL, ".u64 p, .u32 n", [np.zeros(1, "u4"), 60], before=TREE, timeout=0.3)
    assert found.code == "timeout"
    assert time.perf_counter() - start < 5

"""Which thread is in focus, in a grid and blocks of three dimensions, and what single commands show."""

import numpy as np
import pytest

import ptxlab
from ptxlab.debug import Debugger
from ptxlab.debug.terminal import Terminal

from .kernels import DOUBLE, EXCHANGE, debugger_of

WIDE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 c) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd1, [c];
  mov.u32 %r1, %tid.z;
  setp.gt.u32 %p, %r1, 9;
  @%p mov.u32 %r2, 1;
  ret;
}
"""


@pytest.fixture(scope="module")
def wide() -> Debugger:
    kernel = ptxlab.parse(WIDE, name="k.ptx")["k"]
    result = kernel.launch(grid=(2, 3, 2), block=(2, 3, 4), args=[np.zeros(1, np.uint32)], device="cpu",
                           record=ptxlab.Record())  # fmt: skip
    assert result.trace is not None
    return Debugger(result.trace, result.diagnostics)


@pytest.mark.parametrize(
    ("asked", "focus"),
    [
        ("cuda block (1,2,1) thread (1,2,3)", "block (1,2,1), thread (1,2,3)"),
        ("cuda block 11 thread 23", "block (1,2,1), thread (1,2,3)"),
        ("cuda block 7 thread 8", "block (1,0,1), thread (0,1,1)"),
    ],
)
def test_blocks_and_threads_have_numbers_and_indices(wide: Debugger, asked: str, focus: str) -> None:
    assert focus in next(Terminal(wide, lambda _: None).answer(asked))


@pytest.mark.parametrize("asked", ["cuda block 12", "cuda block (0,3,0)", "cuda thread 24"])
def test_blocks_and_threads_that_do_not_exist(wide: Debugger, asked: str) -> None:
    assert "there is no" in next(Terminal(wide, lambda _: None).answer(asked))


def test_the_first_thread_is_that_of_the_first_step(wide: Debugger) -> None:
    thread = Debugger(wide.trace).thread
    assert 0 in wide.trace.steps_of(thread % 24, thread // 24)


def test_a_register_that_a_thread_does_not_write_can_be_watched(wide: Debugger) -> None:
    wide.go_to(0)
    wide.watch("%r2")
    assert wide.run().reason == "end"


def test_hits_are_counted_for_each_warp() -> None:
    debugger = debugger_of(EXCHANGE)
    debugger.break_at("", DOUBLE, hit_count=2)
    seen = []
    while debugger.run().reason == "breakpoint":
        seen.append((debugger.thread // 32, debugger.scope.register("%r4")))
    assert sorted(seen) == [(0, 1), (0, 2), (1, 1), (1, 2)]

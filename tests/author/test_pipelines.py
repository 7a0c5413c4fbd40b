"""Pipelines: what they write, and that kernels with them are free of races, hangs and stale reads."""

from typing import Any

import numpy as np
import pytest

from ptxlab.author import Kernel, f32, kernel, pointer, ptx, u32
from ptxlab.report import KernelError

from .writing import lines, refusal

COPY = ptx.cp["async"].ca.shared.global_
THREADS = 64


def copied(stages: int, forgotten: bool = False) -> Kernel:
    """Each thread adds up what another one copied, a row of `THREADS` numbers a stage."""

    @kernel
    def k(x: pointer[f32], y: pointer[f32], rows: u32) -> None:
        tile = ptx.tile(f32, 1, THREADS, copies=stages)
        thread = ptx.tid.x
        mine, other = tile.at(0, thread), tile.at(0, THREADS - 1 - thread)
        pipeline = ptx.copy_pipeline(stages)
        source = x + thread
        row = u32(0)

        def fill(stage: Any) -> None:
            with ptx.when(row < rows):
                COPY(mine.move(copy=stage), source, 4)
            pipeline.commit()
            for moving, by in ((source, THREADS), (row, 1)):
                moving += by

        for stage in pipeline.ahead:
            fill(stage)
        total = f32(0.0)
        for _ in ptx.range(rows):
            if not forgotten:
                pipeline.wait()
            fill(pipeline.filling.index)
            total += other.move(copy=pipeline.reading.index).load()
            pipeline.advance()
        y[thread] = total

    return k


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize("rows", [1, 4, 7])
def test_copy_pipeline(stages: int, rows: int) -> None:
    x = np.arange(rows * THREADS, dtype=np.float32).reshape(rows, THREADS)
    y = np.zeros(THREADS, np.float32)
    copied(stages).launch(grid=1, block=THREADS, args=[x, y, rows])
    assert np.array_equal(y, x.sum(0)[::-1])


def test_a_forgotten_wait_is_found_in_the_kernel() -> None:
    x, y = np.ones((4, THREADS), np.float32), np.zeros(THREADS, np.float32)
    with pytest.raises(KernelError) as raised:
        copied(3, forgotten=True).launch(grid=1, block=THREADS, args=[x, y, 4])
    assert {found.code for found in raised.value.diagnostics} <= {"data-race", "uninitialized-read"}
    assert str(raised.value.diagnostics[0].file).endswith("test_pipelines.py")


def handed_over(stages: int, target: str, waits: bool = True) -> Kernel:
    """The first warp fills stages, the second reads them."""

    @kernel(target=target)
    def k(x: pointer[f32], y: pointer[f32], rows: u32) -> None:
        tile = ptx.tile(f32, 1, 32, copies=stages)
        thread = ptx.tid.x
        pipeline = ptx.barrier_pipeline(stages, fills=32, reads=32, when=thread == 0)
        ptx.bar.sync(0)
        with ptx.when(thread < 32):
            place = tile.at(0, thread)
            side = pipeline.producer()
            for row in ptx.range(rows):
                if waits:
                    side.wait()
                place.move(copy=side.index).store(x[row * 32 + thread])
                side.arrive()
                side.advance()
        with ptx.otherwise():
            place = tile.at(0, 63 - thread)
            side = pipeline.consumer()
            total = f32(0.0)
            is_full = side.test()
            for _ in ptx.range(rows):
                side.wait(unless=is_full)
                total += place.move(copy=side.index).load()
                side.arrive()
                side.advance()
                side.test(out=is_full)
            y[thread - 32] = total

    return k


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_barrier_pipeline(stages: int, target: str) -> None:
    x = np.arange(7 * 32, dtype=np.float32).reshape(7, 32)
    y = np.zeros(32, np.float32)
    handed_over(stages, target).launch(grid=1, block=64, args=[x, y, 7])
    assert np.array_equal(y, x.sum(0)[::-1])


@pytest.mark.parametrize("stages", [2, 3])
def test_a_side_passes_over_stages(stages: int) -> None:
    """Of five tiles in turn, two warps read one each; the last has one reader."""

    @kernel(target="sm_90")
    def k(x: pointer[f32], y: pointer[f32], tiles: u32) -> None:
        tile = ptx.tile(f32, 1, 32, copies=stages)
        thread, lane = ptx.tid.x, ptx.laneid
        pipeline = ptx.barrier_pipeline(stages, fills=32, reads=32, when=thread == 0)
        ptx.bar.sync(0)
        with ptx.when(thread < 32):
            side = pipeline.producer()
            for number in ptx.range(tiles):
                side.wait()
                tile.at(0, lane, side.index).store(x[number * 32 + lane])
                side.arrive()
                side.advance()
        with ptx.otherwise():
            side, group = pipeline.consumer(), (thread >> 5) - 1
            side.advance(group)
            total = f32(0.0)
            for _ in ptx.range(group, tiles, 2):
                side.wait()
                total += tile.at(0, lane, side.index).load()
                side.arrive()
                side.advance(u32(2))
            y[thread - 32] = total

    x, y = np.arange(5 * 32, dtype=np.float32).reshape(5, 32), np.zeros((2, 32), np.float32)
    k.launch(grid=1, block=96, args=[x, y, 5])
    assert np.array_equal(y, [x[::2].sum(0), x[1::2].sum(0)])


def test_a_stage_that_is_filled_too_early_is_found() -> None:
    x, y = np.ones((7, 32), np.float32), np.zeros(32, np.float32)
    with pytest.raises(KernelError) as raised:
        handed_over(2, "sm_90", waits=False).launch(grid=1, block=64, args=[x, y, 7])
    assert raised.value.diagnostics[0].code in ("data-race", "hang")  # a reader may miss a whole phase


def test_what_is_written() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        side = ptx.barrier_pipeline(2, fills=1, reads=64, when=n == 0).consumer()
        side.wait()
        side.arrive()
        side.advance()

    assert lines(write, target="sm_90")[5:] == [
        "@!%p1 bra $end_1;",
        "mbarrier.init.shared.b64 [filled], 1;",
        "mbarrier.init.shared.b64 [emptied], 64;",
        "mbarrier.init.shared.b64 [filled+8], 1;",
        "mbarrier.init.shared.b64 [emptied+8], 64;",
        "$end_1:",
        "mov.u32 %r5, 0;",
        "mov.u32 %r6, 0;",
        "mad.lo.u32 %r7, %r5, 8, %r3;",
        "$loop_2:",
        "mbarrier.try_wait.parity.shared.b64 %p2, [%r7], %r6;",
        "@!%p2 bra $loop_2;",
        "$end_3:",
        "mad.lo.u32 %r8, %r5, 8, %r4;",
        "mbarrier.arrive.shared.b64 _, [%r8];",
        "add.u32 %r5, %r5, 1;",
        "setp.eq.u32 %p3, %r5, 2;",
        "@%p3 mov.u32 %r5, 0;",
        "@%p3 xor.b32 %r6, %r6, 1;",
    ]


def test_refused() -> None:
    found = refusal(lambda x, n, s, a: ptx.copy_pipeline(1))
    assert (found.code, found.message) == ("illegal-declaration", "1 stages are not a pipeline")

"""Some blocks of a grid of three dimensions: those that are run, with their clusters, and those that are recorded."""

import numpy as np
import pytest

import ptxlab
from tests.tools import header

TEXT = (
    header("8.0", "sm_90")
    + """
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
    mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2;
    mad.lo.u32 %r6, %r6, %r4, %r1;
    mad.wide.u32 %rd2, %r6, 4, %rd1;
    st.global.u32 [%rd2], 1;
    ret;
}
"""
)
GRID = (4, 4, 2)


def launched(**how: object) -> tuple[np.ndarray, ptxlab.Result]:
    out = np.zeros(GRID[::-1], np.uint32)
    result = ptxlab.parse(TEXT, "k.ptx")["k"].launch(grid=GRID, block=1, args=[out], device="cpu", **how)
    return out, result


@pytest.mark.parametrize(("cluster", "block"), [((2, 2, 1), (3, 2, 1)), ((1, 1, 2), (2, 3, 1)), (None, (1, 2, 1))])
def test_a_block_runs_with_its_cluster(cluster: tuple[int, int, int] | None, block: tuple[int, int, int]) -> None:
    out, _ = launched(cluster=cluster, blocks=[block])
    width, height, depth = cluster or (1, 1, 1)
    x, y, z = (at // size * size for at, size in zip(block, cluster or (1, 1, 1), strict=True))
    wanted = np.zeros_like(out)
    wanted[z : z + depth, y : y + height, x : x + width] = 1
    assert np.array_equal(out, wanted)


def test_only_the_block_is_recorded_that_was_asked_for() -> None:
    out, result = launched(record=ptxlab.Record(blocks=[(1, 2, 1)]))
    assert out.all()
    assert result.trace is not None
    assert result.trace.blocks == [1 + 4 * (2 + 4 * 1)]

"""Stores of boxes that all lanes of a warp start, as CUTLASS's epilogues do: the same box is not a race."""

import numpy as np
import pytest

import ptxlab

KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128])
{
    .reg .b32 %t, %at, %tile;
    .reg .b64 %map;
    .shared .align 128 .b8 tile[8192];
    mov.u32 %t, %tid.x;
    mov.u32 %tile, tile;
    shl.b32 %at, %t, 2;
    add.u32 %at, %at, %tile;
    st.shared.u32 [%at], %t;
    st.shared.u32 [%at+128], %t;
    fence.proxy.async.shared::cta;
    bar.warp.sync -1;
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    and.b32 %t, %t, LANES;
    shl.b32 %t, %t, 7;
    add.u32 %tile, %tile, %t;
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%map, {0}], [%tile];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""


@pytest.mark.parametrize(("lanes", "codes"), [(0, []), (1, ["data-race"])])
@pytest.mark.parametrize("seed", range(3))
def test_all_lanes_store_a_box(lanes: int, codes: list[str], seed: int) -> None:
    out = np.zeros(32, np.uint32)
    kernel = ptxlab.parse(KERNEL.replace("LANES", str(lanes)))["k"]
    args = [ptxlab.tensor_map(out, box=(32,))]
    result = kernel.launch(1, 32, args, device="cpu", on_error="collect", seed=seed)
    assert [diagnostic.code for diagnostic in result.diagnostics] == codes
    assert np.array_equal(out, np.arange(32))

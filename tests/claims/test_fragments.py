"""What the texts say about who holds which element of a matrix, tried on the emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.layouts import fragments

F16 = fragments("m16n8k16", "f16", "f16", "f32", "f32")

PRODUCT = """.version 7.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c)
{{
    .shared .align 16 .b8 left[512];
    .shared .align 16 .b8 right[256];
    .reg .pred %has;
    .reg .b32 %lane, %quad, %row, %column, %at, %slot, %a<4>, %b<2>, %c<2>, %w<4>;
    .reg .b64 %from, %to;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %from, [a];
    mad.wide.u32 %from, %lane, 16, %from;
    ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [%from];
    mov.u32 %slot, left;
    mad.lo.u32 %slot, %lane, 16, %slot;
    st.shared.v4.b32 [%slot], {{%w0, %w1, %w2, %w3}};
    setp.lt.u32 %has, %lane, 16;
    ld.param.u64 %from, [b];
    mad.wide.u32 %from, %lane, 16, %from;
    @%has ld.global.v4.b32 {{%w0, %w1, %w2, %w3}}, [%from];
    mov.u32 %slot, right;
    mad.lo.u32 %slot, %lane, 16, %slot;
    @%has st.shared.v4.b32 [%slot], {{%w0, %w1, %w2, %w3}};
    bar.warp.sync 0xffffffff;

    // The 8 x 8 blocks of the left matrix: lanes 0 to 7 give the rows of the first, and so on.
    shr.u32 %quad, %lane, 3;
    and.b32 %row, %lane, 7;
    and.b32 %column, %quad, 1;
    shr.u32 %quad, %quad, 1;
    mad.lo.u32 %row, {down}, 8, %row;
    shl.b32 %column, {across}, 4;
    mov.u32 %at, left;
    mad.lo.u32 %at, %row, 32, %at;
    add.u32 %at, %at, %column;
    ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%a0, %a1, %a2, %a3}}, [%at];

    // Of the right one lanes 0 to 15 give rows; what the others give is not used.
    mov.u32 %at, right;
    mad.lo.u32 %at, %lane, 16, %at;
    selp.b32 %at, %at, {others}, %has;
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%b0, %b1}}, [%at];
    mov.b32 %c0, 0;
    mov.b32 %c1, 0;
    mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{%c0, %c1}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{%c0, %c1}};

    // Lane l has words l and 32 + l of the product.
    ld.param.u64 %to, [c];
    mad.wide.u32 %to, %lane, 4, %to;
    st.global.b32 [%to], %c0;
    st.global.b32 [%to+128], %c1;
    ret;
}}
"""
AS_IN_THE_NOTE = {"down": "%quad", "across": "%column", "trans": ".trans", "others": "0"}
AS_IT_SHOULD_BE = {"down": "%column", "across": "%quad", "trans": "", "others": "0"}


def product(**how: str) -> tuple[Any, Any, Any]:
    """A, B and what the kernel makes of them: small whole numbers, so that all of it is exact."""
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    c = np.full((16, 8), np.nan, np.float16)
    result = ptxlab.parse(PRODUCT.format(**how))["product"].launch(1, 32, [a, b, c], device="cpu")
    assert result.diagnostics == []
    return a.astype(int), b.astype(int), c.astype(int)


def test_trans_for_a_makes_the_product_with_its_transpose() -> None:
    a, b, c = product(**AS_IN_THE_NOTE)
    assert (c == a.T @ b).all()
    assert not (c == a @ b).all()


def test_without_trans_and_with_blocks_down_first_it_is_the_product() -> None:
    a, b, c = product(**AS_IT_SHOULD_BE)
    assert (c == a @ b).all()


def test_x2_uses_the_addresses_of_16_lanes() -> None:
    a, b, c = product(**AS_IT_SHOULD_BE | {"others": "0x00ffff01"})
    assert (c == a @ b).all()


def test_a_lane_has_8_4_and_4_elements() -> None:
    assert [len(layout.held(0)) for layout in (F16.a, F16.b, F16.c)] == [8, 4, 4]


def test_a_lane_has_a_pair_in_row_g_and_one_in_row_g_plus_8() -> None:
    for lane in range(32):
        row, column = lane // 4, 2 * (lane % 4)
        assert F16.c.held(lane) == ((row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1))


def test_two_words_for_each_lane_are_the_matrix_by_rows() -> None:
    flat = {lane: [8 * row + column for row, column in F16.c.held(lane)] for lane in range(32)}
    assert all(flat[lane] == [2 * lane, 2 * lane + 1, 64 + 2 * lane, 65 + 2 * lane] for lane in range(32))


def test_two_accumulators_are_a_left_operand_without_exchange() -> None:
    for lane in range(32):
        left, right = ([(row, column + shift) for row, column in F16.c.held(lane)] for shift in (0, 8))
        assert F16.a.held(lane) == (*left[:2], *left[2:], *right[:2], *right[2:])


def test_a_row_belongs_to_four_lanes() -> None:
    for row in range(16):
        lanes = [lane for lane in range(32) if any(held == row for held, _ in F16.c.held(lane))]
        assert lanes == list(range(4 * (row % 8), 4 * (row % 8) + 4))


SOFTMAX = """.version 7.0
.target sm_80
.address_size 64
.visible .entry softmax(.param .u64 scores)
{{
    .reg .b32 %lane;
    .reg .f32 %c<4>, %max<2>, %sum<2>, %part;
    .reg .b64 %at;
    mov.u32 %lane, %tid.x;
    ld.param.u64 %at, [scores];
    mad.wide.u32 %at, %lane, 8, %at;
    ld.global.v2.f32 {{%c0, %c1}}, [%at];
    ld.global.v2.f32 {{%c2, %c3}}, [%at+256];
    max.f32 %max0, %c0, %c1;
    max.f32 %max1, %c2, %c3;
    {across_max}
    sub.f32 %c0, %c0, %max0;
    sub.f32 %c1, %c1, %max0;
    sub.f32 %c2, %c2, %max1;
    sub.f32 %c3, %c3, %max1;
    {exponentials}
    add.f32 %sum0, %c0, %c1;
    add.f32 %sum1, %c2, %c3;
    {across_sum}
    div.approx.f32 %c0, %c0, %sum0;
    div.approx.f32 %c1, %c1, %sum0;
    div.approx.f32 %c2, %c2, %sum1;
    div.approx.f32 %c3, %c3, %sum1;
    st.global.v2.f32 [%at], {{%c0, %c1}};
    st.global.v2.f32 [%at+256], {{%c2, %c3}};
    ret;
}}
"""


def softmax(distances: list[int], rows_together: bool) -> Any:
    """Softmax of a 16 x 8 accumulator, reduced over lanes at these distances, the lane's two rows apart or together."""

    def across(operation: str, value: str) -> str:
        merge = (
            f"{operation}.f32 %{value}0, %{value}0, %{value}1; mov.f32 %{value}1, %{value}0;" if rows_together else ""
        )
        steps = (
            f"shfl.sync.bfly.b32 %part, %{value}{row}, {distance}, 0x1f, 0xffffffff; "
            f"{operation}.f32 %{value}{row}, %{value}{row}, %part;"
            for row in (0, 1)
            for distance in distances
        )
        return "\n    ".join([merge, *steps])

    exponentials = "\n    ".join(
        f"mul.f32 %c{i}, %c{i}, 0f3FB8AA3B; ex2.approx.ftz.f32 %c{i}, %c{i};" for i in range(4)
    )
    text = SOFTMAX.format(across_max=across("max", "max"), across_sum=across("add", "sum"), exponentials=exponentials)
    scores = np.random.default_rng(1).standard_normal((16, 8)).astype(np.float32)
    weights = scores.copy()
    ptxlab.parse(text)["softmax"].launch(1, 32, [weights], device="cpu")
    return scores, weights


def test_softmax_over_the_four_lanes_of_a_row_is_by_rows() -> None:
    scores, weights = softmax([1, 2], rows_together=False)
    exponentials = np.exp(scores.astype(float))
    assert np.allclose(weights, exponentials / exponentials.sum(1, keepdims=True), rtol=1e-5)


def test_softmax_over_all_lanes_is_over_the_whole_tile() -> None:
    scores, weights = softmax([16, 8, 4, 2, 1], rows_together=True)
    exponentials = np.exp(scores.astype(float))
    assert np.allclose(weights, exponentials / exponentials.sum(), rtol=1e-5)
    assert (weights.sum(1) < 0.5).all()


@pytest.mark.parametrize("first", [0, 32, 224])
def test_32_neighbours_of_a_matrix_of_16_columns_are_two_rows(first: int) -> None:
    assert len({element // 16 for element in range(first, first + 32)}) == 2

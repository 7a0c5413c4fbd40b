"""What the texts say is allowed or forbidden, put to ptxlab and, where there is one, to ptxas."""

import pytest

import ptxlab
from ptxlab.toolchain import accepted, judge
from tests.claims.asking import is_legal, module
from tests.tools import is_there, needs_ptxas

F16 = "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3}"
ACCUMULATORS = ", ".join(f"%f{i}" for i in range(128))
WGMMA = f"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{ACCUMULATORS}}}, %rd1, %rd2, %p0, 1, 1"


@pytest.mark.parametrize(("modifier", "sizes"), [("cg", [16]), ("ca", [4, 8, 16])])
def test_cp_async_cg_takes_16_bytes_only(modifier: str, sizes: list[int]) -> None:
    copy = "cp.async.{}.shared.global [%r0], [%rd0], {};"
    assert [size for size in (1, 2, 4, 8, 16, 32) if is_legal(copy.format(modifier, size))] == sizes


def test_a_shared_address_may_have_64_bits() -> None:
    assert is_legal("cp.async.cg.shared.global [%rd1], [%rd0], 16;")
    assert is_legal("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%rd1];")


@pytest.mark.parametrize("statement", ["add.u32 %r0, %tid.x, 1;", "setp.eq.u32 %p0, %tid.x, 0;",
                                       "mad.lo.u32 %r0, %ctaid.x, %ntid.x, %r1;"])  # fmt: skip
def test_special_registers_are_not_operands(statement: str) -> None:
    assert not is_legal(statement)


def test_special_registers_can_be_moved_and_converted() -> None:
    assert is_legal("mov.u32 %r0, %tid.x;")
    assert is_legal("cvt.u64.u32 %rd1, %tid.x;")


def test_special_registers_are_read_only() -> None:
    assert not is_legal("mov.u32 %tid.x, %r0;")


def test_registers_are_numbered_from_0() -> None:
    assert is_legal("mov.f32 %f0, 0f00000000; mov.f32 %f127, 0f00000000;")
    assert not is_legal("mov.f32 %f128, 0f00000000;")


def test_there_is_no_load_from_texture_space() -> None:
    assert not is_legal("ld.tex.f32 %f0, [%rd0];")


@pytest.mark.parametrize("comment", ["// first\n", "/* first */ "])
def test_comments_may_precede_the_version(comment: str) -> None:
    text = module("", before=comment)
    assert ptxlab.check(ptxlab.parse(text)) == []
    if is_there("ptxas"):
        assert accepted(judge(text))


def test_version_comes_before_target_and_both_are_needed() -> None:
    for wrong in (".target sm_80\n.version 8.0\n", ".version 8.0\n", ".target sm_80\n"):
        with pytest.raises(ptxlab.PtxError):
            ptxlab.parse(f"{wrong}.visible .entry k() {{ ret; }}\n")


def test_there_are_branches() -> None:
    assert is_legal("bra there; there: add.u32 %r0, %r0, 1;")


def test_mma_m16n8k16_has_4_2_and_4_registers() -> None:
    assert is_legal(f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {F16};")
    assert is_legal(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%r0, %r1};"
    )


@pytest.mark.parametrize("layouts", ["row.row", "col.col", "col.row"])
def test_mma_m16n8k16_is_row_col_only(layouts: str) -> None:
    assert not is_legal(f"mma.sync.aligned.m16n8k16.{layouts}.f32.f16.f16.f32 {F16};")


def test_aligned_is_required() -> None:
    assert not is_legal(f"mma.sync.m16n8k16.row.col.f32.f16.f16.f32 {F16};")
    assert not is_legal("ldmatrix.sync.m8n8.x2.shared.b16 {%r0, %r1}, [%r4];")


def test_fp8_in_m16n8k16_has_half_the_registers() -> None:
    operands = "{%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f0, %f1, %f2, %f3}"
    fp8 = f"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {operands};"
    assert is_legal(fp8)
    assert not is_legal(fp8, version="8.6")
    assert not is_legal(fp8, target="sm_80")


def test_wmma_has_no_m16n8k16() -> None:
    wmma = "wmma.load.a.sync.aligned.row.{}.global.f16 {{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}}, [%rd0];"
    shapes = ("m16n16k16", "m32n8k16", "m8n32k16", "m16n8k16", "m16n8k8")
    assert [shape for shape in shapes if is_legal(wmma.format(shape))] == ["m16n16k16", "m32n8k16", "m8n32k16"]


def test_newer_targets_load_other_tiles_than_8_by_8() -> None:
    other = "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2];"
    assert is_legal(other, "sm_100a")
    assert not is_legal(other, "sm_90a")


def test_wgmma_takes_two_operands_more_than_the_text_gives() -> None:
    assert not is_legal(f"{WGMMA};")
    assert is_legal(f"{WGMMA}, 0, 0;")
    assert not is_legal(f"{WGMMA}, 0, 0;", "sm_100a")


@needs_ptxas
def test_ptx_for_sm_80_serves_later_targets() -> None:
    text = module("add.u32 %r0, %r1, %r2;", "sm_80")
    assert all(accepted(judge(text, target)) for target in ("sm_89", "sm_90a", "sm_100a", "sm_120a"))


@needs_ptxas
def test_ptx_for_sm_90a_serves_that_target_alone() -> None:
    text = module("add.u32 %r0, %r1, %r2;", "sm_90a")
    assert [target for target in ("sm_90a", "sm_100a", "sm_120a") if accepted(judge(text, target))] == ["sm_90a"]


def test_scale_factors_are_copied_to_all_four_warps() -> None:
    assert not is_legal("tcgen05.cp.cta_group::1.32x128b [%r0], %rd1;", "sm_100a")
    assert is_legal("tcgen05.cp.cta_group::1.32x128b.warpx4 [%r0], %rd1;", "sm_100a")


@pytest.mark.parametrize(("columns", "legal"), [(32, True), (512, True), (1024, False), (48, False)])
def test_tensor_memory_has_512_columns(columns: int, legal: bool) -> None:
    text = f"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], {columns};"
    assert is_legal(text, "sm_100a") == legal


def test_the_collector_keeps_a_only() -> None:
    mma = "tcgen05.mma.cta_group::1.kind::f16{} [%r0], %rd1, %rd2, %r1, %p0;"
    kinds = ("", ".collector::a::fill", ".collector::a::use", ".collector::a::lastuse", ".collector::a::discard")
    assert all(is_legal(mma.format(kind), "sm_100a") for kind in kinds)
    assert not is_legal(mma.format(".collector::b::fill"), "sm_100a")


@pytest.mark.parametrize(
    ("statement", "legal"),
    [
        ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p0;", True),
        ("tcgen05.mma.sp.cta_group::2.kind::f16 [%r1], %rd1, %rd2, [%r3], %r2, %p0;", True),
        ("tcgen05.mma.cta_group::2.kind::f16.collector::a::fill [%r1], %rd1, %rd2, %r2, %p0;", True),
        ("tcgen05.mma.cta_group::2.kind::f16 [%r1], [%r5], %rd2, %r2, %p0;", True),
        ("tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p0;", False),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 "
         "[%r1], [%rd1, {%r3, %r4}], [%r2], %h0;", True),
        ("tcgen05.shift.cta_group::2.down [%r1]; tcgen05.shift.cta_group::1.down [%r1];", False),
    ],
)  # fmt: skip
def test_pairs_go_with_everything_but_ws(statement: str, legal: bool) -> None:
    assert is_legal(statement, "sm_100a", "8.8") == legal


def test_cp_fenceproxy_is_for_a_whole_warp() -> None:
    fence = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu{} [%rd0], [%r0], 128;"
    assert not is_legal(fence.format(""))
    assert is_legal(fence.format(".sync.aligned"))


def test_multicast_goes_to_shared_cluster() -> None:
    modifiers = "global.mbarrier::complete_tx::bytes.multicast::cluster"
    copy = f"cp.async.bulk.tensor.2d.shared::{{}}.{modifiers} [%r0], [%rd0, {{{{%r1, %r2}}}}], [%r3], %h0;"
    assert is_legal(copy.format("cluster"))
    assert not is_legal(copy.format("cta"))


def test_an_arrival_in_another_block_returns_nothing() -> None:
    arrive = "mbarrier.arrive.expect_tx.release.cluster.shared::{}.b64 {}, [%r0], %r1;"
    assert is_legal(arrive.format("cluster", "_"))
    assert not is_legal(arrive.format("cluster", "%rd1"))
    assert is_legal(arrive.format("cta", "%rd1"))


def test_the_proxy_fence_is_spelled_as_the_text_has_it() -> None:
    assert is_legal("fence.proxy.async.shared::cta;")


def test_fp4_is_converted_on_newer_targets_only() -> None:
    fp4 = "cvt.rn.f16x2.e2m1x2 %r0, %b0;"
    assert is_legal(fp4, "sm_100a")
    assert not is_legal(fp4, "sm_90a")
    assert is_legal("cvt.rn.f16x2.e4m3x2 %r0, %h0;", "sm_89")


def test_types_of_accumulators_differ_for_m8n8k4_only() -> None:
    small = "mma.sync.aligned.m8n8k4.row.col.{}.f16.f16.{} {}, {{%r4, %r5}}, {{%r6, %r7}}, {};"
    floats = "{" + ", ".join(f"%f{i}" for i in range(8)) + "}"
    halves = "{%r0, %r1, %r2, %r3}"
    assert is_legal(small.format("f32", "f16", floats, halves), "sm_80")
    for shape, a, b in (("m16n8k8", "{%r4, %r5}", "{%r6}"), ("m16n8k16", "{%r4, %r5, %r6, %r7}", "{%r8, %r9}")):
        mma = f"mma.sync.aligned.{shape}.row.col.f32.f16.f16.TYPE {{%f0, %f1, %f2, %f3}}, {a}, {b}, C;"
        assert not is_legal(mma.replace("TYPE", "f16").replace("C;", "{%r0, %r1};"))
        assert is_legal(mma.replace("TYPE", "f32").replace("C;", "{%f0, %f1, %f2, %f3};"))


def test_setp_writes_predicates_and_set_does_not() -> None:
    assert is_legal("setp.lt.s32 %p0, %r0, %r1;")
    assert not is_legal("set.lt.s32 %p0, %r0, %r1;")
    assert is_legal("set.lt.u32.s32 %r2, %r0, %r1;")

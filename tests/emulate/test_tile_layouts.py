"""Descriptors that do not agree with the tensor map of the copy that wrote the tile: found on every seed.

What threads write, and the right twins, are the files `tests/cases/tensor/overlapping_*`.
"""

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from ptxlab.device.result import Result
from ptxlab.kernels import tcgen05_gemm, wgmma_gemm, wgmma_grouped_gemm
from ptxlab.measure import Launch

FIELDS = {"swizzle": 1 << 62, "stride": 1 << 32, "half the stride": 3 << 37, "twice": 3 << 38, "leading": 1 << 16}
A, B = 1, 2  # operands of an MMA; both together are A | B


def launch_of(kind: str) -> tuple[Launch, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (128, 64)).astype(np.float16) for _ in range(2))
    d = np.zeros((128, 128), np.float16)
    if kind == "tcgen05":
        return tcgen05_gemm.product(a, b, d, step="one_tile"), d, a @ b.T
    if kind == "array":  # B is one of several matrices, and a box has 16 rows
        tile = replace(wgmma_grouped_gemm.SMALL, columns=16)
        return wgmma_grouped_gemm.product(a, b[None], np.array([128], np.int32), d, tile), d, a @ b.T
    if kind == "columns":  # of A and B run along k: tiles are MN-major
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    return wgmma_gemm.product(a, b, d, wgmma_gemm.SMALL), d, a @ b.T


def run(kind: str, operand: int = 0, bits: int = 0, seed: int = 0, number: int = 0) -> tuple[Result, bool]:
    """With some bits of a descriptor changed, at the first MMA or another."""
    launch, d, expected = launch_of(kind)
    text = ptxlab.format(launch.module)
    if operand:
        opcode = "tcgen05.mma" if kind == "tcgen05" else "wgmma.mma_async"
        match = [*re.finditer(rf"{opcode}[^;]*?(\]|\}}), (%\w+), (%\w+)[^;]*;", text)][number]
        changed = match[0]
        for name in (match[one + 1] for one in (A, B) if operand & one):
            other = f"%other_{name[1:]}"
            changed = (
                f"{{ .reg .b64 {other}; xor.b64 {other}, {name}, {bits}; {changed.replace(name + ',', other + ',')} }}"
            )
        text = text.replace(match[0], changed)
    kernel = ptxlab.parse(text, name="k.ptx")[launch.function.name]
    how = {"shared": launch.shared, "device": "cpu", "seed": seed, "on_error": "collect", "timeout": 60}
    result = kernel.launch(launch.grid, launch.block, launch.args, **how)
    return result, bool(np.array_equal(d, expected))


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("kind", ["tcgen05", "wgmma"])
@pytest.mark.parametrize(
    ("operand", "field", "message"),
    [
        (A, "swizzle", "matrix A is read with no swizzle, and was written with 128B swizzle"),
        (B, "swizzle", "matrix B is read with no swizzle, and was written with 128B swizzle"),
        (A, "stride", "rows 8 to 15 of matrix A are read 1040 bytes after rows 0 to 7, and were written 1024 bytes"),
        (B, "half the stride", "rows 8 to 15 of matrix B are read 512 bytes after rows 0 to 7, and were"),
    ],
)
def test_a_field_that_does_not_agree(kind: str, operand: int, field: str, message: str) -> None:
    result, is_right = run(kind, operand, FIELDS[field])
    assert not is_right
    (found,) = [found for found in result.diagnostics if found.level == "error"]
    assert found.code == "mismatched-descriptor"
    assert found.message.startswith(message)
    assert found.labels[1].text == "this copy wrote it: rows of 128 bytes, 128B swizzle"


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("kind", "operand", "number", "start", "message"),
    [
        ("wgmma", A, 1, 1, r"matrix A starts at byte \d+ of shared memory, in the middle of a K slice"),
        ("tcgen05", A, 3, 5, r"matrix A starts at byte \d+ of shared memory, in the middle of a K slice"),
        ("wgmma", B, 1, 0, "A is read at K slice 1 of its tile and B at K slice 0, which is another k"),
        ("tcgen05", B, 1, 4, "A is read at K slice 1 of its tile and B at K slice 2, which is another k"),
        ("wgmma", A | B, 1, 0, "MMAs read K slices 0, 2, 3 of a tile of 4, and none reads K slice 1"),
        ("tcgen05", A | B, 2, 2, "MMAs read K slices 0, 1, 3 of a tile of 4, and none reads K slice 2"),
        ("wgmma", A | B, 3, 0, "MMAs read K slices 0, 1, 2 of a tile of 4, and none reads K slice 3"),
        (
            "wgmma",
            A | B,
            3,
            8,
            r"matrix B starts at byte \d+ of shared memory, in another row than the slice before it",
        ),
    ],
)
def test_a_wrong_step_of_k(kind: str, operand: int, number: int, start: int, message: str) -> None:
    """MMAs `number` of a row of 128 bytes start at chunks 0, 2, 4 and 6 of it."""
    result, is_right = run(kind, operand, 2 * number ^ start, number=number)
    assert not is_right
    (found,) = result.diagnostics
    assert (found.level, found.code) == ("warning", "mismatched-descriptor")
    assert re.fullmatch(message, found.message)


@pytest.mark.parametrize("kind", ["tcgen05", "wgmma"])
def test_elements_of_another_type(kind: str) -> None:
    """Tensor maps of f16, MMAs of bf16. What copies of integers bring may be anything."""
    launch, _, _ = launch_of(kind)
    text = ptxlab.format(launch.module)
    if kind == "wgmma":
        changed = text.replace(".f32.f16.f16 ", ".f32.bf16.bf16 ")
    else:
        changed = text.replace(", 0x8100010, ", f", {0x8100010 | 1 << 7 | 1 << 10}, ")
    assert changed != text
    kernel = ptxlab.parse(changed, name="k.ptx")[launch.function.name]
    how = {"shared": launch.shared, "device": "cpu", "on_error": "collect"}
    (found,) = kernel.launch(launch.grid, launch.block, launch.args, **how).diagnostics
    assert (found.level, found.code) == ("warning", "mismatched-descriptor")
    assert found.message == "matrix A is multiplied as bf16, and its tensor map has elements of f16"
    assert found.labels[1].text == "this copied elements of f16"
    assert "so do 3 more MMAs of the kernel" in found.notes


@pytest.mark.parametrize(
    ("operand", "start", "message"),
    [
        (A | B, 130, r"matrix B starts at byte \d+ of shared memory, in the middle of a K slice"),
        (B, 160, r"matrix B starts at byte \d+ of shared memory, in the middle of a K slice"),
        (A, 0, "A is read at K slice 0 of its tile and B at K slice 1, which is another k"),
        (A | B, 0, "MMAs read K slices 0, 2, 3 of a tile of 4, and none reads K slice 1"),
    ],
)
def test_a_wrong_step_of_k_of_columns(operand: int, start: int, message: str) -> None:
    """The second MMA starts 16 rows of 128 bytes after the first."""
    result, is_right = run("columns", operand, 128 ^ start, number=1)
    assert not is_right
    (found,) = result.diagnostics
    assert (found.level, found.code) == ("warning", "mismatched-descriptor")
    assert re.fullmatch(message, found.message)


def test_columns_are_read_as_they_are_written() -> None:
    result, is_right = run("columns")
    assert is_right
    assert result.diagnostics == [], ptxlab.report.render(result.diagnostics)


def test_a_matrix_of_an_array_of_them_has_rows_like_any() -> None:
    result, _ = run("array", B, FIELDS["twice"], number=1)
    assert {one.code for one in result.diagnostics} == {"mismatched-descriptor"}


@pytest.mark.parametrize("kind", ["tcgen05", "wgmma"])
def test_fields_that_agree_or_do_not_matter(kind: str) -> None:
    """With a swizzle, a K-major matrix of one row of it has no use for the leading offset."""
    for operand, bits in ((0, 0), (A, FIELDS["leading"])):
        result, is_right = run(kind, operand, bits)
        assert is_right
        assert result.diagnostics == [], ptxlab.report.render(result.diagnostics)


LOADED = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])
{
    .reg .pred %p;
    .reg .b32 %r<9>;
    .reg .b64 %rd<3>;
    .shared .align 1024 .b8 tile[2048];
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @%p bra ready;
    mbarrier.init.shared.b64 [full], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 2048;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1, {0, 0}], [full];
ready:
    bar.sync 0;
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [full], 0;
    @!%p bra wait;
    mov.u32 %r2, tile;
    and.b32 %r3, %r1, 15;
    shl.b32 %r4, %r3, 7;
    shr.u32 %r5, %r1, 4;
    add.u32 %r5, %r5, 2;
    SWIZZLE
    shl.b32 %r5, %r5, 4;
    add.u32 %r2, %r2, %r4;
    add.u32 %r2, %r2, %r5;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r2];
    ld.param.u64 %rd2, [out];
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    st.global.b32 [%rd2], %r5;
    ret;
}
"""


@pytest.mark.parametrize("written", [None, "128B"])
@pytest.mark.parametrize("read", [None, "128B", "64B"])
def test_threads_that_read_by_a_swizzle(written: str | None, read: str | None) -> None:
    """Rows of 128 bytes; lanes 0 to 15 read a column of chunks by `ldmatrix`, and the others the next one."""
    swizzle = {
        None: "",
        "128B": "and.b32 %r6, %r3, 7;\n    xor.b32 %r5, %r5, %r6;",
        "64B": "and.b32 %r6, %r3, 3;\n    xor.b32 %r5, %r5, %r6;",
    }[read]
    a = np.arange(16 * 64).astype(np.float16).reshape(16, 64)
    out = np.zeros(32, np.uint32)
    kernel = ptxlab.parse(LOADED.replace("SWIZZLE", swizzle), name="k.ptx")["k"]
    args = [out, ptxlab.tensor_map(a, box=(16, 64), swizzle=written)]
    found = kernel.launch(1, 32, args, device="cpu", on_error="collect").diagnostics
    if written == read:
        assert found == []
        assert out.view(np.float16)[:8].tolist() == a[0, 16:24].tolist()
        return
    ((level, message),) = [(one.level, one.message) for one in found]
    name = {None: "no swizzle"}
    texts = [name.get(one, f"{one} swizzle") for one in (read, written)]
    assert level == ("error" if written else "warning")
    assert message == f"threads read a tile with {texts[0]}, and it was written with {texts[1]}"


BY_LDMATRIX = """
    and.b32 %r3, %r1, 15;
    shl.b32 %r4, %r3, 7;
    shr.u32 %r5, %r1, 4;
    SWIZZLE
    shl.b32 %r5, %r5, 4;
    add.u32 %r2, %r2, %r4;
    add.u32 %r2, %r2, %r5;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%r2];
"""
BY_LD = """
    shr.u32 %r3, %r1, 2;
    and.b32 %r6, %r1, 3;
    shl.b32 %r6, %r6, 2;
    shl.b32 %r4, %r3, 7;
    add.u32 %r2, %r2, %r4;
    mov.u32 %r5, 0;
    SWIZZLE
    shl.b32 %r5, %r5, 4;
    add.u32 %r7, %r5, %r6;
    add.u32 %r7, %r7, %r2;
    xor.b32 %r5, %r5, 16;
    add.u32 %r8, %r5, %r6;
    add.u32 %r8, %r8, %r2;
    ld.shared.b32 %a0, [%r7];
    ld.shared.b32 %a1, [%r7+1024];
    ld.shared.b32 %a2, [%r8];
    ld.shared.b32 %a3, [%r8+1024];
"""
MULTIPLIED = (
    LOADED[: LOADED.index("    and.b32")].replace(
        ".reg .b32 %r<9>;", ".reg .b32 %r<9>, %a<4>, %c<4>;\n .reg .f32 %f<4>;"
    )
    + """
    LOAD
    mov.b32 %c0, %a0;
    mma.sync.aligned.m16n8k16.row.col.f32.TYPE.TYPE.f32 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, {%c0, %a2},
        {0f00000000, 0f00000000, 0f00000000, 0f00000000};
    ld.param.u64 %rd2, [out];
    mad.wide.u32 %rd2, %r1, 16, %rd2;
    st.global.v4.f32 [%rd2], {%f0, %f1, %f2, %f3};
    ret;
}
"""
)
XOR = "and.b32 %r0, %r3, 7;\n    xor.b32 %r5, %r5, %r0;"


def multiply(load: str, type: str, copied: object, swizzle: str | None = "128B", xor: str = XOR) -> tuple[Result, bool]:
    """16 rows, of which the first 16 columns are multiplied with those of the first eight."""
    a = np.random.default_rng(0).integers(-4, 5, (16, 64)).astype(copied)
    out = np.zeros(128, np.float32)
    text = MULTIPLIED.replace("LOAD", load).replace("TYPE", type).replace("SWIZZLE", xor)
    args = [out, ptxlab.tensor_map(a, box=(16, 64), swizzle=swizzle)]
    result = ptxlab.parse(text, name="k.ptx")["k"].launch(1, 32, args, device="cpu", on_error="collect")
    lane, of_lane = np.divmod(np.arange(128), 4)
    row, column = lane // 4 + 8 * (of_lane // 2), lane % 4 * 2 + of_lane % 2
    expected = a[:, :16].astype(np.float32) @ a[:8, :16].astype(np.float32).T
    return result, bool(np.array_equal(out, expected[row, column]))


@pytest.mark.parametrize("load", [BY_LDMATRIX, BY_LD], ids=["ldmatrix", "ld"])
def test_fragments_of_another_type(load: str) -> None:
    """What copies of integers bring may be anything; other instructions than MMAs may convert it."""
    for type, copied in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        result, is_right = multiply(load, type, copied)
        assert is_right
        assert result.diagnostics == [], ptxlab.report.render(result.diagnostics)
    assert multiply(load, "bf16", np.uint16)[0].diagnostics == []
    changed = "".join(f"xor.b32 %a{number}, %a{number}, 0;\n" for number in range(4))
    assert multiply(load + changed, "bf16", np.float16)[0].diagnostics == []
    result, is_right = multiply(load, "bf16", np.float16)
    assert not is_right
    (found,) = result.diagnostics
    assert (found.level, found.code) == ("warning", "mismatched-descriptor")
    assert found.message == "a fragment is multiplied as bf16, and its tensor map has elements of f16"
    assert found.labels[1].text == "this copied elements of f16"
    assert load == BY_LDMATRIX or "so are the fragments of 3 more loads of the kernel" in found.notes


@pytest.mark.parametrize(("swizzle", "xor"), [("128B", ""), (None, XOR)])
def test_fragments_that_are_loaded_by_another_swizzle(swizzle: str | None, xor: str) -> None:
    """Four lanes load parts of a row of 16 bytes, and eight times four lanes of eight rows."""
    result, is_right = multiply(BY_LD, "f16", np.float16, None, "")
    assert is_right
    assert result.diagnostics == [], ptxlab.report.render(result.diagnostics)
    result, is_right = multiply(BY_LD, "f16", np.float16, swizzle, xor)
    assert not is_right
    texts = ("no swizzle", "128B swizzle") if swizzle else ("128B swizzle", "no swizzle")
    assert {(one.level, one.message) for one in result.diagnostics} == {
        (
            "error" if swizzle else "warning",
            f"threads read a tile with {texts[0]}, and it was written with {texts[1]}",
        )
    }


def sums_over_k(starts: tuple[int, ...]) -> str:
    """A kernel that copies 48 rows of k in two boxes, and adds K slices of 16 that start at those rows by MMAs."""
    d = ", ".join(f"%f{one}" for one in range(32))
    mmas = [
        f"add.u64 %rd2, %rd1, {row * 128 // 16};\n    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        f"{{{d}}}, {{%r4, %r4, %r4, %r4}}, %rd2, {int(number > 0)}, 1, 1, 1;"
        for number, row in enumerate(starts)
    ]
    stores = [f"st.global.v2.f32 [%rd3+{32 * one}], {{%f{4 * one}, %f{4 * one + 1}}};" for one in range(8)]
    copy = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    return f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128])
{{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<32>;
    .reg .b64 %rd<4>;
    .shared .align 1024 .b8 tile[6144];
    .shared .align 8 .b64 full;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @%p bra ready;
    mbarrier.init.shared.b64 [full], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 6144;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    {copy} [tile], [%rd1, {{0, 0}}], [full];
    {copy} [tile+3072], [%rd1, {{0, 24}}], [full];
ready:
    bar.sync 0;
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [full], 0;
    @!%p bra wait;
    mov.u32 %r2, tile;
    shr.u32 %r2, %r2, 4;
    cvt.u64.u32 %rd1, %r2;
    or.b64 %rd1, %rd1, 0x4000004000010000;
    mov.b32 %r4, 0x3c003c00;
    wgmma.fence.sync.aligned;
    {" ".join(mmas)}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    setp.gt.u32 %p, %r1, 3;
    @%p ret;
    ld.param.u64 %rd3, [out];
    mad.wide.u32 %rd3, %r1, 8, %rd3;
    {" ".join(stores)}
    ret;
}}
"""


@pytest.mark.parametrize(("starts", "is_right"), [((0, 16, 32), True), ((0, 16, 24), False), ((0, 8, 32), False)])
def test_k_slices_of_boxes_that_adjoin(starts: tuple[int, ...], is_right: bool) -> None:
    """Boxes of 24 rows have one K slice and a half each: the third starts in the middle of the second box."""
    b = np.random.default_rng(0).integers(-4, 5, (48, 64)).astype(np.float16)
    out = np.zeros(64, np.float32)
    kernel = ptxlab.parse(sums_over_k(starts), name="k.ptx")["k"]
    args = [out, ptxlab.tensor_map(b, box=(24, 64), swizzle="128B")]
    found = kernel.launch(1, 128, args, device="cpu", on_error="collect").diagnostics
    assert np.array_equal(out, b.astype(np.float32).sum(0)) == is_right
    assert ["in the middle of a K slice" in one.message for one in found] == [True] * (not is_right), found

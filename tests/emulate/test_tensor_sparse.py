"""`tcgen05.mma.sp`, `.ws` with masks of columns, `.ashift` and `tcgen05.shift`, against NumPy."""

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.instruction_descriptor import PAIR, STATIONARY
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor as Descriptor
from ptxlab.isa.units.zero_column_mask import ZeroColumns, is_zero_column
from tests.emulate import test_tensor_pairs as pairs
from tests.emulate.blackwell import finds, launch
from tests.emulate.tensor_kernels import CLEAR, FILL, laid_out, values
from tests.emulate.tensor_sparse import Case, choose, run, words_of

F16 = Descriptor("f16", 128, 32, "f16", "bf16", selector=0)
SPARSE = [
    Case(F16),
    Case(Descriptor("f16", 128, 24, "f16", "f16", "f16", selector=1), b_mode="none"),
    Case(Descriptor("f16", 64, 16, "bf16", "f16", selector=1), lane=16, in_cells=True),
    Case(Descriptor("f16", 128, 64, "f16", "f16", transpose_a=True, transpose_b=True, selector=0), b_mode="64B"),
    Case(Descriptor("tf32", 128, 32, "tf32", "tf32", negate_a=True, selector=1)),
    Case(Descriptor("tf32", 64, 8, "tf32", "tf32", selector=0), in_cells=True),
    Case(Descriptor("f8f6f4", 128, 16, "e4m3", "e2m1", selector=0), in_cells=True),
    Case(Descriptor("f8f6f4", 64, 16, "e3m2", "e5m2", "f16", selector=0), "", b_mode="32B"),
    Case(Descriptor("i8", 128, 32, "s8", "u8", "s32", selector=0)),
    Case(Descriptor("mxf8f6f4", 128, 16, "e2m3", "e4m3", selector=0), "scale_vec::1X"),
    Case(Descriptor("mxf4", 128, 16, "e2m1", "e2m1", selector=0), "scale_vec::2X"),
    Case(Descriptor("mxf4nvf4", 128, 32, "e2m1", "e2m1", selector=0), "scale_vec::4X", in_cells=True),
    Case(Descriptor("f16", 64, 64, "f16", "f16", selector=1, form=STATIONARY)),
    Case(Descriptor("i8", 32, 128, "u8", "s8", "s32", selector=0, form=STATIONARY), in_cells=True),
]
OTHERS = [
    Case(Descriptor("f16", 128, 16, "f16", "f16"), in_cells=True, ashift=True),
    Case(Descriptor("i8", 128, 16, "s8", "s8", "s32", selector=0), in_cells=True, ashift=True),
    Case(Descriptor("f8f6f4", 128, 16, "e2m1", "e4m3"), in_cells=True),
    Case(Descriptor("mxf8f6f4", 128, 16, "e3m2", "e4m3"), "scale_vec::1X", in_cells=True),
    Case(Descriptor("f16", 32, 64, "f16", "f16", form=STATIONARY), in_cells=True),
    Case(Descriptor("f16", 64, 64, "f16", "f16", form=STATIONARY), in_cells=True),
]


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("case", SPARSE + OTHERS, ids=str)
def test_products(case: Case) -> None:
    product = run(case)
    assert not product.found, ptxlab.report.render(product.found)
    assert np.array_equal(product.d, product.expected)


# The manual's examples (PTX ISA 9.7.16.4.3), with the lengths that they show: the lowest bits of each part.
@pytest.mark.parametrize(
    ("parts", "mask", "expected"),
    [(1, ZeroColumns(3, 4), ["11100001110000"]),
     (2, ZeroColumns(3, 4, skips_first=(True, False, False, False)), ["11100001110000111", "00001110000111 0000"]),
     (4, ZeroColumns(3, 4, (0, 1, 2, 1), (True, True, False, False), shift=2),
      ["00001110000111", "0000111000011", "111000011100", "1110000111000"])],
)  # fmt: skip
def test_masks_of_the_manual(parts: int, mask: ZeroColumns, expected: list[str]) -> None:
    width = 128 // parts
    for part, digits in enumerate(expected):
        digits = digits.replace(" ", "")
        found = [is_zero_column(mask.encode(), part * width + column, width) for column in range(len(digits))]
        assert "".join(map(str, reversed(found))) == digits


@pytest.mark.parametrize("rows", [128, 64, 32])
def test_zero_columns(rows: int) -> None:
    mask = ZeroColumns(3, 5, (2, 0, 1, 4), (True, False, True, False), shift=6).encode()
    selector = 1 if rows == 64 else None
    product = run(
        Case(Descriptor("f16", rows, 64, "f16", "f16", selector=selector, form=STATIONARY), mask=mask, max_shift=1)
    )
    assert not product.found, ptxlab.report.render(product.found)
    zeros = np.array([is_zero_column(mask, column, 64 * rows // 128) for column in range(64)], bool)
    assert 10 < zeros.sum() < 40
    assert not product.d[:, zeros].any()
    assert np.array_equal(product.d[:, ~zeros], product.expected[:, ~zeros])


@pytest.mark.parametrize(
    ("size", "said"),
    [("", Descriptor("f16", 256, 32, "f16", "bf16", selector=1, form=PAIR)),
     ("", Descriptor("f16", 128, 32, "bf16", "f16", selector=0, form=PAIR)),
     ("scale_vec::1X", Descriptor("mxf8f6f4", 256, 32, "e4m3", "e5m2", selector=0, form=PAIR)),
     ("scale_vec::4X", Descriptor("mxf4nvf4", 256, 32, "e2m1", "e2m1", selector=0, form=PAIR))],
    ids=lambda case: str(case).replace("::", ""),
)  # fmt: skip
def test_two_blocks(size: str, said: Descriptor) -> None:
    """Each block has the metadata of its own rows; 64 rows have half of the lanes (layout C of the manual)."""
    random, padded, own = np.random.default_rng(6), said.kind != "mxf4nvf4", said.rows // 2
    packed = values(said.atype, said.rows, said.depth // 2, random, exact=True)
    b = values(said.btype, said.columns, said.depth, random, exact=True)
    kept, entries = choose(said.kind, said.rows, said.depth, random)
    dense = np.zeros((said.rows, said.depth))
    dense[kept] = packed.astype(np.float64).reshape(-1)
    lanes = np.arange(128) if own == 128 else np.arange(64) % 16 + np.arange(64) // 16 * 32
    factors = np.full((128, 8, 4), 127, np.uint8)
    factors[:, 4:] = 128  # those of B: two
    blocks = []
    for rank in range(2):
        first, a_descriptor = laid_out(packed[rank * own : (rank + 1) * own], said.atype, 0, "none", False, padded)
        start = -(-len(first) // 1024) * 1024
        half = b[rank * said.columns // 2 : (rank + 1) * said.columns // 2]
        second, b_descriptor = laid_out(half, said.btype, start, "none", False, padded)
        block = first.ljust(start, b"\0") + second
        words = words_of(entries[rank * own : (rank + 1) * own], said.kind != "f16")
        cells = np.zeros((2, 128, 32), np.uint8)
        cells[0].view(np.uint32)[lanes, :2] = words[:, ::-1] if said.selector else words
        cells[1] = factors.reshape(128, 32)
        blocks.append(block.ljust(-(-len(block) // 2048) * 2048, b"\0") + cells.tobytes())
    given = [a_descriptor, b_descriptor, said.encode(), len(blocks[0]) // 16 - 512, said.columns, 1, 0, 0, 0, 256]
    scale, scales = (f".block_scale.{size}", "[%r24], [%r25], ") if size else ("", "")
    opcode = f"tcgen05.mma.sp.cta_group::2.kind::{said.kind}{scale}"
    instruction = "add.u32 %r24, %r15, 8; add.u32 %r25, %r15, 12;\n"
    instruction += f"    {opcode} [%r14], %rd10, %rd11, [%r15], %r10, {scales}%p2;"
    prepare = CLEAR + FILL.replace("%r13", "2")
    out, found = pairs.run(instruction, blocks, given, said.columns, prepare=prepare)
    assert not found, ptxlab.report.render(found)
    result = np.concatenate([out[lanes], out[lanes + 128]]).view(np.float32)
    assert np.array_equal(result, dense @ b.astype(np.float64).T * (2 if size else 1))


WRONG = [
    (Case(Descriptor("f16", 128, 32, "f16", "f16", selector=0), metadata_column=1), "are at an even column"),
    (Case(Descriptor("f16", 64, 32, "f16", "f16", selector=0), metadata_lane=16), "must have the same ones"),
    (Case(Descriptor("f16", 64, 32, "f16", "f16"), in_cells=True, ashift=True), "`.ashift` needs 128 rows"),
    (Case(Descriptor("f16", 64, 64, "f16", "f16", form=STATIONARY), mask=ZeroColumns(shift=9).encode(), max_shift=1),
     "the zero-column mask shifts B further"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "message"), WRONG, ids=str)
def test_wrong_operands(case: Case, message: str) -> None:
    (found,) = run(case).found
    assert found.code == "bad-descriptor"
    assert message in found.message


def test_rows_are_shifted_down() -> None:
    body = """
        shl.b32 %r0, %t, 8; add.u32 %r1, %r0, 1;
        tcgen05.st.sync.aligned.32x32b.x2.b32 [%band], {%r0, %r1};
        add.u32 %r2, %band, 8;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r0};
        tcgen05.wait::st.sync.aligned;
        tcgen05.fence::before_thread_sync;
        bar.sync 0;
        tcgen05.fence::after_thread_sync;
        add.u32 %r3, %tensor, 0x200001;
        @!%one bra wait;
        tcgen05.shift.cta_group::1.down [%r3];
        tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];
    wait:
        mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
        @!%p3 bra wait;
        tcgen05.fence::after_thread_sync;
        tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r4, %r5}, [%band];
        tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r2];
        tcgen05.wait::ld.sync.aligned;
        mul.wide.u32 %rd3, %t, 12; add.u64 %rd3, %rd3, %rd0;
        st.global.b32 [%rd3], %r4; st.global.b32 [%rd3+4], %r5; st.global.b32 [%rd3+8], %r6;
    """
    out = np.zeros((128, 3), np.uint32)
    assert launch(body, [out]).diagnostics == []
    rows = np.arange(128)
    shifted = np.where((rows // 32 == 1) & (rows % 32 != 31), rows + 1, rows)
    # Eight columns from the second one on are shifted, in the 32 lanes of the second warp.
    assert np.array_equal(out, np.stack([rows << 8, (shifted << 8) + 1, shifted << 8], axis=1))


def test_wrong_shifts() -> None:
    line = "@%one tcgen05.shift.cta_group::{}.down [%r0]; // here"
    finds(
        f"add.u32 %r0, %tensor, 0x100000; {line.format(1)}",
        "out-of-bounds",
        "`tcgen05.shift` starts at lane 16 of tensor memory",
    )
    finds(
        f"add.u32 %r0, %tensor, 32; {line.format(1)}",
        "out-of-bounds",
        "access to lanes 0..32, columns 32..40 of tensor memory, which are not all allocated",
        columns=32,
    )

"""Operations of two blocks of a cluster, `.cta_group::2`: each has half of A, half of B, and half of D."""

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.instruction_descriptor import PAIR
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor as Descriptor
from tests.emulate import blackwell
from tests.emulate.tensor_kernels import BODY, CLEAR, FILL, laid_out, values
from tests.emulate.tensor_tiles import tile
from tests.emulate.test_tensor_scaled import factors, in_groups, in_lanes, in_two_words, long_factors

SHARED = 16384
# Each block has its own tiles and rows of the result; the first issues the MMA and commits to both.
BEGIN = """
    mov.u32 %r30, %cluster_ctarank;
    mul.lo.u32 %r31, %r30, {bytes}; cvt.u64.u32 %rd30, %r31; add.u64 %rd1, %rd1, %rd30;
    ld.global.b32 %r31, [%rd2+32]; mul.lo.u32 %r31, %r31, %r30; mul.wide.u32 %rd30, %r31, 512;
    add.u64 %rd0, %rd0, %rd30;
    setp.eq.and.u32 %one, %r30, 0, %one;
    fence.mbarrier_init.release.cluster;
"""
MEET = """
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];"
BOTH = """mov.u16 %h, 3; mov.u32 %r32, done;
    tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r32], %h;"""


def run(
    instruction: str,
    blocks: list[bytes],
    given: list[int],
    columns: int,
    *,
    prepare: str = CLEAR,
    meet: str = MEET,
    target: str = "sm_100a",
) -> tuple[np.ndarray, list[ptxlab.Diagnostic]]:
    """What both blocks have in the first columns of tensor memory after an instruction that the first one starts.

    `given` are the parameters of `BODY`, and `blocks` what each block copies to its shared memory, and fills in.
    """
    body = BODY.replace("PREPARE", prepare).replace("MULTIPLY", instruction).replace(COMMIT, BOTH)
    body = body.replace("    bar.sync 0;\n", f"    bar.sync 0;\n{meet}")
    text = blackwell.REGISTERS.format(shared=SHARED) + "    .reg .b16 %h;\n" + blackwell.BEGIN + BEGIN + body + MEET
    text = (text + blackwell.END).replace("{columns}", "512").replace("{bytes}", str(len(blocks[0])))
    text = text.replace("cta_group::1", "cta_group::2")
    head = f"{blackwell.HEAD.replace('sm_100a', target)}.visible .entry k{blackwell.PARAMETERS} .reqnctapercluster 2"
    kernel = ptxlab.parse(f"{head}\n{{\n{text}}}\n", name="k.ptx")["k"]
    out = np.zeros((256, columns), np.uint32)
    args = [out, np.frombuffer(b"".join(blocks), np.uint8).copy(), np.array(given, np.uint64)]
    return out, kernel.launch(2, 128, args, device="cpu", on_error="collect", timeout=100).diagnostics


def multiply(said: Descriptor, *, meet: str = MEET) -> tuple[np.ndarray, np.ndarray, list[ptxlab.Diagnostic]]:
    random = np.random.default_rng(1)
    a = values(said.atype, said.rows, said.depth, random, exact=True)
    b = values(said.btype, said.columns, said.depth, random, exact=True)
    blocks = []
    for rank in range(2):
        half = a[rank * said.rows // 2 : (rank + 1) * said.rows // 2]
        first, a_descriptor = laid_out(half, said.atype, 0, "64B", said.transpose_a)
        start = -(-len(first) // 1024) * 1024
        half = b[rank * said.columns // 2 : (rank + 1) * said.columns // 2]
        second, b_descriptor = laid_out(half, said.btype, start, "none", said.transpose_b)
        block = first.ljust(start, b"\0") + second
        blocks.append(block.ljust(-(-len(block) // 2048) * 2048, b"\0"))
    given = [a_descriptor, b_descriptor, said.encode(), len(blocks[0]) // 16, said.columns, 1, 0, 0, 0, 0]
    instruction = f"tcgen05.mma.cta_group::2.kind::{said.kind} [%r14], %rd10, %rd11, %r10, %p2;"
    out, found = run(instruction, blocks, given, said.columns, meet=meet)
    return joined(out, said), a.astype(np.float64) @ b.astype(np.float64).T, found


def joined(out: np.ndarray, said: Descriptor) -> np.ndarray:
    """D, of what both blocks have; of 64 rows in each, half of the columns are in other lanes."""
    if said.rows == 128:
        parts = [out[at : at + 64, : said.columns // 2] for at in range(0, 256, 64)]
        out = np.block([[parts[0], parts[1]], [parts[2], parts[3]]])
    return np.ascontiguousarray(out).view(np.int32 if said.dtype == "s32" else np.float32)


@pytest.mark.parametrize(
    "said",
    [
        Descriptor("f16", 256, 64, "f16", "bf16", form=PAIR),
        Descriptor("f16", 128, 32, "f16", "f16", transpose_b=True, form=PAIR),
        Descriptor("i8", 256, 32, "s8", "s8", "s32", form=PAIR),
    ],
    ids=str,
)
def test_two_blocks_multiply(said: Descriptor) -> None:
    result, expected, found = multiply(said)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(result, expected)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ("scale_vec::1X", Descriptor("mxf8f6f4", 256, 64, "e4m3", "e2m1", a_id=1, b_id=3, form=PAIR)),
        ("scale_vec::1X", Descriptor("mxf8f6f4", 128, 48, "e5m2", "e4m3", form=PAIR)),
        ("scale_vec::2X", Descriptor("mxf4", 256, 32, "e2m1", "e2m1", a_id=2, form=PAIR)),
        ("scale_vec::4X", Descriptor("mxf4nvf4", 256, 128, "e2m1", "e2m1", scale="ue4m3", form=PAIR)),
        ("scale_vec::4X", Descriptor("mxf4nvf4", 128, 64, "e2m1", "e2m1", form=PAIR)),
    ],
    ids=lambda case: str(case).replace("::", ""),
)
def test_two_blocks_have_scale_factors(size: str, said: Descriptor) -> None:
    """Each has those of its own rows, and those of all columns."""
    random = np.random.default_rng(2)
    a = values(said.atype, said.rows, said.depth, random, exact=True)
    b = values(said.btype, said.columns, said.depth, random, exact=True)
    left, left_bits = factors(said.rows, 4, said.scale, random)
    right, right_bits = factors(said.columns, 4, said.scale, random)
    of_b = in_lanes(right_bits, split=said.rows == 128)
    blocks, padded = [], said.kind == "mxf8f6f4"
    for rank in range(2):
        own = slice(rank * said.rows // 2, (rank + 1) * said.rows // 2)
        first, a_descriptor = laid_out(a[own], said.atype, 0, "none", False, padded)
        start = -(-len(first) // 1024) * 1024
        half = b[rank * said.columns // 2 : (rank + 1) * said.columns // 2]
        second, b_descriptor = laid_out(half, said.btype, start, "none", False, padded)
        block = first.ljust(start, b"\0") + second
        scales = np.concatenate([in_lanes(left_bits[own]), of_b], axis=1)
        blocks.append(block.ljust(-(-len(block) // 2048) * 2048, b"\0") + scales.tobytes())
    given = [a_descriptor, b_descriptor, said.encode(), len(blocks[0]) // 16 - 256, said.columns, 1, 0, 0, 0, 256]
    kind = f"tcgen05.mma.cta_group::2.kind::{said.kind}.block_scale.{size}"
    instruction = f"add.u32 %r24, %r15, 4; {kind} [%r14], %rd10, %rd11, %r10, [%r15], [%r24], %p2;"
    out, found = run(instruction, blocks, given, said.columns, prepare=CLEAR + FILL)
    assert not found, ptxlab.report.render(found)
    count = int(size[-2])
    each = said.depth // count
    left = np.repeat(left[:, said.a_id : said.a_id + count], each, axis=1)
    right = np.repeat(right[:, said.b_id : said.b_id + count], each, axis=1)
    expected = (a.astype(np.float64) * left) @ (b.astype(np.float64) * right).T
    assert np.array_equal(joined(out, said), expected)


@pytest.mark.parametrize(("size", "a_id"), [(16, 2), (32, 3)])
def test_two_blocks_have_rows_of_96_elements(size: int, a_id: int) -> None:
    said = Descriptor("mxf4nvf4", 256, 64, "e2m1", "e2m1", a_id=a_id, form=PAIR, long=True)
    random = np.random.default_rng(5)
    a, b = (values("e2m1", count, 96, random, exact=True) for count in (said.rows, said.columns))
    left, left_bits = long_factors(said.rows, said.scale, random)
    right, right_bits = long_factors(said.columns, said.scale, random)
    blocks = []
    for rank in range(2):
        own = slice(rank * 128, rank * 128 + 128)
        first, a_descriptor = laid_out(a[own], "e2m1", 0, "none", False, False)
        second, b_descriptor = laid_out(b[rank * 32 : rank * 32 + 32], "e2m1", len(first), "none", False, False)
        block = (first + second).ljust(-(-len(first + second) // 2048) * 2048, b"\0")
        scales = np.concatenate([in_two_words(left_bits[own]), in_two_words(right_bits)], axis=1)
        blocks.append(block + in_groups(scales).tobytes())
    given = [a_descriptor, b_descriptor, said.encode(), len(block) // 16, said.columns, 1, 0, 0, 0, 256]
    kind = f"tcgen05.mma.cta_group::2.kind::{said.kind}.block_scale.block{size}"
    instruction = f"add.u32 %r24, %r15, 8; {kind} [%r14], %rd10, %rd11, %r10, [%r15], [%r24], %p2;"
    prepare = CLEAR + FILL.replace("%r13", "2")
    out, found = run(instruction, blocks, given, said.columns, prepare=prepare, target="sm_103a")
    assert not found, ptxlab.report.render(found)
    left = np.repeat(left[:, a_id : a_id + 96 // size], size, axis=1)
    right = np.repeat(right[:, : 96 // size], size, axis=1)
    expected = (a.astype(np.float64) * left) @ (b.astype(np.float64) * right).T
    assert np.array_equal(joined(out, said), expected)


def test_operands_of_the_other_block_must_be_there() -> None:
    *_, found = multiply(Descriptor("f16", 256, 64, "f16", "f16", form=PAIR), meet="")
    assert {"data-race", "out-of-bounds", "unstarted-block"} & {diagnostic.code for diagnostic in found}


def test_each_block_copies_what_it_has() -> None:
    data = np.random.default_rng(6).integers(0, 256, (2, 128, 2, 16), np.uint8)
    made = [tile(half, 0, mode="64B") for half in data]
    given = [made[0].descriptor, 0, 0, len(made[0].data) // 16, 8, 1, 0, 0, 0, 0]
    copy = "tcgen05.cp.cta_group::2.128x256b [%r14], %rd10;"
    out, found = run(copy, [each.data for each in made], given, 8)
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(out, data.reshape(256, 32).view(np.uint32))

"""`tcgen05.cp` from shared to tensor memory, and products that use what it brings."""

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor as Descriptor
from tests.emulate.blackwell import HEAD, launch
from tests.emulate.tensor_kernels import BODY, CLEAR, SHARED, laid_out, values
from tests.emulate.tensor_tiles import chunks, tile
from tests.emulate.test_tensor_scaled import factors

# The result has eight columns; `%rd10` is the descriptor of what is copied. What is in the lanes of no row is zero.
SHAPES = {
    "128x256b": (128, 2, lambda lane: lane),
    "4x256b": (4, 2, lambda lane: lane // 32 if lane % 32 == 31 else None),
    "128x128b": (128, 1, lambda lane: lane),
    "64x128b.warpx2::02_13": (64, 1, lambda lane: lane % 64),
    "64x128b.warpx2::01_23": (64, 1, lambda lane: lane // 64 * 32 + lane % 32),
    "32x128b.warpx4": (32, 1, lambda lane: lane % 32),
}


@pytest.mark.parametrize("mode", ["none", "128B"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_go_to_lanes(shape: str, mode: str) -> None:
    rows, width, row_of = SHAPES[shape]
    data = np.random.default_rng(2).integers(0, 256, (rows, width, 16), np.uint8)
    made = tile(data, 0, mode=mode)
    filled = made.data.ljust(-(-len(made.data) // 2048) * 2048, b"\0")
    given = [made.descriptor, 0, 0, len(filled) // 16, 8, 1, 0, 0, 0, 31 << 16]
    to = "%r15" if rows == 4 else "%r14"
    body = BODY.replace("PREPARE", CLEAR).replace("MULTIPLY", f"tcgen05.cp.cta_group::1.{shape} [{to}], %rd10;")
    out = np.zeros((128, 8), np.uint32)
    found = launch(body, [out, np.frombuffer(filled, np.uint8).copy(), np.array(given, np.uint64)], shared=SHARED)
    assert not found.diagnostics, ptxlab.report.render(found.diagnostics)
    expected = data.reshape(rows, width * 16).view(np.uint32)
    for lane in range(128):
        row = row_of(lane)
        assert np.array_equal(out[lane, : width * 4], np.zeros(8) if row is None else expected[row])
        assert not out[lane, width * 4 :].any()


@pytest.mark.parametrize(("bits", "packing"), [(6, "b6x16_p32"), (4, "b4x16_p64")])
def test_elements_become_bytes(bits: int, packing: str) -> None:
    """Six bits are at the bottom of a byte, four in its middle, where `tcgen05.mma` takes them from."""
    elements = np.random.default_rng(4).integers(0, 1 << bits, (32, 16), np.uint32)
    made = tile(chunks(elements, bits), 0)
    filled = made.data.ljust(2048, b"\0")
    given = [made.descriptor, 0, 0, len(filled) // 16, 8, 1, 0, 0, 0, 0]
    copy = f"tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.{packing} [%r14], %rd10;"
    out = np.zeros((128, 8), np.uint32)
    body = BODY.replace("PREPARE", CLEAR).replace("MULTIPLY", copy)
    found = launch(body, [out, np.frombuffer(filled, np.uint8).copy(), np.array(given, np.uint64)], shared=SHARED)
    assert not found.diagnostics, ptxlab.report.render(found.diagnostics)
    expected = (elements << (2 if bits == 4 else 0)).astype(np.uint8).view(np.uint32)
    assert np.array_equal(out[:, :4], np.tile(expected, (4, 1)))


def scaled(
    fence: str = "    fence.proxy.async.shared::cta;\n",
) -> tuple[np.ndarray, np.ndarray, list[ptxlab.Diagnostic]]:
    """Two steps of a product, whose factors are copied to the same cells before each of them."""
    said = Descriptor("mxf8f6f4", 128, 64, "e4m3", "e4m3")
    random = np.random.default_rng(5)
    data, expected = b"", np.zeros((128, 64))
    for _ in range(2):
        parts, numbers = [], []
        for rows in (128, 64):
            array = values("e4m3", rows, 32, random, exact=True)
            scale, bits = factors(rows, 1, "ue8m0", random)
            parts.append(array)
            numbers.append((array.astype(np.float64) * scale, np.pad(bits, ((0, 128 - rows), (0, 0)))))
        expected += numbers[0][0] @ numbers[1][0].T
        # A at 0, B at 4096, then the factors of both: 32 rows of 16 bytes each.
        first, a = laid_out(parts[0], "e4m3", 0, "none", False)
        second, b = laid_out(parts[1], "e4m3", 4096, "none", False)
        data += first + second.ljust(2048, b"\0")
        for _, bits in numbers:
            data += bits.reshape(4, 32, 4).transpose(1, 0, 2).tobytes()
        data = data.ljust(-(-len(data) // 8192) * 8192, b"\0")
    factor = 8 << 32 | 1 << 46  # eight rows are 128 bytes
    copy = "tcgen05.cp.cta_group::1.32x128b.warpx4"
    lines = f"""
    add.u64 %rd20, %rd10, {factor + (6144 >> 4)}; sub.u64 %rd20, %rd20, {a & ~0x3FFF};
    add.u32 %r24, %r14, 256; add.u32 %r25, %r14, 260;
    {copy} [%r24], %rd20; add.u64 %rd20, %rd20, 32; {copy} [%r25], %rd20;
    tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r14], %rd10, %rd11, %r10, [%r24], [%r25], %p2;
    """
    body = (
        BODY.replace("PREPARE", CLEAR).replace("MULTIPLY", lines).replace("    fence.proxy.async.shared::cta;\n", fence)
    )
    given = [a, b, said.encode(), len(data) // 16, 64, 2, 8192 >> 4, 8192 >> 4, 0, 0]
    out = np.zeros((128, 64), np.float32)
    found = launch(body, [out, np.frombuffer(data, np.uint8).copy(), np.array(given, np.uint64)], shared=SHARED)
    return out, expected, found.diagnostics


def test_factors_are_copied_before_each_product() -> None:
    out, expected, found = scaled()
    assert not found, ptxlab.report.render(found)
    assert np.array_equal(out, expected)


def test_factors_that_threads_wrote() -> None:
    *_, found = scaled(fence="")
    assert "missing-proxy-fence" in {diagnostic.code for diagnostic in found}


# One block signals to another, too.

PAIR = """
    .reg .b32 %r<4>;
    .reg .b16 %h;
    .reg .pred %p<3>;
    .shared .align 8 .b64 done;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p2, %r2, 0;
    and.pred %p1, %p1, %p2;
    mov.u16 %h, MASK;
    mov.u32 %r3, done;
    @%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3], %h;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [done], 0;
    @!%p1 bra wait;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    ret;
"""


def pair(mask: int) -> list[ptxlab.Diagnostic]:
    text = f"{HEAD}.entry k() .reqnctapercluster 2\n{{{PAIR.replace('MASK', str(mask))}}}\n"
    kernel = ptxlab.parse(text, name="k.ptx")["k"]
    found: list[ptxlab.Diagnostic] = kernel.launch(2, 32, device="cpu", on_error="collect", timeout=60).diagnostics
    return found


def test_a_commit_arrives_in_several_blocks() -> None:
    assert pair(3) == []
    assert [diagnostic.code for diagnostic in pair(1)] == ["hang"]
    assert [diagnostic.code for diagnostic in pair(5)] == ["out-of-bounds"]


@pytest.mark.parametrize(
    ("bits", "code", "message"),
    [
        (0x2000, "out-of-bounds", "the matrix that `tcgen05.cp` copies reaches outside of shared memory"),
        (3 << 61, "bad-descriptor", "`tcgen05.cp`: modes of swizzling are 0, 1, 2, 4 and 6, the descriptor says 3"),
        (1 << 52, "bad-descriptor", "`tcgen05.cp`: a leading dimension is an absolute address only where K is 96"),
    ],
)
def test_a_descriptor_of_a_copy_is_not_called_one_of_a_product(bits: int, code: str, message: str) -> None:
    given = [bits, 0, 0, 1, 8, 1, 0, 0, 0, 0]
    body = BODY.replace("PREPARE", CLEAR).replace("MULTIPLY", "tcgen05.cp.cta_group::1.128x256b [%r14], %rd10;")
    args = [np.zeros((128, 8), np.uint32), np.zeros(16, np.uint8), np.array(given, np.uint64)]
    (found,) = launch(body, args, shared=SHARED).diagnostics
    assert found.code == code
    assert found.message.startswith(message)

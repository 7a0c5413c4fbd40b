"""A `tcgen05.mma` on shared and tensor memory that a test has filled by pictures; what is there afterwards."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab.draw import Panel
from tests.emulate import blackwell

# Each block copies its bytes to shared memory and its words to tensor memory; the first one multiplies.
BODY = """
    mov.u32 %r30, %cluster_ctarank;
    mul.lo.u32 %r31, %r30, {shared}; cvt.u64.u32 %rd4, %r31; add.u64 %rd1, %rd1, %rd4;
    mad.lo.u32 %r31, %r30, 128, %t; mul.lo.u32 %r31, %r31, {row}; cvt.u64.u32 %rd4, %r31; add.u64 %rd0, %rd0, %rd4;
    setp.eq.and.u32 %one, %r30, 0, %one;
    fence.mbarrier_init.release.cluster;
    mov.u32 %r0, tile; shl.b32 %r1, %t, 4;
copy:
    cvt.u64.u32 %rd4, %r1; add.u64 %rd5, %rd1, %rd4; add.u32 %r3, %r0, %r1;
    ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd5];
    st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};
    add.u32 %r1, %r1, 2048; setp.lt.u32 %p1, %r1, {shared}; @%p1 bra copy;
    mov.u32 %r1, 0; mov.u64 %rd5, %rd0;
fill:
    ld.global.v4.b32 {%d0, %d1, %d2, %d3}, [%rd5]; ld.global.v4.b32 {%d4, %d5, %d6, %d7}, [%rd5+16];
    add.u32 %r2, %band, %r1;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r2], {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7};
    add.u64 %rd5, %rd5, 32; add.u32 %r1, %r1, 8; setp.lt.u32 %p1, %r1, {columns}; @%p1 bra fill;
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    tcgen05.fence::after_thread_sync;
    @!%one bra wait;
    shr.u32 %r8, %r0, 4; cvt.u64.u32 %rd6, %r8;
    add.u64 %rd10, %rd6, {a}; add.u64 %rd11, %rd6, {b}; mov.b32 %r10, {idesc}; setp.ne.u32 %p2, %r10, %r10;
    add.u32 %r11, %tensor, {scale_a}; add.u32 %r12, %tensor, {scale_b}; add.u32 %r13, %tensor, {d};
    add.u32 %r14, %tensor, {a_cells}; add.u32 %r16, %tensor, {metadata};
    {instruction};
    mov.u16 %h, 3; mov.u32 %r15, done;
    {commit};
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra wait;
    tcgen05.fence::after_thread_sync;
    mov.u32 %r1, 0;
read:
    add.u32 %r2, %band, %r1;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%r2];
    tcgen05.wait::ld.sync.aligned;
    st.global.v4.b32 [%rd0], {%d0, %d1, %d2, %d3}; st.global.v4.b32 [%rd0+16], {%d4, %d5, %d6, %d7};
    add.u64 %rd0, %rd0, 32; add.u32 %r1, %r1, 8; setp.lt.u32 %p1, %r1, {columns}; @%p1 bra read;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r15]"
BOTH = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r15], %h"


def multiply(
    instruction: str,
    shared: np.ndarray,
    cells: np.ndarray,
    a: int,
    b: int,
    idesc: int,
    *,
    target: str = "sm_100a",
    **addresses: int,
) -> np.ndarray:
    """Tensor memory after `instruction`, whose operands are `[%r13], %rd10, %rd11, %r10, …`.

    `shared` has the bytes of each block, `cells` the words of its 128 lanes, `a` and `b` are matrix descriptors.
    """
    blocks = len(shared)
    values: dict[str, object] = {
        "shared": shared.shape[1], "columns": cells.shape[2], "row": 4 * cells.shape[2], "a": a, "b": b, "idesc": idesc,
        "scale_a": 0, "scale_b": 0, "d": 0, "a_cells": 0, "metadata": 0, "instruction": instruction,
        "commit": COMMIT if blocks == 1 else BOTH,
    } | addresses  # fmt: skip
    body = BODY
    for name, value in values.items():
        body = body.replace(f"{{{name}}}", str(value))
    text = blackwell.REGISTERS.format(shared=shared.shape[1]) + "    .reg .b16 %h;\n" + blackwell.BEGIN + body
    text = (text + blackwell.END).replace("{columns}", "512")
    if blocks == 2:
        text = text.replace("cta_group::1", "cta_group::2")
    head = blackwell.HEAD.replace("sm_100a", target)
    head = f"{head}.visible .entry k{blackwell.PARAMETERS} .reqnctapercluster {blocks}"
    kernel = ptxlab.parse(f"{head}\n{{\n{text}}}\n", name="k.ptx")["k"]
    out = cells.copy()
    found = kernel.launch(blocks, 128, [out, shared, np.zeros(1, np.uint32)], device="cpu", on_error="collect")
    assert not found.diagnostics, ptxlab.render(found.diagnostics)
    return out


def bits_of(matrix: np.ndarray, type: str) -> tuple[np.ndarray, int]:
    """The elements as integers, and how many bits each has in shared memory."""
    if type == "e2m1":
        return matrix.astype(ml_dtypes.float4_e2m1fn).view(np.uint8).astype(np.uint64), 4
    kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn}
    exact = matrix.astype(kinds[type])
    size = exact.dtype.itemsize
    return exact.view(f"u{size}").astype(np.uint64), 8 * size


def put(image: np.ndarray, panel: Panel, matrix: np.ndarray, type: str, major: str) -> None:
    """Write a matrix to shared memory, where the picture of its descriptor says; elements are in order in 16 bytes."""
    bits, width = bits_of(matrix, type)
    each = matrix.shape[major == "k"] // len(panel.cells[0] if major == "k" else panel.cells)
    for row, cells in enumerate(panel.cells):
        for column, cell in enumerate(cells):
            assert cell is not None
            start = int(cell.text, 16)
            part = bits[row, column * each :][:each] if major == "k" else bits[row * each :, column][:each]
            packed = sum(int(value) << width * number for number, value in enumerate(part))
            image[start : start + 16] = np.frombuffer(packed.to_bytes(16, "little"), np.uint8)


def spans(text: str) -> list[range]:
    """The numbers in `32-63, 0`: from the first to the last of each."""
    found = [[int(number) for number in part.split()[-1].split("-")] for part in text.split(",")]
    return [range(numbers[0], numbers[-1] + 1) for numbers in found]


def overviews(panels: Sequence[Panel]) -> list[Panel]:
    """The panels of whole tensor memories, one for each block."""
    return [panel for panel in panels if panel.title.startswith("tensor memory")]


def take(panel: Panel, cells: np.ndarray, d: np.ndarray) -> None:
    """Read D from a block's tensor memory, where the picture says."""
    for name, row in zip(panel.row_names, panel.cells, strict=True):
        for columns, cell in zip(panel.column_names, row, strict=True):
            if cell is not None and cell.text.startswith("D "):
                (lanes,), (there,) = spans(name.partition("lanes")[2]), spans(columns)
                rows, of_d = spans(cell.text[2:])
                first = rows.start, of_d.start
                d[first[0] : rows.stop, first[1] : of_d.stop] = cells[
                    lanes.start : lanes.stop, there.start : there.stop
                ]


def scale(panel: Panel, cells: np.ndarray, factors: np.ndarray, depth: int) -> None:
    """Write the bits of scale factors to a block's tensor memory, where the picture says."""
    copies = spans(panel.title.rpartition("lanes ")[2])
    for lanes in copies:
        for name, row in zip(panel.row_names, panel.cells, strict=True):
            for byte, cell in enumerate(row):
                if cell is None:
                    continue
                rows, along = spans(cell.text)
                for number, factor in enumerate(factors[rows.start : rows.stop, along.start // depth]):
                    cells[lanes.start + number, int(name.split()[1])] |= np.uint32(int(factor) << 8 * byte)


def choose(panel: Panel, cells: np.ndarray, metadata: np.ndarray, chunk: int) -> None:
    """Write the metadata of a sparse A to tensor memory, where the picture says: four bits for each chunk of a row."""
    for name, row in zip(panel.row_names, panel.cells, strict=True):
        for column, cell in zip(panel.column_names, row, strict=True):
            if cell is not None:
                (lanes,), (there, bits) = spans(name), spans(column)
                rows, along = spans(cell.text)
                for number, own in enumerate(metadata[rows.start : rows.stop]):
                    for at, choice in enumerate(own[along.start // chunk : along.stop // chunk]):
                        cells[lanes.start + number, there.start] |= np.uint32(int(choice) << bits.start + 4 * at)

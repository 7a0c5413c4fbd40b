"""An NVFP4 GEMM as production kernels write it: a ring of stages that TMA fills, scale factors by `tcgen05.cp`.

A block computes 128 rows of D = A * B^T; with two blocks, 256 rows, and each has half of the columns of B in its shared
memory. Thread 128 copies, thread 160 copies scale factors to tensor memory, multiplies and commits, and warps 0 to 3
read the accumulators. Factors are laid out as CUTLASS and cuBLAS have them: those of 128 rows and 64 columns are 512
bytes.
"""

from typing import Any

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.device.result import Result
from ptxlab.isa.units.instruction_descriptor import PAIR, PLAIN, InstructionDescriptor

ROWS = 128  # of A, in each block
COLUMNS = 256  # of D
STEP = 256  # elements along K of a stage
BLOCK = 16  # elements that share a scale factor
THREADS = 192

KERNEL = """.version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 stages[];
.visible .entry gemm(
    .param .u64 out, .param .align 64 .b8 a[128], .param .align 64 .b8 b[128],
    .param .align 64 .b8 sfa[128], .param .align 64 .b8 sfb[128], .param .u32 steps
) {cluster}
{{
    .reg .pred %p<4>, %more;
    .reg .b16 %both;
    .reg .b32 %t, %warp, %rank, %block, %i, %k, %slot, %parity, %steps, %full, %empty, %stage, %tensor;
    .reg .b32 %row, %column, %r<8>, %v<32>;
    .reg .b64 %a, %b, %sfa, %sfb, %out, %da, %db, %ds, %rd<4>;
    .shared .align 8 .b64 fulls[{stages}], empties[{stages}], done;
    .shared .align 4 .b32 address;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %block, %ctaid.x;
    ld.param.u32 %steps, [steps];
    mov.u16 %both, 3;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra INITIALIZED;
    {initialize}
    mbarrier.init.shared::cta.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
INITIALIZED:
    setp.ne.u32 %p0, %warp, 5;
    @%p0 bra ALLOCATED;
    tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [address], 512;
    tcgen05.relinquish_alloc_permit.{group}.sync.aligned;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    {together}
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tensor, [address];
    mov.u32 %i, 0;
    setp.eq.u32 %p0, %t, 128;
    @%p0 bra PRODUCE;
    setp.eq.u32 %p0, %t, 160;
    @%p0 bra MULTIPLY;
    setp.lt.u32 %p0, %t, 128;
    @%p0 bra STORE;
    bra END;
PRODUCE:
    mov.b64 %a, a; cvta.param.u64 %a, %a;
    mov.b64 %b, b; cvta.param.u64 %b, %b;
    mov.b64 %sfa, sfa; cvta.param.u64 %sfa, %sfa;
    mov.b64 %sfb, sfb; cvta.param.u64 %sfb, %sfb;
COPY:
    {stage}
    xor.b32 %r0, %parity, 1;
WE: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%empty], %r0;
    @!%p1 bra WE;
    {expect}
    {leader}
    shl.b32 %column, %i, 7;
    shl.b32 %row, %block, 7;
    {copy} [%stage], [%a, {{%column, %row}}], [%full];
    add.u32 %r0, %stage, {at_b};
    mul.lo.u32 %row, %rank, {columns};
    {copy} [%r0], [%b, {{%column, %row}}], [%full];
    shl.b32 %r1, %steps, 3;
    shl.b32 %row, %i, 3;
    mad.lo.u32 %r2, %block, %r1, %row;
    add.u32 %r0, %stage, {at_factors};
    {copy} [%r0], [%sfa, {{0, %r2}}], [%full];
    add.u32 %r0, %r0, 2048;
    {copy} [%r0], [%sfb, {{0, %row}}], [%full];
    add.u32 %r0, %r0, 2048;
    add.u32 %row, %row, %r1;
    {copy} [%r0], [%sfb, {{0, %row}}], [%full];
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %steps;
    @%p0 bra COPY;
    bra END;
MULTIPLY:
    setp.ne.u32 %p0, %rank, 0;
    @%p0 bra END;
ROUND:
    {stage}
WF: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%full], %parity;
    @!%p1 bra WF;
    tcgen05.fence::after_thread_sync;
    and.b32 %r0, %stage, 0x3ffff;
    shr.u32 %r0, %r0, 4;
    cvt.u64.u32 %da, %r0;
    or.b64 %da, %da, 0x4000404000010000;
    add.u64 %db, %da, {at_b} >> 4;
    cvt.u64.u32 %ds, %r0;
    add.u64 %ds, %ds, {at_factors} >> 4;
    or.b64 %ds, %ds, 0x400800010000;
    mov.u32 %k, 0;
SCALE:
    setp.ne.u32 %more, %i, 0;
    setp.ne.or.u32 %more, %k, 0, %more;
    add.u32 %r1, %tensor, 256;
    shl.b32 %r2, %k, 2;
    add.u32 %r1, %r1, %r2;
    shl.b32 %r3, %k, 3;
    add.u32 %r2, %tensor, 272;
    add.u32 %r2, %r2, %r3;
    add.u32 %r3, %r2, 4;
    add.u64 %rd0, %ds, 2048 >> 4;
    add.u64 %rd1, %ds, 4096 >> 4;
    tcgen05.cp.{group}.32x128b.warpx4 [%r1], %ds;
    tcgen05.cp.{group}.32x128b.warpx4 [%r2], %rd0;
    tcgen05.cp.{group}.32x128b.warpx4 [%r3], %rd1;
    tcgen05.mma.{group}.kind::mxf4nvf4.block_scale.scale_vec::4X [%tensor], %da, %db, {descriptor}, [%r1], [%r2], %more;
    add.u64 %da, %da, 2;
    add.u64 %db, %db, 2;
    add.u64 %ds, %ds, 32;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p0, %k, 4;
    @%p0 bra SCALE;
    {commit} [%empty]{mask};
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %steps;
    @%p0 bra ROUND;
    mov.u32 %r0, done;
    {commit} [%r0]{mask};
    bra END;
STORE:
WD: mbarrier.try_wait.parity.shared::cta.b64 %p1, [done], 0;
    @!%p1 bra WD;
    tcgen05.fence::after_thread_sync;
    ld.param.u64 %out, [out];
    mad.lo.u32 %row, %block, 128, %t;
    mul.wide.u32 %rd0, %row, 1024;
    add.u64 %out, %out, %rd0;
    shl.b32 %r0, %warp, 21;
    add.u32 %r0, %r0, %tensor;
    mov.u32 %k, 0;
LOAD:
    tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{values}}}, [%r0];
    tcgen05.wait::ld.sync.aligned;
    {stores}
    add.u32 %r0, %r0, 32;
    add.u64 %out, %out, 128;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p0, %k, 8;
    @%p0 bra LOAD;
    tcgen05.fence::before_thread_sync;
END:
    bar.warp.sync -1;
    {together}
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p0, %warp, 5;
    @%p0 bra EXIT;
    tcgen05.dealloc.{group}.sync.aligned.b32 %tensor, 512;
EXIT:
    ret;
}}
"""
STAGE = """rem.u32 %slot, %i, {stages};
    div.u32 %parity, %i, {stages};
    and.b32 %parity, %parity, 1;
    shl.b32 %r0, %slot, 3;
    mov.u32 %full, fulls;
    mov.u32 %empty, empties;
    add.u32 %full, %full, %r0;
    add.u32 %empty, %empty, %r0;
    mul.lo.u32 %r0, %slot, {size};
    mov.u32 %stage, stages;
    add.u32 %stage, %stage, %r0;"""


def kernel(*, pair: bool, stages: int, without: str = "") -> tuple[ir.Function, int]:
    """The kernel of one block, or of two, and the bytes of shared memory that its stages take.

    A line of it may be left out: the one that contains `without`.
    """
    blocks = 2 if pair else 1
    columns, at_b = COLUMNS // blocks, ROWS * STEP // 2
    at_factors = at_b + columns * STEP // 2
    size = at_factors + 3 * 2048
    said = InstructionDescriptor(
        "mxf4nvf4", ROWS * blocks, COLUMNS, "e2m1", "e2m1", scale="ue4m3", form=PAIR if pair else PLAIN
    )
    group = f"cta_group::{blocks}"
    copy = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    multicast = ".multicast::cluster" if pair else ""
    barriers = [
        f"{name}s+{8 * stage}"
        for stage in range(stages)
        for name in (
            "full",
            "empty",
        )
    ]
    barriers = [name.replace("emptys", "empties") for name in barriers]
    expect = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {size * blocks};"
    text = KERNEL.format(
        cluster=f".reqnctapercluster {blocks}" if pair else "",
        stages=stages,
        group=group,
        initialize="\n    ".join(f"mbarrier.init.shared::cta.b64 [{name}], 1;" for name in barriers),
        together="barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;" if pair else "bar.sync 0;",
        stage=STAGE.format(stages=stages, size=size),
        expect=f"setp.eq.u32 %p1, %rank, 0;\n    @%p1 {expect}" if pair else expect,
        leader="and.b32 %full, %full, 0xfeffffff;" if pair else "",
        copy=f"{copy}.{group}" if pair else copy,
        at_b=at_b,
        at_factors=at_factors,
        columns=columns,
        descriptor=said.encode(),
        commit=f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster{multicast}.b64",
        mask=", %both" if pair else "",
        values=", ".join(f"%v{index}" for index in range(32)),
        stores="\n    ".join(
            f"st.global.v4.b32 [%out+{4 * at}], {{%v{at}, %v{at + 1}, %v{at + 2}, %v{at + 3}}};"
            for at in range(0, 32, 4)
        ),
    )
    if without:
        (line,) = (line for line in text.splitlines(keepends=True) if without in line)
        text = text.replace(line, "")
    return ptxlab.parse(text, name="gemm.ptx")["gemm"], size * stages


def factor_tiles(factors: np.ndarray) -> np.ndarray:
    """Scale factors, a row for each row of a matrix, as copies of 256 bytes find them."""
    rows, count = factors.shape
    tiles = factors.reshape(rows // 128, 4, 32, count // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(tiles).reshape(-1, 256)


def packed(array: np.ndarray) -> np.ndarray:
    """Two fp4 in a byte, the first below."""
    bits = array.view(np.uint8)
    return np.ascontiguousarray(bits[:, ::2] & 15 | bits[:, 1::2] << 4)


def multiply(
    *, pair: bool, stages: int, depth: int, without: str = "", **how: Any
) -> tuple[np.ndarray, np.ndarray, Result]:
    """What 256 rows come to, what they should, and the launch."""
    random = np.random.default_rng(1)
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])
    a, b = (random.choice(numbers, (256, depth)) for _ in range(2))
    sfa, sfb = (random.choice([0.5, 1, 1.5, 2], (256, depth // BLOCK)) for _ in range(2))
    maps = [
        ptxlab.tensor_map(packed(a.astype(ml_dtypes.float4_e2m1fn)), box=(ROWS, 128), swizzle="128B"),
        ptxlab.tensor_map(
            packed(b.astype(ml_dtypes.float4_e2m1fn)), box=(COLUMNS // (2 if pair else 1), 128), swizzle="128B"
        ),
        *(
            ptxlab.tensor_map(factor_tiles(factors.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)), box=(8, 256))
            for factors in (sfa, sfb)
        ),
    ]
    out = np.zeros((256, COLUMNS), np.float32)
    function, shared = kernel(pair=pair, stages=stages, without=without)
    settings = {"device": "cpu", "timeout": 100, "on_error": "collect"} | how
    result = function.launch(2, THREADS, [out, *maps, depth // STEP], shared=shared, **settings)
    expected = (a * np.repeat(sfa, BLOCK, axis=1)) @ (b * np.repeat(sfb, BLOCK, axis=1)).T
    return out, expected, result

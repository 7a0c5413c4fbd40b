"""A GEMM on tensor memory as production kernels write it: a ring of stages that TMA fills and `tcgen05.commit` frees.

Thread 0 copies A and B into a stage, thread 32 multiplies and commits, warps 4 to 7 read the accumulators. With two
blocks, each copies its half, thread 64 of the second signals to the first that its half is there, and the first
multiplies. With a scheduler, thread 96 asks for the work of blocks that have not started, and all others wait for the
answer after each tile.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.device.result import Result
from ptxlab.isa.units.instruction_descriptor import PAIR, PLAIN, InstructionDescriptor

ROWS, DEPTH = 128, 16  # of a stage, in each block
COLUMNS = 16
BYTES = (ROWS + COLUMNS) * DEPTH * 2
FACTORS = 512  # bytes of scale factors of A, and of B

# Lines of the kernel that are synchronization, by the names under which tests leave them out or replace them.
SYNCHRONIZATION = {
    "wait empty": "WE: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%empty], %other;\n    @!%p1 bra WE;",
    "wait full": "WF: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%full], %parity;\n    @!%p1 bra WF;",
    "wait peer": "WP: {acquire} %p1, [%peer], %parity;\n    @!%p1 bra WP;",
    "wait read": "WR: {acquire} %p1, [%read], %other;\n    @!%p1 bra WR;",
    "wait done": "WD: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%done], %parity;\n    @!%p1 bra WD;",
    "fence read": "tcgen05.fence::after_thread_sync;",
    "fence full": "tcgen05.fence::after_thread_sync;",
    "fence done": "tcgen05.fence::after_thread_sync;",
    "commit stage": "{commit} [%empty]{mask};",
    "commit tile": "{commit} [%done]{mask};",
    "wait load": "tcgen05.wait::ld.sync.aligned;",
    "fence loaded": "tcgen05.fence::before_thread_sync;",
}

KERNEL = """.version 8.7
.target sm_100a
.address_size 64
.visible .entry ring(.param .u64 out, .param .u64 a) {cluster}
{{
    .reg .pred %p<4>;
    .reg .b16 %both;
    .reg .b128 %answer;
    .reg .b32 %t, %warp, %i, %k, %tile, %work, %slot, %parity, %other, %full, %empty, %peer, %read, %done, %buffer;
    .reg .b32 %rank, %tensor, %d, %r<8>, %v<{columns}>;
    .reg .b64 %from, %to, %da, %db, %rd<4>;
    .shared .align 1024 .b8 stages[{size}];
    .shared .align 8 .b64 fulls[{stages}], empties[{stages}], peers[{stages}], reads[{buffers}], dones[{buffers}];
    .shared .align 4 .b32 address;
    .shared .align 16 .b8 answer[16];
    .shared .align 8 .b64 asked, answered;
    mov.u32 %t, %tid.x;
    shr.u32 %warp, %t, 5;
    mov.u32 %rank, %cluster_ctarank;
    mov.u16 %both, 3;
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra INITIALIZED;
    {initialize}
    fence.mbarrier_init.release.cluster;
INITIALIZED:
    setp.ne.u32 %p0, %warp, 1;
    @%p0 bra ALLOCATED;
    tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [address], 128;
    tcgen05.relinquish_alloc_permit.{group}.sync.aligned;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    {together}
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tensor, [address];
    mov.u32 %i, 0;
    mov.u32 %tile, 0;
    mov.u32 %k, 0;
    {start}
    setp.eq.u32 %p0, %t, 0;
    @%p0 bra PRODUCE;
    setp.eq.u32 %p0, %t, 32;
    @%p0 bra MULTIPLY;
    setp.eq.u32 %p0, %t, 64;
    @%p0 bra RELAY;
    setp.ge.u32 %p0, %t, 128;
    @%p0 bra STORE;
    {schedule}
    bra END;
PRODUCE:
    {stage}
    {wait empty}
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%full], {bytes};
    ld.param.u64 %from, [a];
    mad.lo.u32 %r0, %work, {steps}, %k;
    mad.lo.u32 %r0, %r0, {blocks}, %rank;
    mul.wide.u32 %rd0, %r0, {bytes};
    add.u64 %from, %from, %rd0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%buffer], [%from], {bytes}, [%full];
    add.u32 %i, %i, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p0, %k, {steps};
    @%p0 bra PRODUCE;
    mov.u32 %k, 0;
    {next produce}
    @%p0 bra PRODUCE;
    bra END;
RELAY:
    setp.ne.u32 %p0, %rank, 1;
    @%p0 bra END;
RELAYED:
    {stage}
    {wait relayed}
    mapa.shared::cluster.u32 %r0, %peer, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, {total};
    @%p0 bra RELAYED;
    bra END;
MULTIPLY:
    setp.ne.u32 %p0, %rank, 0;
    @%p0 bra END;
TILE:
    {accumulators}
    {wait read}
    {fence read}
    mov.u32 %k, 0;
STEP:
    {stage}
    {wait full}
    {wait peer}
    {fence full}
    shr.u32 %r0, %buffer, 4;
    cvt.u64.u32 %da, %r0;
    or.b64 %da, %da, 0x401000080000;
    add.u64 %db, %da, {b};
    setp.ne.u32 %p2, %k, 0;
    {multiply}
    {commit stage}
    add.u32 %i, %i, 1;
    add.u32 %k, %k, 1;
    setp.lt.u32 %p0, %k, {steps};
    @%p0 bra STEP;
    {accumulators}
    {commit tile}
    {next multiply}
    @%p0 bra TILE;
    bra END;
STORE:
    {accumulators}
    {wait done}
    {fence done}
    sub.u32 %r1, %t, 128;
    shr.u32 %r2, %r1, 5;
    shl.b32 %r2, %r2, 21;
    add.u32 %d, %d, %r2;
    tcgen05.ld.sync.aligned.32x32b.x{columns}.b32 {{{values}}}, [%d];
    {wait load}
    {fence loaded}
    mapa.shared::cluster.u32 %r0, %read, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r0];
    mad.lo.u32 %r1, %rank, 128, %r1;
    mad.lo.u32 %r1, %work, {rows}, %r1;
    ld.param.u64 %to, [out];
    mul.wide.u32 %rd0, %r1, {wide};
    add.u64 %to, %to, %rd0;
    {store}
    {next store}
    @%p0 bra STORE;
END:
    bar.warp.sync 0xffffffff;
    tcgen05.fence::before_thread_sync;
    {together}
    tcgen05.fence::after_thread_sync;
    setp.ne.u32 %p0, %warp, 1;
    @%p0 bra FREED;
    tcgen05.dealloc.{group}.sync.aligned.b32 %tensor, 128;
FREED:
    ret;
}}
"""
# The stage of step %i: its parity, its mbarriers, where it begins.
STAGE = """rem.u32 %slot, %i, {stages};
    div.u32 %parity, %i, {stages};
    and.b32 %parity, %parity, 1;
    xor.b32 %other, %parity, 1;
    shl.b32 %r7, %slot, 3;
    mov.u32 %full, fulls;
    add.u32 %full, %full, %r7;
    mov.u32 %empty, empties;
    add.u32 %empty, %empty, %r7;
    mov.u32 %peer, peers;
    add.u32 %peer, %peer, %r7;
    mov.u32 %buffer, stages;
    mad.lo.u32 %buffer, %slot, {pitch}, %buffer;"""
# And the same for the accumulators of %tile.
ACCUMULATORS = """rem.u32 %slot, %tile, {buffers};
    div.u32 %parity, %tile, {buffers};
    and.b32 %parity, %parity, 1;
    xor.b32 %other, %parity, 1;
    shl.b32 %r7, %slot, 3;
    mov.u32 %read, reads;
    add.u32 %read, %read, %r7;
    mov.u32 %done, dones;
    add.u32 %done, %done, %r7;
    mad.lo.u32 %d, %slot, {columns}, %tensor;"""
# The next tile: of so many, or what the scheduler was answered. %p0 is whether there is one.
COUNTED = """add.u32 %tile, %tile, 1;
    mov.u32 %work, %tile;
    setp.lt.u32 %p0, %tile, {tiles};"""
ANSWERED = """and.b32 %parity, %tile, 1;
{label}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [asked], %parity;
    @!%p1 bra {label};
    ld.shared.b128 %answer, [answer];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [answered];
    add.u32 %tile, %tile, 1;
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %answer;
    @%p0 clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %work, %answer;"""
READERS = 131  # of an answer: who produces, who multiplies, the epilogue and the scheduler itself
SCHEDULE = """setp.ne.u32 %p0, %t, 96;
    @%p0 bra END;
ASK:
    and.b32 %other, %tile, 1;
    xor.b32 %other, %other, 1;
WA: mbarrier.try_wait.parity.shared::cta.b64 %p1, [answered], %other;
    @!%p1 bra WA;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [asked], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [answer], [asked];
    {next schedule}
    @%p0 bra ASK;"""
# Scale factors go through the ring, too, and from the stage to tensor memory before each MMA.
SCALED = """shr.u32 %r0, %buffer, 4;
    cvt.u64.u32 %rd2, %r0;
    or.b64 %rd2, %rd2, 0x400800080000;
    add.u64 %rd2, %rd2, {factors};
    add.u32 %r3, %tensor, 64;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r3], %rd2;
    add.u64 %rd2, %rd2, 32;
    add.u32 %r4, %tensor, 68;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r4], %rd2;
    tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%d], %da, %db, {bits:#x}, [%r3], [%r4], %p2;"""


@dataclass(frozen=True)
class Ring:
    """Which ring, and what of its synchronization is not as it should be."""

    stages: int = 2
    buffers: int = 1  # of accumulators
    blocks: int = 1
    copies: bool = False  # A goes through tensor memory, by `tcgen05.cp`
    scaled: bool = False  # A and B have scale factors
    scheduled: bool = False  # blocks take over the work of others
    tiles: int = 3
    steps: int = 3
    edits: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """`2 stages, 1 accumulator, 1 block`"""
        parts = {"stage": self.stages, "accumulator": self.buffers, "block": self.blocks}
        named = ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in parts.items())
        return named + ", copied" * self.copies + ", scaled" * self.scaled + ", scheduled" * self.scheduled

    @property
    def bytes(self) -> int:
        """Of a stage."""
        return BYTES + 2 * FACTORS * self.scaled

    def text(self) -> str:
        pair = self.blocks == 2
        group = f"cta_group::{self.blocks}"
        columns = COLUMNS * self.blocks
        rows = ROWS * self.blocks
        bits = InstructionDescriptor("f16", rows, columns, "f16", "f16", form=PAIR if pair else PLAIN).encode()
        commit = f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster" + ".multicast::cluster" * pair + ".b64"
        multiply = f"tcgen05.mma.{group}.kind::f16 [%d], %da, %db, {bits:#x}, %p2;"
        if self.copies:
            copy = f"add.u32 %r3, %tensor, 64;\n    tcgen05.cp.{group}.128x256b [%r3], %da;\n    "
            multiply = copy + multiply.replace("%da", "[%r3]")
        if self.scaled:
            bits = InstructionDescriptor("mxf8f6f4", rows, columns, "e4m3", "e4m3").encode()
            multiply = SCALED.format(factors=BYTES // 16, bits=bits)
        counts = {"fulls": (self.stages, 1), "empties": (self.stages, 1), "peers": (self.stages, 1)}
        counts |= {"reads": (self.buffers, 128 * self.blocks), "dones": (self.buffers, 1)}
        if self.scheduled:
            counts |= {"asked": (1, 1), "answered": (1, READERS)}
        following = {
            f"next {role}": (ANSWERED if self.scheduled else COUNTED).format(
                tiles=self.tiles, label=f"N{role[0].upper()}"
            )
            for role in ("produce", "multiply", "store", "schedule")
        }
        following["next schedule"] = following["next schedule"].replace("NS", "NA")
        lines = SYNCHRONIZATION | {"wait relayed": SYNCHRONIZATION["wait full"].replace("WF", "WL")}
        if not pair:
            lines["wait peer"] = ""
        lines |= dict(self.edits)
        meet = "barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;"
        values = {
            "cluster": ".reqnctapercluster 2" if pair else "", "columns": columns, "rows": rows, "group": group,
            "stages": self.stages, "buffers": self.buffers, "blocks": self.blocks, "bytes": self.bytes,
            "size": self.stages * self.pitch, "total": self.tiles * self.steps, "wide": columns * 4,
            "tiles": self.tiles, "steps": self.steps, "b": ROWS * DEPTH * 2 // 16,
            "acquire": "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
            "together": meet if pair else "bar.sync 0;",
            "stage": STAGE.format(stages=self.stages, pitch=self.pitch),
            "start": "mov.u32 %work, %ctaid.x;" if self.scheduled else "mov.u32 %work, 0;",
            "schedule": SCHEDULE.format(**following) if self.scheduled else "", **following,
            "accumulators": ACCUMULATORS.format(buffers=self.buffers, columns=columns),
            "multiply": multiply,
            "values": ", ".join(f"%v{n}" for n in range(columns)),
            "store": "\n    ".join(f"st.global.b32 [%to+{4 * n}], %v{n};" for n in range(columns)),
            "initialize": "\n    ".join(
                f"mbarrier.init.shared::cta.b64 [{name}+{8 * n}], {count};"
                for name, (many, count) in counts.items() for n in range(many)
            ),
        }  # fmt: skip
        made = {name: line.format(commit=commit, mask=", %both" * pair, **values) for name, line in lines.items()}
        return KERNEL.format(**values, **made)

    @property
    def pitch(self) -> int:
        """Bytes from one stage to the next."""
        return -(-self.bytes // 1024) * 1024

    def run(self, seed: int = 0, **how: Any) -> tuple[bool, list[ptxlab.Diagnostic]]:
        """Whether the result is right, and what was found."""
        is_right, result = self.launch(ptxlab.parse(self.text(), name="ring.ptx"), seed, **how)
        return is_right, result.diagnostics

    def launch(self, module: ir.Module, seed: int = 0, **how: Any) -> tuple[bool, Result]:
        """Whether the result of a module, which may be another than `text` says, is right."""
        a, b, data = self._matrices()
        out = np.zeros((self.tiles, self.blocks * ROWS, self.blocks * COLUMNS), np.float32)
        options: dict[str, Any] = {"device": "cpu", "on_error": "collect", "timeout": 60, "seed": seed} | how
        grid = self.tiles if self.scheduled else self.blocks
        result = module["ring"].launch(grid, 256, [out, data], **options)
        left = a.transpose(0, 2, 3, 1, 4).reshape(self.tiles, self.blocks * ROWS, -1)
        right = b.transpose(0, 2, 3, 1, 4).reshape(self.tiles, self.blocks * COLUMNS, -1)
        return bool(np.array_equal(out, left @ right.transpose(0, 2, 1))), result

    def _matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A and B, scaled, in float64, and the bytes of all stages."""
        random = np.random.default_rng(1)
        shape = (self.tiles, self.steps, self.blocks)
        depth, type = (2 * DEPTH, ml_dtypes.float8_e4m3fn) if self.scaled else (DEPTH, np.float16)
        found, parts, scales = [], [], []
        for rows in (ROWS, COLUMNS):
            matrix = random.integers(-4, 5, (*shape, rows, depth)).astype(type)
            parts.append(_chunks(matrix.view(np.uint8)))
            powers = random.integers(126, 129, (*shape, rows)).astype(np.uint8)
            factors = np.zeros((*shape, 32, 4, 4), np.uint8)
            for row in range(rows):
                factors[..., row % 32, row // 32, 0] = powers[..., row]
            scales.append(factors.reshape(*shape, FACTORS))
            scale = 2.0 ** (powers.astype(np.float64) - 127) if self.scaled else np.ones((*shape, rows))
            found.append(matrix.astype(np.float64) * scale[..., None])
        data = np.concatenate([*parts, *scales] if self.scaled else parts, axis=-1)
        return found[0], found[1], data


def _chunks(matrix: np.ndarray) -> np.ndarray:
    """K-major core matrices without swizzling: eight rows of 16 bytes, two of them side by side."""
    *shape, rows, width = matrix.shape
    parts = matrix.reshape(*shape, rows // 8, 8, width // 16, 16)
    order = (*range(len(shape)), *(len(shape) + axis for axis in (0, 2, 1, 3)))
    return parts.transpose(order).reshape(*shape, rows * width)

"""Kernels of clusters for tests: a header, registers that say where a block is, and how they are run."""

from typing import Any

import numpy as np

import ptxlab
from tests.tools import header

HEAD = header("9.0", "sm_90") + ".shared .align 8 .b64 bar;\n.shared .align 16 .b32 tile[64];\n"


# %r1 to %r3: thread, rank, the rank of the next block; %r4 and %r5: the thread's word here and there; %rd1 its result.
BEGIN = """
    .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank;
    add.u32 %r3, %r2, 1; rem.u32 %r3, %r3, %r6;
    mov.u32 %r4, tile; mad.lo.u32 %r4, %r1, 4, %r4;
    mapa.shared::cluster.u32 %r5, %r4, %r3;
    mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ntid.x; mad.lo.u32 %r9, %r7, %r8, %r1;
    mad.wide.u32 %rd1, %r9, 4, %rd1;
    setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r2, 0;
"""


SYNC = "barrier.cluster.arrive; barrier.cluster.wait;\n"


def kernel(body: str, directives: str = "", target: str = "sm_90") -> Any:
    head = HEAD.replace("sm_90", target)
    return ptxlab.parse(f"{head}.entry k(.param .u64 out)\n{directives}\n{{{BEGIN}{body}\nret;\n}}\n")["k"]


def run(body: str, grid: int = 2, block: int = 32, cluster: Any = 2, **how: Any) -> np.ndarray:
    out = np.full(grid * block, 9999, np.uint32)
    kernel(body).launch(grid, block, [out], cluster=cluster, device="cpu", timeout=60, **how)
    return out.reshape(grid, block)


def findings(body: str, **how: Any) -> list[ptxlab.Diagnostic]:
    """What is found without a seed; with one, some of that may not be."""
    found = []
    for seed in range(4):
        out = np.zeros(1024, np.uint32)
        options = {"grid": 2, "block": 32, "cluster": 2} | how
        result = kernel(body).launch(args=[out], device="cpu", timeout=60, on_error="collect", seed=seed, **options)
        found.append(result.diagnostics)
    assert {one.code for diagnostics in found for one in diagnostics} == {one.code for one in found[0]}
    return found[0]


def codes(body: str, **how: Any) -> list[str]:
    return [diagnostic.code for diagnostic in findings(body, **how)]


# mbarriers of other blocks: the first block writes to the second one and arrives there.
MESSAGES = """
    @%p1 mbarrier.init.shared.b64 [bar], {expected};
    {begin}
    mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r3;
    @!%p2 bra wait;
    st.shared::cluster.u32 [%r5], 7;
    mbarrier.arrive{release}.shared::cluster.b64 _, [%r11];
    bra done;
wait:
    mbarrier.try_wait.parity{acquire}.shared::cta.b64 %p3, [bar], 0;
    @!%p3 bra wait;
    ld.shared.u32 %r20, [%r4];
    st.global.u32 [%rd1], %r20;
done:
""" + SYNC  # fmt: skip


RING = "st.shared.u32 [%r4], %r9;\n" + SYNC + "ld.shared::cluster.u32 %r20, [%r5];\nst.global.u32 [%rd1], %r20;\n"

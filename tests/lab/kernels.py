"""Kernels that the tests of the page show: a ring, a hang, a product with a wrong swizzle, a box, `tcgen05`, Python."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.author import Kernel, b32, kernel, pointer, ptx
from ptxlab.lab import Views
from tests.debug.kernels import EXCHANGE, RACE

ROOT = Path(__file__).parent.parent.parent
SWIZZLE = (ROOT / "docs/lab/swizzle.ptx").read_text(encoding="ascii")
WRONG, RIGHT = "and.b32 %swizzle, %row, 3;", "and.b32 %swizzle, %row, 7;"
TENSOR = (ROOT / "tests/cases/tensor/commit_awaited.ptx").read_text(encoding="ascii")

# Two stages: the first warp fills them, the second empties them.
RING = """.version 8.0
.target sm_90
.address_size 64
.visible .entry ring(.param .u64 out) {
  .shared .align 8 .b64 full[2];
  .shared .align 8 .b64 empty[2];
  .shared .align 4 .b32 tile[64];
  .reg .pred %p, %done;
  .reg .b32 %t, %round, %stage, %phase, %bar, %at, %v, %sum;
  .reg .b64 %state, %rd;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra ready;
  mbarrier.init.shared::cta.b64 [full], 32;
  mbarrier.init.shared::cta.b64 [full+8], 32;
  mbarrier.init.shared::cta.b64 [empty], 32;
  mbarrier.init.shared::cta.b64 [empty+8], 32;
ready:
  bar.sync 0;
  mov.u32 %round, 0;
  mov.u32 %sum, 0;
  setp.ge.u32 %p, %t, 32;
  and.b32 %t, %t, 31;
  @%p bra consumer;
producer:
  and.b32 %stage, %round, 1;
  shr.u32 %phase, %round, 1;
  not.b32 %phase, %phase;
  and.b32 %phase, %phase, 1;
  mov.u32 %bar, empty;
  mad.lo.u32 %bar, %stage, 8, %bar;
free:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], %phase;
  @!%done bra free;
  mov.u32 %at, tile;
  mad.lo.u32 %at, %stage, 128, %at;
  mad.lo.u32 %at, %t, 4, %at;
  st.shared.u32 [%at], %round;
  mov.u32 %bar, full;
  mad.lo.u32 %bar, %stage, 8, %bar;
  mbarrier.arrive.shared::cta.b64 %state, [%bar];
  add.u32 %round, %round, 1;
  setp.lt.u32 %p, %round, 6;
  @%p bra producer;
  ret;
consumer:
  and.b32 %stage, %round, 1;
  shr.u32 %phase, %round, 1;
  and.b32 %phase, %phase, 1;
  mov.u32 %bar, full;
  mad.lo.u32 %bar, %stage, 8, %bar;
filled:
  mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], %phase;
  @!%done bra filled;
  mov.u32 %at, tile;
  mad.lo.u32 %at, %stage, 128, %at;
  mad.lo.u32 %at, %t, 4, %at;
  ld.shared.u32 %v, [%at];
  add.u32 %sum, %sum, %v;
  mov.u32 %bar, empty;
  mad.lo.u32 %bar, %stage, 8, %bar;
  mbarrier.arrive.shared::cta.b64 %state, [%bar];
  add.u32 %round, %round, 1;
  setp.lt.u32 %p, %round, 6;
  @%p bra consumer;
  ld.param.u64 %rd, [out];
  mad.wide.u32 %rd, %t, 4, %rd;
  st.global.u32 [%rd], %sum;
  ret;
}
"""
HANG = RING.replace("[full+8], 32", "[full+8], 33")

# A box of a tensor, most of which is outside: it begins at row 24 and column 16 of 32 by 32.
BOX = """.version 8.6
.target sm_90
.address_size 64
.visible .entry box(.param .align 64 .b8 source[128]) {
  .reg .pred %first, %done;
  .reg .b32 %t, %column;
  .reg .b64 %map;
  .shared .align 1024 .b8 tile[4096];
  .shared .align 8 .b64 full;
  mov.u32 %t, %tid.x;
  mov.u32 %column, 16;
  mov.b64 %map, source;
  cvta.param.u64 %map, %map;
  setp.eq.u32 %first, %t, 0;
  @%first mbarrier.init.shared.b64 [full], 1;
  bar.sync 0;
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [full], 4096;
  @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [tile], [%map, {%column, 24}], [full];
wait:
  mbarrier.try_wait.parity.shared.b64 %done, [full], 0;
  @!%done bra wait;
  ret;
}
"""
# Two MMAs of ones, then of twos, one after the other: 16 products each.
PARTIAL = TENSOR.replace(
    "st.shared.v4.b32 [%at], {%round, %round, %round, %round};",
    "mad.lo.u32 %ones, %round, 0x04000400, 0x3c003c00;\n    st.shared.v4.b32 [%at], {%ones, %ones, %ones, %ones};",
).replace("%round;", "%round, %ones;", 1)
NEGATED = PARTIAL.replace("setp.ne.u32 %p, %round, 0", "setp.eq.u32 %p, %round, 0").replace("10, %p;", "10, !%p;")
TENSOR_WORDS = (ROOT / "tests/cases/tensor/fence_after_barrier.ptx").read_text(encoding="ascii")


@kernel(target="sm_80")
def shift(out: pointer[b32]):
    """Each thread reads what its neighbour writes; nothing orders the two."""
    slots = ptx.shared(b32, 64)
    slots[ptx.tid.x] = ptx.tid.x
    out[ptx.tid.x] = slots[ptx.tid.x ^ 32]


TILE = np.arange(1024, dtype=np.float32).reshape(32, 32)


def _product() -> list[Any]:
    draw = np.random.default_rng(7)
    a, b = (draw.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 64), (8, 64)))
    return [a, b, np.zeros((16, 8), np.float32)]


_LAUNCHES: dict[str, tuple[str | Kernel, int, Any]] = {
    "exchange": (EXCHANGE, 64, lambda: [np.zeros(64, np.uint32)]),
    "race": (RACE, 64, lambda: [np.zeros(64, np.uint32)]),
    "ring": (RING, 64, lambda: [np.zeros(32, np.uint32)]),
    "hang": (HANG, 64, lambda: [np.zeros(32, np.uint32)]),
    "swizzle": (SWIZZLE, 32, _product),
    "right swizzle": (SWIZZLE.replace(WRONG, RIGHT), 32, _product),
    "tcgen05": (TENSOR, 32, list),
    "partial sums": (PARTIAL, 32, list),
    "negated predicate": (NEGATED, 32, list),
    "tensor words": (TENSOR_WORDS, 256, lambda: [np.zeros(1, np.uint32)]),
    "box": (BOX, 32, lambda: [ptxlab.tensor_map(TILE, box=(32, 32), swizzle="128B")]),
    "python": (shift, 64, lambda: [np.zeros(64, np.uint32)]),
}


def _kernel(name: str, text: str | Kernel) -> Any:
    if isinstance(text, Kernel):
        return text
    module = ptxlab.parse(text, name=f"{name}.ptx")
    return module[module.entries[0]]


@cache
def launched(name: str) -> tuple[Views, ptxlab.Result, list[Any]]:
    """A launch of one of them as the page shows it, its result, and the arguments after it."""
    text, block, arguments = _LAUNCHES[name]
    given = arguments()
    result = _kernel(name, text).launch(1, block, given, device="cpu", on_error="collect", record=ptxlab.Record())
    assert result.trace is not None
    return Views(result.trace), result, given

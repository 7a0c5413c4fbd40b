"""Copies of boxes of tensors, one at a time: a kernel that makes one, and what is in shared memory after it.

`placed` is what an H200 does, as it was found there: with a swizzle, rows of a box are as far apart as that spans, and
bits of the address in shared memory itself decide where a piece of 16 bytes goes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ptxlab
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.report import Diagnostic

TILE = 16384
Array = np.ndarray[Any, Any]


def kernel(work: str, target: str = "sm_90", base: int = 0) -> str:
    """Shared memory from `source`, then `work` at `%r7`, then shared memory to `out`; `%c…`, `%h…` from `where`."""
    return f""".version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 source, .param .u64 where,
    .param .u32 bytes)
{{
    .reg .pred %p<4>;
    .reg .b16 %h<3>;
    .reg .b32 %r<8>, %c<5>;
    .reg .b64 %rd<8>;
    .shared .align 1024 .b8 tile[{TILE}];
    .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [source];
    ld.param.u64 %rd3, [where];
    ld.param.u32 %r1, [bytes];
    mov.b64 %rd4, map;
    cvta.param.u64 %rd4, %rd4;
    {" ".join(f"ld.global.b32 %c{at}, [%rd3+{4 * at}];" for at in range(5))}
    {" ".join(f"ld.global.b16 %h{at}, [%rd3+{20 + 4 * at}];" for at in range(3))}
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, tile;
    add.u32 %r7, %r3, {base};
    setp.ne.u32 %p1, %r2, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 1;
    mov.u32 %r4, %r2;
fill:
    mad.wide.u32 %rd5, %r4, 4, %rd2;
    ld.global.u32 %r5, [%rd5];
    mad.lo.u32 %r6, %r4, 4, %r3;
    st.shared.u32 [%r6], %r5;
    add.u32 %r4, %r4, 128;
    setp.lt.u32 %p2, %r4, {TILE // 4};
    @%p2 bra fill;
    fence.proxy.async;
    bar.sync 0;
{work}
    mov.u32 %r4, %r2;
copy:
    mad.lo.u32 %r6, %r4, 4, %r3;
    ld.shared.u32 %r5, [%r6];
    mad.wide.u32 %rd5, %r4, 4, %rd1;
    st.global.u32 [%rd5], %r5;
    add.u32 %r4, %r4, 128;
    setp.lt.u32 %p2, %r4, {TILE // 4};
    @%p2 bra copy;
    ret;
}}
"""


def load(rank: int, mode: str = "tile", offsets: int = 0) -> str:
    """A box is loaded, and waited for."""
    count = 5 if "gather" in mode else rank
    rest = f", {{{', '.join(f'%h{at}' for at in range(offsets))}}}" if offsets else ""
    return f"""    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], %r1;
    @!%p1 cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes
        [%r7], [%rd4, {{{", ".join(f"%c{at}" for at in range(count))}}}], [full]{rest};
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra wait;
"""


def store(rank: int, mode: str = "tile", reduction: str = "") -> str:
    """A box is stored, or combined with what is there."""
    count = 5 if "scatter" in mode else rank
    opcode = "cp.reduce.async" if reduction else "cp.async"
    return f"""    @!%p1 {opcode}.bulk.tensor.{rank}d.global.shared::cta{reduction}.{mode}.bulk_group
        [%rd4, {{{", ".join(f"%c{at}" for at in range(count))}}}], [%r7];
    @!%p1 cp.async.bulk.commit_group;
    @!%p1 cp.async.bulk.wait_group 0;
    bar.sync 0;
"""


def arguments(
    map: Any, coordinates: Sequence[int] = (), offsets: Sequence[int] = (), *, bytes: int = 0, source: Any = None
) -> list[Any]:
    """Those of the kernel; shared memory is 0xEE before if there is no `source`."""
    given = np.full(TILE, 0xEE, np.uint8) if source is None else source
    where = np.array([*coordinates, *[0] * (5 - len(coordinates)), *offsets, *[0] * (3 - len(offsets))], np.int32)
    return [map, np.zeros(TILE, np.uint8), given, where, bytes]


def run(
    map: TensorMap, work: str, coordinates: Sequence[int], offsets: Sequence[int] = (), *, rows: int = 0,
    source: Array | None = None, base: int = 0, target: str = "sm_90", device: str = "cpu",
) -> tuple[Array, list[Diagnostic]]:  # fmt: skip
    """What is in shared memory afterwards, and what is wrong; `rows` if the map does not say how many there are."""
    bytes = rows * map.box[0] * map.bits // 8 if rows else map.box_bytes
    args = arguments(map, coordinates, offsets, bytes=bytes, source=source)
    module = ptxlab.parse(kernel(work, target, base), name="k.ptx")
    result = module["k"].launch(1, 128, args, device=device, timeout=30, on_error="collect")
    return args[1], result.diagnostics


def some(shape: Sequence[int], type: Any = np.uint8) -> Array:
    """Random elements, none of them zero."""
    count = int(np.prod(shape)) * np.dtype(type).itemsize
    return np.random.default_rng(7).integers(1, 120, count, dtype=np.uint8).view(type).reshape(shape)


def placed(
    found: Array, swizzle: str | None = None, base: int = 0, *, moved: Callable[[int], int] | None = None
) -> Array:
    """Shared memory with a box in it; `moved` is where an offset goes by a swizzle of another kind."""
    tile = np.full(TILE, 0xEE, np.uint8)
    rows = np.ascontiguousarray(found).view(np.uint8).reshape(-1, found.shape[-1] * found.itemsize)
    span = int(swizzle[: swizzle.index("B")]) if swizzle else rows.shape[1]
    bits = {"32B": 1, "64B": 3, "128B": 7}.get(swizzle or "", 0)
    for number, row in enumerate(rows):
        for at in range(0, len(row), 16):
            offset = base + number * span + at
            offset = moved(offset) if moved else offset ^ (offset >> 7 & bits) << 4
            tile[offset : offset + 16] = row[at : at + 16]
    return tile

"""The kernels before and after: what each row needs, and the gradient of the queries, rounded."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from ptxlab.author import Kernel, b16, b32, f16, f32, kernel, pointer, ptx, s32, tensor_map, u32, u64
from ptxlab.kernels.mma_attention.softmax import combine, exchange
from ptxlab.kernels.parts.warpgroups import GROUP, pack
from ptxlab.kernels.wgmma_attention_backward.plan import BOX, Plan

ROW_THREADS = 256
VECTOR = 8  # elements that a thread reads at a time
COPY_BACK = ptx.cp.async_.bulk.tensor["4d"]["global"]["shared::cta"].bulk_group


@cache
def prepare(plan: Plan) -> Kernel:
    """A block has a tile of queries: the sums of answer × its gradient over each row, offsets of scores, zeros.

    Rows after the last get offsets that make their weights 0, and so do rows that attend to no key.
    """
    lanes = plan.size // VECTOR  # that share a row
    at_a_time = ROW_THREADS // lanes

    @kernel(target="sm_90a", maxntid=ROW_THREADS)
    def prepare_attention_backward(
        o: pointer[b16],
        do: pointer[b16],
        lse: pointer[f32],
        offsets: pointer[f32],
        d: pointer[f32],
        dq: pointer[f32],
        turns: pointer[u32],
        queries: u32,
        o_row: u64,
        o_head: u64,
        o_batch: u64,
        do_row: u64,
        do_head: u64,
        do_batch: u64,
    ) -> None:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        thread, tile = ptx.tid.x, ptx.ctaid.x
        head = ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y
        number = head * ptx.nctaid.x + tile
        zeros = dq + number * (plan.rows * plan.size) + thread * 4
        for start in range(0, plan.rows * plan.size, ROW_THREADS * 4):
            ptx.st["global"].v4.f32(zeros + start, tuple(f32(0.0) for _ in range(4)))
        ptx.st["global"].u32(turns + number, 0, when=thread == 0)
        within = ptx.cvt.u64.u32(thread % lanes * VECTOR).view(u64)
        sides = [
            array + (wide(ptx.ctaid.z) * batch + wide(ptx.ctaid.y) * head_step + within)
            for array, batch, head_step in ((o, o_batch, o_head), (do, do_batch, do_head))
        ]
        for start in range(0, plan.rows, at_a_time):
            own = thread // lanes + start
            row = tile * plan.rows + own
            inside = row < queries
            total = dot(
                plan.type, [side + wide(row) * step for side, step in zip(sides, (o_row, do_row), strict=True)], inside
            )
            distance = 1
            while distance < lanes:
                total = total + exchange(total, distance)
                distance *= 2
            with ptx.when(thread % lanes == 0):
                found = f32(-math.inf)
                ptx.ld["global"].f32(lse + head * queries + row, out=found, when=inside)
                offset = ptx.selp.f32(found, found * -math.log2(math.e), found == -math.inf)
                offsets[number * plan.rows + own] = offset
                d[number * plan.rows + own] = total

    found: Kernel = prepare_attention_backward
    return found


def wide(value: Any) -> Any:
    """A number as 64 bits."""
    return ptx.cvt.u64.u32(value).view(u64)


def dot(type: str, pointers: list[Any], inside: Any) -> Any:
    """The sum of the products of two vectors, or 0 outside."""
    words = [[b32(0) for _ in range(VECTOR // 2)] for _ in pointers]
    for source, own in zip(pointers, words, strict=True):
        ptx.ld["global"].nc.v4.b32(source, out=tuple(own), when=inside)
    left, right = ([value for word in own for value in widened(type, word)] for own in words)
    return combine(ptx.add.rn.f32, [one * other for one, other in zip(left, right, strict=True)])


def widened(type: str, word: Any) -> list[Any]:
    """Two elements as f32."""
    if type == "bf16":  # the upper half of an f32
        return [ptx.shl.b32(word, 16, out=f32()), ptx.and_.b32(word, 0xFFFF0000, out=f32())]
    return [ptx.cvt.f32.f16(half) for half in ptx.mov.b32(word, out=(f16(), f16()))]


@cache
def convert(plan: Plan) -> Kernel:
    """A block has a tile of the gradient of the queries: sums in f32 as the consumers hold them, scaled and rounded."""

    @kernel(target="sm_90a", maxntid=ROW_THREADS)
    def convert_attention_backward(sums: pointer[f32], dq: tensor_map) -> None:
        tile = ptx.tile(b16, plan.rows, BOX, swizzle="128B", copies=plan.boxes)
        part = ptx.warpgroup_fragments(plan.mma(16)).d.packed(f16).transposed
        number = (ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y) * ptx.nctaid.x + ptx.ctaid.x
        group, thread, warp = ptx.tid.x // GROUP, ptx.tid.x % GROUP, ptx.tid.x >> 5 & 3
        own = sums + number * (plan.rows * plan.size) + group * (plan.rows * plan.size // 2) + thread * 4
        down, right = part.row_of(ptx.laneid)
        if plan.split > 1:
            down = down + group * (plan.rows // plan.split)
        at = tile.at(down, right + warp * 16, group if plan.boxes > 1 else 0)
        scale = 1 / math.sqrt(plan.size)
        ptx.griddepcontrol.wait()
        loaded = [ptx.ld["global"].nc.v4.f32(own + vector * 4 * GROUP) for vector in range(plan.vectors)]
        for start in range(0, plan.vectors, 2):
            values = [value * scale for vector in loaded[start:][:2] for value in vector]
            part.store(at.move(rows=8 * start), [pack(plan.type, *values[pair:][:2]) for pair in range(0, 8, 2)])
        ptx.fence.proxy.async_["shared::cta"]()
        ptx.bar.sync(0)
        with ptx.when(ptx.tid.x == 0):
            for box in range(plan.boxes):
                row = (ptx.ctaid.x * plan.rows).view(s32)
                there = s32(box * BOX), row, ptx.ctaid.y.view(s32), ptx.ctaid.z.view(s32)
                COPY_BACK((dq.generic, there), tile.at(0, 0, box))
            ptx.cp.async_.bulk.commit_group()
            ptx.cp.async_.bulk.wait_group(0)

    found: Kernel = convert_attention_backward
    return found

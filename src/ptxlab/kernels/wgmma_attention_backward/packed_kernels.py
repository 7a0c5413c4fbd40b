"""The four kernels for sequences of unequal lengths, which follow each other: all take the same arguments."""

from __future__ import annotations

from functools import cache

from ptxlab.author import Kernel, b8, b16, f32, kernel, pointer, ptx, s32, tensor_map, u32, u64
from ptxlab.kernels.wgmma_attention_backward.kernel import compute
from ptxlab.kernels.wgmma_attention_backward.packed import LISTING_THREADS, PackedWork, Sequences, list_sequences
from ptxlab.kernels.wgmma_attention_backward.plan import THREADS, Plan
from ptxlab.kernels.wgmma_attention_backward.rows import ROW_THREADS, Rows, convert_rows, prepare_rows

KERNELS = {"list": LISTING_THREADS, "prepare": ROW_THREADS, "compute": THREADS, "convert": ROW_THREADS}
"""The kernels in their order, and the threads of a block of each."""


@cache
def specialize_packed(plan: Plan, step: str) -> Kernel:
    """Build one of the kernels."""

    def packed_attention_backward(
        q: tensor_map,
        do: tensor_map,
        dq: tensor_map,
        k: tensor_map,
        v: tensor_map,
        dk: tensor_map,
        dv: tensor_map,
        o_array: pointer[b16],
        do_array: pointer[b16],
        lse: pointer[f32],
        o_row: u64,
        o_head: u64,
        do_row: u64,
        do_head: u64,
        queries: u32,
        keys: u32,
        heads: u32,
        shared_by: u32,
        together: u32,
        window: u32,
        query_starts: pointer[s32],
        key_starts: pointer[s32],
        count: u32,
        maps: pointer[b8],
        owners: pointer[u32],
        sums: pointer[f32],
        offsets: pointer[f32],
        totals: pointer[f32],
        turns: pointer[u32],
        slopes: pointer[f32],
    ) -> None:
        ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself
        sequences = Sequences((queries, keys), (query_starts, key_starts), count, (owners, maps))
        if step == "list":
            list_sequences(plan, sequences, (q, do, dq, k, v, dk, dv))
            return
        if step == "compute":

            def work() -> PackedWork:
                return PackedWork(plan, sequences, heads, shared_by, together, window)

            compute(plan, (None,) * 6, work, (sums, offsets, totals, turns, slopes))
            return
        ptx.griddepcontrol.wait()
        rows = Rows.of(plan, queries, sequences)
        if step == "prepare":
            steps = (o_row, o_head, u64(0)), (do_row, do_head, u64(0))
            prepare_rows(plan, rows, (o_array, do_array), steps, (lse, queries), (offsets, totals, sums, turns))
        else:
            convert_rows(plan, rows, sums, lambda: sequences.map(rows.sequence, "dq"))

    packed_attention_backward.__name__ = f"{step}_packed_attention_backward"
    found: Kernel = kernel(target="sm_90a", maxntid=KERNELS[step], minnctapersm=1)(packed_attention_backward)
    return found

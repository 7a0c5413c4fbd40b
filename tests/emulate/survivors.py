"""Mutants of `mutation.py` that are as good as the kernel that they were made of, in this launch, and why.

A reason was found by reading the kernel. It holds for some lines of the PTX of one case, or for some instructions of
several, and for some kinds of mutation; all of them are right on 16 seeds, and nothing is reported.
"""

from dataclasses import dataclass

BARRIER = ("remove barrier", "barrier of the warp only")
WARP = ("barrier of the warp only",)
WAIT = ("remove wait", "wait for one group less")
ONE_LESS = ("wait for one group less",)
FENCE = ("remove fence", "narrow scope")
SCOPE = ("narrow scope",)
WEAK = ("volatile to weak", "relaxed to weak")


@dataclass(frozen=True)
class Survivor:
    """Why mutants of some lines are not reported; no lines: all whose instruction has `before` in it."""

    case: str
    lines: tuple[int, ...]
    kinds: tuple[str, ...]
    reason: str
    before: str = ""

    def holds(self, case: str, line: int, kind: str, before: str) -> bool:
        """Whether it is about this mutant."""
        if not self.lines:
            return case.startswith(self.case) and kind in self.kinds and self.before in before
        return case == self.case and line in self.lines and kind in self.kinds


LAST = "nothing is shared after it: the last of an unrolled loop, or the last before the end"
ONE_WARP = "the block is one warp"
ONE_BLOCK = "the grid is one block"
WITHIN_WARP = "from here on only threads of the first warp exchange values"
OWN = "what a thread reads after it, the same thread wrote"
FIRST_USE = "it keeps shared memory of an earlier use apart, and this is the first use"
NOTHING_WRITTEN = "with these data nothing is written to what others read around it; with others it is reported"
MEET = "lanes meet at a collective instruction beside it, which by decision orders them"
TWICE = "another one beside it does the same"
NONE_LEFT = "an earlier wait has waited for these groups already"
ELSEWHERE = "the group that may still be on its way writes where no other thread does any more"
ORDERED = "a barrier or fences order it anyway, so that it need not be strong"
LEADING = ("other leading offset of operand 1", "other leading offset of operand 2")
STRIDE = ("other stride offset of operand 1", "other stride offset of operand 2")
COUNT = ("one arrival more", "half the arrivals")
KEPT = "it only keeps the block until the others have read its memory, and hands nothing over"
UNUSED = "with a swizzle, a K-major matrix of one row of it has no use for the leading offset"
BEFORE = "nothing on tensor memory is in flight there: loads are waited for, and MMAs by a commit"
AFTER = "what it comes after is an allocation or a copy to shared memory, or another fence follows before tensor memory"
INITIALIZED = "the barrier after it orders the initialization for all that use the mbarriers"
LOADED = (
    "after `tcgen05.wait::ld`, a relaxed arrival hands over that the loads are done, and a relaxed wait takes it over"
)
AT_END = "bulk stores are complete when the grid ends, and an SM keeps shared memory for them (bulk_at_exit.json)"
UNTOUCHED = "no register of the MMAs is accessed between it and the fence before it"
NO_MORE = "it is for the last tile: the producer copies no more, and does not wait for it"
WITH_BYTES = (
    "what `st.async` wrote is there for every thread that sees its bytes complete, whatever the scope of the wait"
)
RELEASED_LATER = (
    "the producer copies queries first, and waits for their stage, which all MMAs of a tile are done before; "
    "what is released earlier is not filled earlier"
)
ONE_CHUNK = "a row is one chunk of 16 bytes: the leading offset leads nowhere"
FENCED_LATER = (
    "the warps that transpose values execute such a fence after the barrier, and every MMA that reads the ones comes "
    "after an arrival of theirs"
)
ONE_QUERY_STAGE = (
    "the producer has waited for the stage of the queries before, which threads release after they have read the "
    "number that was there: with one stage of queries, no number is overwritten that is still to be read"
)
KEYS_FIRST = (
    "keys are copied before it, into a stage that threads release after they have waited for the values of that time "
    "to be transposed: with as many stages of values as of keys, those are free by then"
)
EIGHT_ROWS = "the matrix has 8 rows: the stride from these to the next 8 leads nowhere"

NO_KERNEL_BEFORE = "no other kernel writes lengths while this one runs, as one before it may on a GPU"
# PTX ISA 8.9.5; tests/litmus/reset-observed.litmus and reset-observed-barrier.litmus ask the axioms.
READ_BEFORE = "the block has read what another one wrote there, so that the two stores are in that order"

EQUIVALENT = [
    Survivor("cluster_ring-clusters.sm_90", (65,), ("release to relaxed",), KEPT),
    Survivor("cluster_sums-clusters.sm_90", (135,), ("release to relaxed",), KEPT),
    Survivor("cluster_transpose-clusters.sm_90", (283,), ("release to relaxed",), KEPT),
    Survivor("tcgen05_gemm", (), LEADING, UNUSED, "tcgen05.mma"),
    Survivor("nvfp4", (), LEADING, UNUSED, "tcgen05.mma"),
    Survivor("nvfp4", (), LEADING, ONE_CHUNK, "32x128b"),
    *(Survivor(case, (), LEADING, UNUSED, "wgmma.mma_async") for case in ("wgmma", "scaled_gemm")),
    *(
        Survivor(case, (), ("remove tensor fence",), reason, fence)
        for case in ("ring", "blackwell_product")
        for fence, reason in (("before_thread_sync", BEFORE), ("after_thread_sync", AFTER))
    ),
    *(
        Survivor(case, (), ("remove fence",), INITIALIZED, "fence.mbarrier_init")
        for case in ("wgmma", "ring", "scaled_gemm")
    ),
    Survivor("wgmma_attention", (), SCOPE, ONE_BLOCK, "atom.relaxed.gpu"),
    Survivor("wgmma_attention", (), (*SCOPE, *WEAK), ONE_BLOCK, "st.relaxed.gpu"),
    Survivor("tcgen05_gemm pair", (), ("release to relaxed",), LOADED, "mbarrier.arrive.release.cluster"),
    Survivor("ring", (), ("one arrival more",), "with one block no thread waits on it", "[peers"),
    Survivor(
        "wgmma_grouped_gemm", (), BARRIER, "barriers of all threads follow, where tiles are counted", "bar.sync 0"
    ),
    *(
        Survivor(case, (), ("remove warp barrier",), "a barrier of all threads follows", "bar.warp.sync")
        for case in ("ring", "tcgen05_gemm pair")
    ),
    Survivor("ring", (), ("acquire to relaxed", "narrow scope"), LOADED, "[%read]"),
    Survivor("ring", (), ("release to relaxed", "narrow scope"), LOADED, "mbarrier.arrive.release.cluster"),
    *(Survivor(case, (), WAIT, AT_END, "cp.async.bulk.wait_group") for case in ("wgmma", "scaled_gemm")),
    Survivor("wgmma_attention", (), ("remove commit",), AT_END, "cp.async.bulk.commit_group"),
    Survivor("wgmma_attention", (), ("remove tensor fence",), UNTOUCHED, "wgmma.fence"),
    Survivor("wgmma_attention", (), ("remove arrive",), NO_MORE, "mbarrier.arrive.shared.b64"),
    *(
        Survivor(case, (), SCOPE, WITH_BYTES, "mbarrier.try_wait.parity.acquire.cluster")
        for case in ("layer_norm", "rms_norm", "softmax")
    ),
    Survivor("decode_attention", (), (*SCOPE, *WEAK), NO_KERNEL_BEFORE, "ld.relaxed.gpu.global.u32"),
    Survivor("decode_attention", (), (*SCOPE, *WEAK), READ_BEFORE, "{0, 0"),
    Survivor("wgmma_attention_backward", (), ("remove wait",), RELEASED_LATER, "mbarrier.try_wait.parity.shared.b64"),
    Survivor("wgmma_attention_backward", (), ("remove commit",), RELEASED_LATER, "wgmma.commit_group"),
    Survivor("wgmma_attention_backward", (), WAIT, RELEASED_LATER, "wgmma.wait_group.sync.aligned 1"),
    Survivor("wgmma_attention_fp8 wgmma", (182,), ("remove fence",), FENCED_LATER),
    Survivor("wgmma_attention_fp8 wgmma", (331,), ("remove wait",), ONE_QUERY_STAGE),
    Survivor("wgmma_attention_fp8 wgmma", (379,), ("remove wait",), KEYS_FIRST),
    Survivor("wgmma_attention_fp8", (), STRIDE, EIGHT_ROWS, "m64n8k32"),
    Survivor("tcgen05_gemm", (), WAIT, AT_END, "cp.async.bulk.wait_group 0"),
    Survivor("nvfp4", (), WAIT, AT_END, "cp.async.bulk.wait_group 0"),
    Survivor("pipelined", (), WAIT, "the copies that are left are of no bytes", "cp.async.wait_all"),
    Survivor("mma_gemm", (), WAIT, NONE_LEFT, "cp.async.wait_all"),
    Survivor("mma_gemm mma.sync", (426,), BARRIER, "what is overwritten was read before the last barrier of the loop"),
    Survivor("tcgen05_gemm specialized", (), ("remove commit",), AT_END, "cp.async.bulk.commit_group"),
    Survivor("ring", (), LEADING, ONE_CHUNK, "32x128b"),
    Survivor("ring", (), ("remove fence",), "threads only read before it, and reads are over when they are ordered"),
    Survivor("work_queue-blocks.sm_80", (283,), SCOPE, "only the block that took a piece adds to its result"),
    Survivor("work_queue-blocks.sm_80", (293, 296), WARP, ONE_WARP),
    Survivor("barrier_answers-barriers", (41,), WARP, "the barrier is one of 32 threads, and these are one warp"),
    Survivor("cub_sort-library.sm_80", (264,), BARRIER, "a thread then writes only the word that it has read itself"),
    Survivor("pipeline_sums-library.sm_80", (498,), WEAK, ORDERED),
    Survivor("pipeline_sums-library.sm_90", (495,), WEAK, ORDERED),
    Survivor("group_copy-library.sm_80", (865, 871), WARP, ONE_WARP),
    Survivor("semaphore_of_two-library.sm_80", (1142,), ("acquire to relaxed",), "the `atom.cas` after it acquires"),
    Survivor("semaphore_of_two-library.sm_80", (1168, 1170, 1172, 1174), SCOPE, ONE_BLOCK),
    Survivor("double_matmul-matmuls.sm_80", (1104,), BARRIER, LAST),
    Survivor("laplace_3d-stencils.sm_80", (559,), BARRIER, LAST),
    Survivor("game_of_life-stencils.sm_80", (955,), BARRIER, OWN),
    Survivor("fft-numeric.sm_80", (158,), BARRIER, OWN),
    Survivor(
        "two_stage_copy-pipelines.sm_80", (700,), BARRIER, "no copy begins after it: these are the last two tiles"
    ),
    Survivor("tree_sum-reductions.sm_80", (98, 108, 118, 128, 138), WARP, WITHIN_WARP),
    Survivor("tree_sum-reductions.sm_80", (148,), BARRIER, OWN),
    Survivor("last_block_sum-reductions.sm_80", (478, 488, 498, 508, 518), WARP, WITHIN_WARP),
    Survivor("last_block_sum-reductions.sm_80", (534, 570, 572, 574, 576, 593), WEAK, ORDERED),
    Survivor("place_of_largest-reductions.sm_80", (814, 843, 872, 901, 930), WARP, WITHIN_WARP),
    Survivor("place_of_largest-reductions.sm_80", (930,), ("remove barrier",), NOTHING_WRITTEN),
    Survivor("double_dot-reductions.sm_80", (1038,), WARP, WITHIN_WARP),
    Survivor("softmax-rows.sm_80", (88,), BARRIER, FIRST_USE),
    Survivor("layer_norm-rows.sm_80", (395,), BARRIER, FIRST_USE),
    Survivor("half_norm-rows.sm_80", (677,), BARRIER, FIRST_USE),
    Survivor("blelloch-scans.sm_80", (140, 277, 399), BARRIER, OWN),
    Survivor("blelloch-scans.sm_80", (195, 210, 225, 240, 255, 291, 305, 319, 333, 347), WARP, WITHIN_WARP),
    Survivor("odd_even_sort-sorts.sm_80", (212, 237), BARRIER, NOTHING_WRITTEN),
    Survivor("levels-tables.sm_80", (502,), SCOPE, ONE_BLOCK),
    Survivor("triton_matmul-triton_matmul.sm_80", (213,), WAIT, NONE_LEFT),
    Survivor("triton_matmul-triton_matmul.sm_80", (214,), BARRIER, TWICE),
    Survivor("triton_matmul-triton_matmul.sm_80", (291, 292), WAIT, TWICE),
    Survivor("triton_matmul-triton_matmul.sm_80", (335,), ONE_LESS, ELSEWHERE),
    Survivor("triton_matmul_tf32-triton_matmul_tf32.sm_80", (273, 488), WAIT, NONE_LEFT),
    Survivor("triton_matmul_tf32-triton_matmul_tf32.sm_80", (274,), BARRIER, TWICE),
    Survivor("triton_matmul_tf32-triton_matmul_tf32.sm_80", (447, 448), WAIT, TWICE),
    Survivor("triton_attention-triton_attention.sm_80", (641,), ONE_LESS, ELSEWHERE),
    Survivor(
        "triton_attention-triton_attention.sm_80", (642,), WARP, "a warp writes only where it has copied to itself"
    ),
    Survivor("triton_column_maxima-triton_column_maxima.sm_80", (213,), BARRIER, "what is written next is elsewhere"),
    Survivor("triton_sort-triton_sort.sm_80", (430,), BARRIER, f"a warp writes only where it has read itself; {MEET}"),
    Survivor("triton_histogram-triton_histogram.sm_80", (129, 138), BARRIER, LAST),
    Survivor("triton_histogram-triton_histogram.sm_80", (135,), ("acq_rel to relaxed",), "it publishes only itself"),
    Survivor("triton_spin-triton_spin.sm_80", (68, 78), BARRIER, f"{ONE_WARP}; {MEET}"),
    Survivor("triton_spin-triton_spin.sm_80", (97, 99), BARRIER, TWICE),
    Survivor("triton_spin-triton_spin.sm_80", (106,), BARRIER, LAST),
]

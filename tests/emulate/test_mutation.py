"""A sample of the mutants of `mutation.py`, each of which must be reported, and how mutants are made."""

import pytest

from ptxlab import kernels
from tests.emulate.kernels import CASES
from tests.emulate.mutants import judge, lines_beside, mutants_of, survivor_of
from tests.emulate.mutation_operators import changes, variables_of
from tests.emulate.mutation_subjects import RINGS, subject_of, subjects
from tests.emulate.survivors import EQUIVALENT, Survivor

SAMPLE = [
    ("tiled_transpose-transposes.sm_80", "remove barrier", "data-race"),
    ("named_barriers-pipelines.sm_80", "remove barrier", "hang"),
    ("tree_sum-reductions.sm_80", "barrier of the warp only", "data-race"),
    ("radix_sort-sorts.sm_80", "barrier of the warp only", "out-of-bounds"),  # by what no thread has written yet
    ("transpose_by_matrix_moves-mma.sm_80", "remove warp barrier", "data-race"),
    ("separate_ways-warps.sm_80", "remove warp barrier", "data-race"),
    ("under_lock-atomics.sm_80", "remove fence", "data-race"),
    ("broadcast_by_flag-blocks.sm_80", "remove fence", "data-race"),
    ("smooth_together-blocks.sm_80", "narrow scope", "data-race"),
    ("message-message", "narrow scope", "data-race"),
    ("pass_the_token-blocks.sm_80", "acquire to relaxed", "data-race"),
    ("pass_the_token-blocks.sm_80", "release to relaxed", "data-race"),
    ("triton_spin-triton_spin.sm_80", "acq_rel to relaxed", "data-race"),
    ("look_back_scan-scans.sm_80", "volatile to weak", "data-race"),
    ("two_stage_copy-pipelines.sm_80", "remove wait", "data-race"),
    ("copies_on_barrier-pipelines.sm_90", "remove wait", "data-race"),
    ("mma_pipelined-mma.sm_80", "wait for one group less", "data-race"),
    ("triton_matmul_tf32-triton_matmul_tf32.sm_80", "wait for one group less", "data-race"),
    ("copies_on_barrier-pipelines.sm_80", "remove arrive", "data-race"),
    ("ring-ring", "remove arrive", "hang"),
    ("block_barriers-pipelines.sm_80", "remove arrive", "hang"),
    ("block_barriers-pipelines.sm_90", "remove arrive", "hang"),
]


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(("name", "kind", "code"), SAMPLE, ids=[f"{name} {kind}" for name, kind, _ in SAMPLE])
def test_the_first_mutant_of_a_kind_is_reported(name: str, kind: str, code: str) -> None:
    case = next(case for case in CASES if case.name == name)
    mutant = next(mutant for mutant in mutants_of(subject_of(case)) if mutant.kind == kind)
    outcome = judge(mutant)
    assert (outcome.verdict, outcome.seed) == ("reported", 0)
    assert code in outcome.findings


def test_a_mutant_that_is_as_good_as_the_kernel_survives() -> None:
    case = next(case for case in CASES if case.name == "game_of_life-stencils.sm_80")
    *_, last = [mutant for mutant in mutants_of(subject_of(case)) if mutant.kind == "remove barrier"]
    assert judge(last).verdict == "survived"
    assert survivor_of(last) in EQUIVALENT


def test_survivors_are_of_cases() -> None:
    """By the names of kernels alone: to make all those of the gallery takes seconds, which the next test does."""
    gallery = kernels.names()
    names = {*(case.name for case in CASES), *gallery, *(f"ring {ring.name}" for ring in RINGS)}
    for survivor in EQUIVALENT:
        assert survivor.case.partition(" ")[0] in gallery or _is_of(survivor, names), survivor


@pytest.mark.bulk
def test_survivors_are_of_subjects() -> None:
    names = {subject.name for subject in subjects()}
    assert [survivor for survivor in EQUIVALENT if not _is_of(survivor, names)] == []


def _is_of(survivor: Survivor, names: set[str]) -> bool:
    return survivor.case in names or (not survivor.lines and any(name.startswith(survivor.case) for name in names))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bar.sync 0;", {"remove barrier": "", "barrier of the warp only": "bar.warp.sync 0xffffffff;"}),
        ("@%p1 barrier.arrive 3, 64;", {"remove barrier": ""}),
        ("bar.red.or.pred %p1, 2, 64, %p2;", {"remove barrier": ""}),
        ("bar.warp.sync -1;", {"remove warp barrier": ""}),
        ("membar.gl;", {"remove fence": "", "narrow scope": "membar.cta;"}),
        ("fence.acq_rel.sys;", {"remove fence": "", "narrow scope": "fence.acq_rel.cta;"}),
        ("fence.sc.cta;", {"remove fence": ""}),
        ("cp.async.wait_group 1;", {"remove wait": "", "wait for one group less": "cp.async.wait_group 2;"}),
        ("cp.async.wait_all;", {"remove wait": ""}),
        ("mbarrier.try_wait.shared.b64 %p, [%r1], %rd1;", {"remove wait": "setp.eq.u32 %p, 0, 0;"}),
        ("mbarrier.arrive.shared.b64 _, [%r1];", {"remove arrive": ""}),
        ("ld.volatile.global.u32 %r1, [%rd1];", {"volatile to weak": "ld.global.u32 %r1, [%rd1];"}),
        ("ld.relaxed.cta.u32 %r1, [%rd1];", {"relaxed to weak": "ld.u32 %r1, [%rd1];"}),
        (
            "@%p1 st.release.gpu.u32 [%rd1], %r1;",
            {
                "release to relaxed": "@%p1 st.relaxed.gpu.u32 [%rd1], %r1;",
                "narrow scope": "@%p1 st.release.cta.u32 [%rd1], %r1;",
            },
        ),
        ("atom.global.add.u32 %r1, [%rd1], 1;", {"narrow scope": "atom.cta.global.add.u32 %r1, [%rd1], 1;"}),
        ("atom.shared.add.u32 %r1, [%r2], 1;", {}),
        ("ld.global.u32 %r1, [%rd1];", {}),
        ("mbarrier.init.shared.b64 [%r1], 1;", {"one arrival more": "mbarrier.init.shared.b64 [%r1], 2;"}),
    ],
)
def test_changes(before: str, after: dict[str, str]) -> None:
    assert dict(changes(before)) == after


RING = """
    .shared .align 8 .b64 full[2], empty[2];
    mov.u32 %r1, empty;
    add.u32 %r2, %r1, %r3;
    mov.u32 %r4, full;
    st.shared.u32 [%r5], 0;
    tcgen05.fence::before_thread_sync;
    mbarrier.arrive.shared.b64 _, [%r2];
    cp.async.bulk.wait_group 0;
"""


def test_what_a_report_shows_of_a_removed_line() -> None:
    """The nearest access and the nearest synchronization before and after it, or its mbarrier."""
    arrive = "mbarrier.arrive.shared.b64 _, [%r2];"
    assert variables_of(RING, arrive) == {"empty"}
    code = [(n, line.strip()) for n, line in enumerate(RING.splitlines()) if line.strip() and ".shared ." not in line]
    at = next(number for number, (_, text) in enumerate(code) if text == arrive)
    assert [code[number][1] for number in range(len(code)) if code[number][0] in lines_beside(code, at)] == [
        "st.shared.u32 [%r5], 0;", "cp.async.bulk.wait_group 0;",
    ]  # fmt: skip

"""Pipelines with roles, and tensor memory: proved for any k; mutants and wrong twins are not."""

from __future__ import annotations

import re

import pytest

import ptxlab
from ptxlab.learn import text_of
from ptxlab.prove import solver
from tests.prove.pipelines import PIPELINES, judge, mutants

pytestmark = pytest.mark.skipif(solver.z3 is None, reason="Z3 is not installed: `pip install 'ptxlab[prove]'`")


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("name", sorted(PIPELINES))
def test_a_pipeline_of_any_size(name: str) -> None:
    pipeline = PIPELINES[name]
    found = ptxlab.prove(pipeline.launch(pipeline.sizes[-1]), assume=pipeline.assume, replays=False, timeout=600)
    assert found.level == "proved", str(found)


@pytest.mark.bulk
@pytest.mark.parametrize("number", range(0, 60, 6))
@pytest.mark.parametrize("name", sorted(PIPELINES))
def test_no_mutant_is_proved(name: str, number: int) -> None:
    row = judge((name, number))
    assert row["level"] != "proved" or (row["wrong"] is None and row["reason"]), row


WRONG = [
    ("specialized", r"\], 8;", "], 4;", ("hang", "data-race")),
    ("specialized", r"wait_group\.sync\.aligned 1;", "wait_group.sync.aligned 2;", ("data-race",)),
    ("tcgen05 ring", r"\[done\], 0;", "[done], 1;", ("data-race",)),
    ("tcgen05 ring", r"    tcgen05\.fence::after_thread_sync;\n", "", ("missing-tensor-fence",)),
    ("tcgen05 specialized", r"    fence\.proxy\.async\.shared::cta;\n", "", ("missing-proxy-fence",)),
    ("tcgen05 specialized", r"    barrier\.sync\.aligned 1, 128;\n", "", ("data-race", "missing-proxy-fence")),
]


@pytest.mark.bulk(one_in=6)
@pytest.mark.parametrize(("name", "old", "new", "codes"), WRONG)
def test_a_wrong_twin_is_refuted_by_its_run(name: str, old: str, new: str, codes: tuple[str, ...]) -> None:
    pipeline = PIPELINES[name]
    launch = pipeline.launch(pipeline.sizes[-1])
    text = text_of(launch)
    wrong = re.sub(old, new, text, count=0 if old.startswith(r"\], 8") else 1)
    assert wrong != text
    found = ptxlab.prove(launch.changed((text, wrong)), assume=pipeline.assume)
    assert found.counterexample is not None, str(found)
    assert found.counterexample.finding.code in codes


def test_mutants_are_many() -> None:
    """A pattern that matches nothing any more would make the run over mutants say nothing."""
    changes = [change for _, change in mutants(text_of(PIPELINES["tcgen05 specialized"].launch(64)))]
    for part in ("tcgen05.commit", "mbarrier.init", "expect_tx", "fence.proxy", "xor.b32", "try_wait", "barrier.sync"):
        assert any(part in change for change in changes), part


ONLY_SOME = """.version 8.6
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 x)
{
    .reg .pred %p<3>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 8 .b64 full;
    mov.u32 %r0, %tid.x;
    ld.param.u64 %rd0, [x];
    setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [full], 32;
    bar.sync 0;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    ld.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    mbarrier.arrive.shared.b64 _, [full];
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;
    @!%p2 bra wait;
    ret;
}
"""


def test_threads_that_memory_chooses() -> None:
    """Only some of the threads arrive, and these wait for all: which ones is in memory."""
    kernel = ptxlab.parse(ONLY_SOME, "some.ptx")["kernel"]
    found = ptxlab.prove(kernel, block=32, assume=["len(x) == 32"], replays=False)
    assert found.level == "not-proved", str(found)
    assert any("which threads come here depends on more" in gap.reason for gap in found.gaps), str(found)

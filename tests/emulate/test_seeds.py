"""Several schedules of one launch: `seeds=`."""

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import ptxlab

# Counts its threads in a variable of the module, then adds to a sum, or writes to it without order.
RACY = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 launches;
.entry k (.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    atom.global.add.u32 %r1, [launches], 1;
    ld.param.u64 %rd1, [out];
    mov.u32 %r2, %tid.x;
    STATEMENT
    ret;
}
"""
RIGHT = RACY.replace("STATEMENT", "red.global.add.u32 [%rd1], %r2;")
WRONG = RACY.replace("STATEMENT", "st.global.u32 [%rd1], %r2;")


def test_every_seed_sees_the_same_data_and_the_arrays_are_changed_once() -> None:
    out, module = np.array([100], np.uint32), ptxlab.parse(RIGHT)
    module["k"].launch(1, 32, [out], seeds=5)
    assert out[0] == 100 + sum(range(32))
    assert module.get("launches") == 32


def test_a_finding_of_any_seed_is_reported_with_the_seed() -> None:
    with pytest.raises(ptxlab.KernelError, match="data-race"):
        ptxlab.parse(WRONG)["k"].launch(1, 32, [np.zeros(1, np.uint32)], seeds=[3, 4])
    result = ptxlab.parse(WRONG)["k"].launch(1, 32, [np.zeros(1, np.uint32)], seeds=[3, 4], on_error="collect")
    assert "replay with `seed=3`" in result.diagnostics[0].notes


def test_seeds_are_for_the_emulator_and_not_none_at_all() -> None:
    kernel = ptxlab.parse(RIGHT)["k"]
    with pytest.raises(ValueError, match="empty"):
        kernel.launch(1, 32, [np.zeros(1, np.uint32)], seeds=[])
    with pytest.raises(ValueError, match="emulator alone"):
        kernel.launch(1, 32, [np.zeros(1, np.uint32)], seeds=2, device="cuda")


# What they cover.

WINDOW = """
.version 8.0
.target sm_80
.address_size 64
.entry k (.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra reader;
    st.relaxed.gpu.global.u32 [%rd1+4], 1;
    st.global.u32 [%rd1], 7;
    st.release.gpu.global.u32 [%rd1+4], 0;
    ret;
reader:
    ld.acquire.gpu.global.u32 %r2, [%rd1+4];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra end;
    ld.global.u32 %r3, [%rd1];
end:
    ret;
}
"""


def test_seeds_say_what_they_covered() -> None:
    result = ptxlab.parse(RIGHT)["k"].launch(1, 32, [np.zeros(1, np.uint32)], seeds=30)
    coverage = result.coverage
    assert [schedule.seed for schedule in coverage.schedules] == list(range(30))
    assert 20 < coverage.distinct <= 30
    assert (coverage.threads, coverage.points) == (32, 64)
    # Each of seeds 1, 7, 13, … finds a bug of depth 1 with 1/32, if not by chance then by priorities.
    assert coverage.probability(1) == pytest.approx(1 - (31 / 32) ** 5)
    assert coverage.probability(1) > coverage.probability(2) > coverage.probability(3) > 0
    assert str(coverage).startswith(f"30 schedules, {coverage.distinct} distinct; 32 threads, 64 preemption points; ")


def test_a_seed_is_one_schedule_on_any_number_of_cores() -> None:
    text = RIGHT.replace("red.global.add.u32 [%rd1], %r2;", "").replace(
        "atom.global.add.u32 %r1, [launches], 1;",
        """
    .shared .u32 sum;
    atom.shared.add.u32 %r1, [sum], 1;""",
    )
    for seed in (1, 2, 3, 4, 5):
        found = [
            ptxlab.parse(text)["k"].launch(
                40, 32, [np.zeros(1, np.uint32)], seed=seed, workers=workers, detectors=detectors, device="cpu"
            )
            for workers in (1, 3)
            for detectors in (True, False)
        ]
        assert len({one.coverage for one in found}) == 1


@pytest.fixture(params=["processes", pytest.param("a Dask cluster", marks=pytest.mark.bulk)])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "processes":
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            yield pool
        return
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        yield client.get_executor()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Dask's own
def test_seeds_that_are_spread_find_the_same(executor: Executor) -> None:
    here = ptxlab.parse(WINDOW)["k"].launch(2, 1, [np.zeros(2, np.uint32)], seeds=100, on_error="collect")
    there = ptxlab.parse(WINDOW)["k"].launch(
        2, 1, [np.zeros(2, np.uint32)], seeds=100, on_error="collect", executor=executor
    )
    assert here.diagnostics[0].code == "data-race"
    assert here.coverage == there.coverage
    assert [str(one) for one in here.diagnostics] == [str(one) for one in there.diagnostics]


@pytest.mark.slow
def test_many_seeds_are_spread_over_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxlab.emulate.search.seeds.SOON", 0.0)
    out, module = np.array([100], np.uint32), ptxlab.parse(RIGHT)
    result = module["k"].launch(1, 32, [out], seeds=10)
    assert (out[0], module.get("launches")) == (100 + sum(range(32)), 32)
    monkeypatch.undo()
    assert result.coverage == ptxlab.parse(RIGHT)["k"].launch(1, 32, [out], seeds=10).coverage


# A thread stores 1 and takes it back again and again, until another one was faster; see `docs/emulator.md`.
TAKEN_BACK = """
.version 8.0
.target sm_80
.address_size 64
.entry k (.param .u64 word)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [word];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p, %r1, 32;
    @%p bra OTHER;
    setp.ne.u32 %p, %r1, 0;
    @%p ret;
AGAIN:
    st.relaxed.gpu.global.u32 [%rd1], 1;
    atom.relaxed.gpu.global.exch.b32 %r2, [%rd1], 0;
    setp.eq.u32 %p, %r2, 1;
    @%p bra AGAIN;
    ret;
OTHER:
    ld.relaxed.gpu.global.u32 %r2, [%rd1];
    setp.eq.u32 %p, %r2, 0;
    @%p bra OTHER;
    atom.relaxed.gpu.global.exch.b32 %r2, [%rd1], 0;
    setp.eq.u32 %p, %r2, 0;
    @%p bra OTHER;
    ret;
}
"""


@pytest.mark.parametrize("seed", [3, 7, 17, 27])
def test_every_seed_but_0_ends_that_needs_a_switch_between_two_accesses(seed: int) -> None:
    result = ptxlab.parse(TAKEN_BACK)["k"].launch(1, 64, [np.zeros(1, np.uint32)], seed=seed, timeout=20)
    assert result.diagnostics == []


# Stores that change nothing; each thread counts how often another one was between two of its own.
UNCHANGED = """
.version 8.0
.target sm_80
.address_size 64
.entry k (.param .u64 words, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [words];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
AGAIN:
    st.relaxed.gpu.global.u32 [%rd1], 1;
    atom.relaxed.gpu.global.exch.b32 %r4, [%rd1+4], %r1;
    setp.ne.u32 %p, %r4, %r1;
    @%p add.u32 %r3, %r3, 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, 300;
    @%p bra AGAIN;
    st.global.u32 [%rd2], %r3;
    ret;
}
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_schedule_does_not_depend_on_the_detectors(seed: int) -> None:
    kernel, seen = ptxlab.parse(UNCHANGED)["k"], []
    for detectors in (True, False):
        out = np.zeros(4, np.uint32)
        result = kernel.launch(1, 4, [np.zeros(2, np.uint32), out], seed=seed, detectors=detectors, device="cpu")
        seen.append((out.tolist(), result.coverage))
    assert seen[0] == seen[1]

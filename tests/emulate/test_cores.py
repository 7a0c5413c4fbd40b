"""Blocks on several cores: results, findings and counters are those of one core, whatever the kernel does."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate import launch as launching
from ptxlab.emulate.host import running, worker
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.isa.undefined import UNDEFINED
from ptxlab.launch.contexts import context_of
from ptxlab.pytest_plugin.case import Case as PtxCase
from ptxlab.report import render
from tests.emulate.kernels import CASES, Case, load
from tests.emulate.ordering import HEAD


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run single threads, however long a kernel has run: lanes together count that, and try once more."""
    monkeypatch.setattr(launching, "MANY_INSTRUCTIONS", 1 << 60)


# In a body, `%rd1` is the address of a word of the thread's own; each kernel has 40 blocks of 64 threads.
PLACE = """
    mad.lo.u32 %r1, %b, 64, %t;
    mad.wide.u32 %rd1, %r1, 4, %out;
    setp.eq.u32 %p1, %t, 0;
    setp.eq.u32 %p2, %b, 7;
    setp.ge.u32 %p3, %b, 5;
"""
OWN = "ld.global.u32 %r2, [%rd1];\n add.u32 %r2, %r2, %r1;\n st.global.u32 [%rd1], %r2;\n"
SHARED_RACE = "st.shared.u32 [tile], %t;\n"

# Blocks have nothing to do with each other: several cores are as good as one.
APART = {
    "own words": OWN,
    "own bytes of one word": """
        add.u64 %rd2, %out, 12288;
        cvt.u64.u32 %rd3, %b;
        add.u64 %rd2, %rd2, %rd3;
        @%p1 st.global.u8 [%rd2], %b;""",
    "all read what no thread writes": f"ld.global.u32 %r3, [%out+16000];\n{OWN}",
    "block-wide exchange": f"""
        st.shared.u32 [%own], %r1;
        bar.sync 0;
        ld.shared.u32 %r3, [%far];
        {OWN}""",
    "who comes first depends on the seed": """
        @%p1 st.shared.u32 [tile], 0;
        bar.sync 0;
        atom.shared.add.u32 %r3, [tile], 1;
        st.global.u32 [%rd1], %r3;""",
    "a part of local memory that is not written": """
        .local .align 4 .b8 own[4];
        st.local.u8 [own], %b;
        ld.local.u32 %r3, [own];
        st.global.u32 [%rd1], %r3;
        st.local.u32 [own], %r1;""",
    "long loops": f"""
        mov.u32 %r3, 300000;
        again:
        sub.u32 %r3, %r3, 1;
        setp.ne.u32 %p4, %r3, 0;
        @%p4 bra again;
        {OWN}""",
}

# Something is wrong with blocks by themselves: several cores report it as one does.
WRONG = {
    "a race in every block": f"{OWN}{SHARED_RACE}",
    "a race in one block": f"{OWN}@%p2 {SHARED_RACE}",
    "other races in later blocks": f"""
        {OWN}
        @%p3 bra later;
        {SHARED_RACE}
        bra done;
        later:
        @%p2 st.shared.u32 [tile+4], %t;
        @!%p2 st.shared.u32 [tile+8], %t;
        done:""",
}

# Blocks have to do with each other, or it takes one core to say what is wrong: that must report it.
TOGETHER = {
    "all write one word": "st.global.u32 [%out], %b;",
    "some write a word that others read": f"{OWN}ld.global.u32 %r3, [%out+10236];",
    "all write the same": "@%p1 st.global.u32 [%out+16000], 1;",
    "one writes a byte of a word of another": f"{OWN}@%p2 st.global.u8 [%out+10001], %t;",
    "the word after its own": "st.global.v2.u32 [%flag], {%b, %t};\n st.global.u32 [%rd1+4], %t;",
    "a variable": "@%p2 st.global.u32 [word], 1;\n ld.global.u32 %r3, [word];",
    "a read of what was not written": f"{OWN}@%p2 ld.shared.u32 %r3, [tile+8];\n@%p2 st.global.u32 [%rd1], %r3;",
    "bad addresses from block 5 on": f"{OWN}@%p3 ld.global.u32 %r3, [%out+-4];",
    "a race and a fault": f"{SHARED_RACE}{OWN}@%p3 trap;",
    "a hang": f"{OWN}@%p2 bar.sync 1, 96;",
    "waiting for another block": """
        setp.eq.and.u32 %p4, %b, 39, %p1;
        @%p4 st.global.u32 [%flag], 1;
        setp.ne.or.u32 %p4, %b, 0, !%p1;
        @%p4 bra done;
        again:
        ld.global.u32 %r3, [%flag];
        setp.eq.u32 %p4, %r3, 0;
        @%p4 bra again;
        done:""",
}

# Here the order of blocks is part of what happens.
ONE_BY_ONE = {
    "atomic operations": "atom.global.add.u32 %r3, [%flag], 1;\n st.global.u32 [%rd1], %r3;",
    "a clock": "mov.u32 %r3, %clock;\n st.global.u32 [%rd1], %r3;",
}


def outcome(body: str, workers: int, **how: Any) -> tuple[Any, ...]:
    """All that a launch leaves: what is found and counted, and what memory holds."""
    module = ptxlab.parse(f"{HEAD}{PLACE}{body}\n    ret;\n}}\n", name="k.ptx")
    out, flag = np.arange(4096, dtype=np.uint32), np.zeros(64, np.uint32)
    how = {"device": "cpu", "on_error": "collect", "timeout": 60} | how
    result = module["k"].launch(40, 64, [out, flag], workers=workers, **how)
    variables = [bytes(memory) for memory in context_of(module).memory.variables.values()]
    return render(result.diagnostics), result.counters, out.tobytes(), flag.tobytes(), variables


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The cores of each launch as it begins."""
    found: list[int] = []
    run = RunningLaunch.run

    def note(launch: RunningLaunch, *given: Any) -> str | None:
        found.append(len(launch.workers))
        return run(launch, *given)

    monkeypatch.setattr(RunningLaunch, "run", note)
    return found


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("name", [*APART, *WRONG, *TOGETHER, *ONE_BY_ONE])
@pytest.mark.optimized  # some run for long
def test_as_many_cores_as_you_like(name: str, seed: int, cores: list[int]) -> None:
    body = (APART | WRONG | TOGETHER | ONE_BY_ONE)[name]
    expected = outcome(body, 1, seed=seed)
    assert bool(expected[0]) == (name in WRONG | TOGETHER and name != "all write the same")
    for workers in (2, 4):
        cores.clear()
        assert outcome(body, workers, seed=seed) == expected
        assert cores == ([workers] if name in APART | WRONG else [workers, 1] if name in TOGETHER else [1])


def test_findings_that_are_alike() -> None:
    """Of the races with one copy the first is noted; which core meets it first is chance."""
    body = f"""
        {OWN}
        @%p1 cp.async.ca.shared.global [tile], [%rd1], 4;
        @%p2 st.shared.u32 [tile], 0;
        @!%p2 st.shared.u32 [tile], 1;
        cp.async.wait_all;"""
    expected = outcome(body, 1)
    assert "error[data-race]" in expected[0]
    for workers in (2, 4):
        assert outcome(body, workers) == expected


@dataclass(frozen=True)
class Repeated(PtxCase):
    """A case that several blocks, or clusters, run."""

    @property
    def how(self) -> dict[str, str]:
        across, *rest = super().how["grid"].split(",")
        return super().how | {"grid": ",".join([str(6 * int(across)), *rest])}


ASYNCHRONOUS = [path for name in ("copies", "mbarriers", "order", "tensor", "wgmma") for path in
                sorted((Path(__file__).parents[1] / "cases" / name).glob("*.ptx"))]  # fmt: skip


@pytest.mark.bulk(one_in=12)
@pytest.mark.parametrize("path", ASYNCHRONOUS, ids=lambda path: path.stem)
def test_cases(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies, mbarriers, clusters and MMAs, with what is wrong with them."""
    case = Repeated(path)
    for seed in (0, 3):
        found = []
        for cores in (1, 2, 4):
            monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
            seen = case.launch(seed)
            found.append((seen.report, [array.tobytes() for array in seen.arrays]))
        assert found[1:] == [found[0]] * 2


@pytest.mark.parametrize("name", ["own words", "a race in one block", "bad addresses from block 5 on"])
def test_blocks_of_choice(name: str) -> None:
    blocks = [(number, 0, 0) for number in (9, 7, 30, 2, 7)]
    body = (APART | WRONG | TOGETHER)[name]
    assert outcome(body, 3, blocks=blocks) == outcome(body, 1, blocks=blocks)


def test_blocks_that_all_wait(cores: list[int]) -> None:
    body = f"{OWN}again:\n ld.global.u32 %r3, [%flag];\n setp.eq.u32 %p4, %r3, 0;\n @%p4 bra again;"
    blocks = [(number, 0, 0) for number in range(8)]
    expected = outcome(body, 1, blocks=blocks)
    assert "error[hang]" in expected[0]
    assert outcome(body, 4, blocks=blocks) == expected
    assert cores == [1, 4, 1]


def test_every_core_is_used_by_default(monkeypatch: pytest.MonkeyPatch, cores: list[int]) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    outcome(OWN, None)  # type: ignore[arg-type]
    outcome(OWN, None, profile=True)  # type: ignore[arg-type]
    outcome(OWN, None, blocks=[(0, 0, 0), (1, 0, 0)])  # type: ignore[arg-type]
    assert cores == [3, 1, 2]


def test_no_memory_to_keep_what_is_overwritten(monkeypatch: pytest.MonkeyPatch, cores: list[int]) -> None:
    expected = outcome(OWN, 1)
    monkeypatch.setattr(running, "space_to_keep", lambda regions: None)
    assert outcome(OWN, 4) == expected
    assert cores == [1, 1]


def test_memory_to_remember_all_accesses_on_one_core_only(monkeypatch: pytest.MonkeyPatch, cores: list[int]) -> None:
    expected = outcome(OWN, 1)
    monkeypatch.setattr(worker, "MOST_HISTORY", 120_000)
    assert outcome(OWN, 4) == expected
    assert cores == [1, 4, 1]


def test_local_memory_is_new_in_each_block() -> None:
    """Functions have theirs where those that were called before had it, in blocks before this one too."""
    text = """.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 found) exchange(.param .b32 given)
{
    .reg .b32 %r<3>;
    .local .align 4 .b8 own[4];
    ld.local.u32 %r1, [own];
    ld.param.u32 %r2, [given];
    st.local.u32 [own], %r2;
    st.param.b32 [found], %r1;
    ret;
}
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    .param .b32 given;
    .param .b32 found;
    mov.u32 %r1, %ctaid.x;
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    add.u32 %r1, %r1, 1;
    st.param.b32 [given], %r1;
    call (found), exchange, (given);
    ld.param.b32 %r2, [found];
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
    out = np.ones(20, np.uint32)
    ptxlab.parse(text)["k"].launch(20, 1, [out], device="cpu", workers=1)
    assert (out == UNDEFINED).all()


def test_a_time_limit_holds_on_several_cores() -> None:
    found = outcome("again:\n bra again;", 4, timeout=0.3)[0]
    assert "error[timeout]: the kernel was stopped after 0.3 seconds" in found
    assert "bra again;" in found


# One build of each case that launches several blocks.
WIDE = [
    case
    for case in {case.make: case for case in reversed(CASES)}.values()
    if any(np.prod(launch.grid) > 1 for launch in case.make(np.random.default_rng(0)).launches)
]


@pytest.mark.bulk(one_in=2)
# One in three of them, in each run; all of them with --bulk.
@pytest.mark.parametrize("case", [pytest.param(one, id=one.name, marks=[pytest.mark.bulk] if n % 3 else [])
                                  for n, one in enumerate(WIDE)])  # fmt: skip
def test_kernels(case: Case) -> None:
    def everything(workers: int) -> list[Any]:
        module, run = load(case.path), case.make(np.random.default_rng(0))
        context_of(module).start_anew()
        left: list[Any] = []
        for launch in run.launches:
            how: dict[str, Any] = {"shared": launch.shared, "cluster": launch.cluster, "device": "cpu"}
            how |= {"on_error": "collect", "workers": workers}
            result = module[launch.entry].launch(launch.grid, launch.block, launch.args, **how)
            left += [result.output, render(result.diagnostics), result.counters]
            left += [value.tobytes() for value in launch.args if isinstance(value, np.ndarray)]
        return left

    expected = everything(1)
    assert everything(2) == expected
    assert everything(4) == expected


def test_a_cluster_that_another_core_waits_for_has_one_schedule() -> None:
    """How fast the others are decides whether a core leaves a cluster and continues it later."""
    kernel = ptxlab.load(Path(__file__).parents[1] / "cases/addresses/flipped_rank.ptx")["k"]
    seen = set()
    for cores in [1] + [2] * 24:
        out = np.zeros(4, np.uint32)
        result = kernel.launch(4, 32, [out], device="cpu", seed=2, workers=cores)
        seen.add(str(result.coverage.schedules))
    assert len(seen) == 1

"""The first launch on a machine, where there is no runtime yet: it does not wait for all of it to be optimized."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.abi import entries
from ptxlab.emulate.runtime.table import ENTRIES, RUNTIME
from ptxlab.emulate.translate import building, compile, effort, runtime_building
from ptxlab.native import cache
from ptxlab.native.functions import signature
from ptxlab.native.translate import reachable
from ptxlab.pytest_plugin.case import Case, differences

CASES = Path(__file__).parents[1] / "cases"
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %r1;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An empty cache; the processes that would make the runtime are noted. The runtime is made before."""
    found: list[str] = []
    compile.runtime_code()
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compile, "start_detached", lambda module, records, pass_fds: found.append(records))
    monkeypatch.setattr(effort, "FEW_THREADS", 4096)
    for name, state in {"_linked": {}, "_loaded": {}, "_hasty": {}, "_awaited": set(), "_makers": []}.items():
        monkeypatch.setattr(compile, name, state)
    return found


def launch(threads: int, **how: object) -> None:
    out = np.zeros(threads, np.uint32)
    ptxlab.parse(TEXT)["k"].launch(-(-threads // 128), min(threads, 128), [out], device="cpu", **how)
    assert (out == np.arange(threads) % 128).all()


def test_it_does_not_wait_and_later_ones_are_optimized(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile.runtime_code()
    launch(64)
    launch(128)
    assert started == ["0"]
    assert compile._awaited == {False}
    assert len(compile._hasty) == 1
    cache.cached(compile._runtime_key(False), lambda: building.packed(code))  # as the other process does
    launch(64)
    assert (started, compile._awaited, compile._hasty) == (["0"], set(), {})
    assert list(compile._linked) == [False]


def test_a_recorded_launch_has_a_runtime_that_records(started: list[str]) -> None:
    out = np.zeros(32, np.uint32)
    result = ptxlab.parse(TEXT)["k"].launch(1, 32, [out], device="cpu", record=ptxlab.Record())
    assert result.trace is not None
    assert result.trace.registers(5)["%r1"] == 5
    assert (started, compile._awaited) == (["1"], {True})


@pytest.mark.parametrize(
    "how", [{"threads": 4096 + 128}, {"threads": 64, "timeout": 1.0}], ids=["many threads", "little time"]
)
def test_what_takes_long_or_has_no_time_waits(
    how: dict[str, int], started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = compile.runtime_code()
    asked = []
    monkeypatch.setattr(compile, "runtime_code", lambda records=False: asked.append(records) or code)
    out = np.zeros(128, np.uint32)
    threads = how.pop("threads")
    ptxlab.parse(TEXT)["k"].launch(-(-threads // 128), min(threads, 128), [out], device="cpu", **how, detectors=False)
    assert started == []
    assert False in asked


def test_without_a_cache_or_a_process_it_waits(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile.runtime_code()
    monkeypatch.setattr(compile, "runtime_code", lambda records=False: code)

    def refuse(module: str, records: str, pass_fds: tuple[int, ...]) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(compile, "start_detached", refuse)
    launch(64)
    assert compile._awaited == set()
    monkeypatch.setattr(compile, "_linked", {})
    monkeypatch.setenv("PTXLAB_CACHE", "")
    launch(64)
    assert compile._awaited == set()


def test_the_host_calls_functions_that_there_are() -> None:
    symbols = {value for name, value in vars(entries).items() if name.isupper()}
    assert symbols == {signature(function).symbol for function in ENTRIES}


def test_a_new_kernel_imports_little_of_the_runtime(tmp_path: Path) -> None:
    """What it calls is declared by what is kept; `benchmarks/start.py` measures the time."""
    compile.runtime_code()
    launch = "--block", "64", "--arg", "u32[64]"
    runtime = None
    for number in range(2):
        (tmp_path / "k.ptx").write_text(f"{TEXT}// {time.time()} {number}")
        code = "import sys; from ptxlab.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
        command = [sys.executable, "-c", code, "run", str(tmp_path / "k.ptx"), *launch]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "no errors or warnings" in shown.stdout, shown.stderr
        runtime = {name for name in shown.stderr.split() if name.startswith("ptxlab.emulate.runtime.")}
    assert runtime is not None
    assert len(runtime) <= 12, sorted(runtime)


def test_nothing_asynchronous_is_started_by_what_the_host_calls() -> None:
    """A kernel that starts nothing asynchronous does without what lets it continue."""
    completing = {function for functions in runtime_building.COMPLETING.values() for function in functions}
    reached = set(reachable([*ENTRIES, RUNTIME["thread_exit"]]))
    assert set(runtime_building.COMPLETING).isdisjoint(reached)
    assert completing <= reached
    plain = reachable([*set(ENTRIES) - runtime_building.PATIENT, RUNTIME["thread_exit"]], completing)
    assert not any("multiply" in function.__name__ for function in plain)


@pytest.mark.bulk(one_in=100)
@pytest.mark.parametrize(
    "path",
    sorted(CASES.glob("*/*.ptx"), key=lambda path: (path.parent.name not in ("tensor", "wgmma"), path)),
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_cases_find_the_same(path: Path, started: list[str]) -> None:
    case = Case(path)
    if not case.how:
        pytest.skip("it is not run")
    assert differences(case, [case.launch(seed) for seed in range(case.seeds)]) == []


@pytest.mark.bulk
@pytest.mark.skipif(os.name == "nt", reason="files in use")
def test_the_other_process_makes_the_runtime(tmp_path: Path) -> None:
    program = f"import numpy as np, ptxlab\nptxlab.parse({TEXT!r})['k'].launch(1, 32, [np.zeros(32, np.uint32)])"
    environment = os.environ | {"PTXLAB_CACHE": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=tmp_path)
    made, end = cache._path(tmp_path, compile._runtime_key(False)), time.monotonic() + 300
    while not made.exists() and time.monotonic() < end:
        time.sleep(0.5)
    assert made.exists()

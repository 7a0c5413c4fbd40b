"""Whole programs with several streams or GPUs: what is not ordered is found on its lines, right twins are silent."""

import re
from pathlib import Path
from typing import Any

import pytest

from ptxlab.emulate import apart
from ptxlab.emulate.apart import run_apart
from ptxlab.programs import queue
from ptxlab.programs.building import build
from ptxlab.programs.program import ProgramOptions, run_program
from ptxlab.trace import Traces
from tests.programs.tools import needs_compilers

pytestmark = needs_compilers

SOURCE = Path(__file__).parent / "several.cu"
TEXT = SOURCE.read_text()
CASES = re.findall(r"RUN\((\w+)\)", TEXT)[1:]
OUTPUT = {
    "two_kernels_right": "2\n",
    "copy_right": "5\n",
    "default_stream": "4\n",
    "two_gpus": "2 1 1 1 31\n",
    "no_peer_access": "700\n",
    "other_gpu_right": "3\n",
    "exchange_right": "2 1 2\n",
    "graph_right": "6\n",
    "captured_right": "4\n",
    "dependent_right": "6\n",
    "context_right": "2 101 1 0 1 3\n",
    "map_right": "3\n",
    "multicast_right": "3\n",
    "handle_right": "8\n",
    "event_right": "9\n",
    "event_of_another": "400 0\n",
    "graph_memory": "0 1 ",
    "graph_memory_right": "0 0 4 4\n",
    "read_at_once_right": "7\n",
    "ask": "702 30\n",
    "ask_right": "0 31\n",
    "ask_a_thread": "30\n",
    "ask_a_thread_right": "31\n",
    "ask_a_kernel_right": "31\n",
    "rows_right": "9 31\n9 31\n",
    "two_threads_right": "2\n",
    "taken_in_time": "7\n",
    "filled_in_time": "7\n",
    "large": "1\n",
    "large_right": "1\n",
    "large_read_right": "6\n",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "several"
    assert not build(SOURCE, made, "sm_90", [])
    return made


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("case", CASES)
def test_several(program: Path, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    gpus = 1 if case.startswith(("large", "read", "ask")) else 2
    result = run_program([str(program), case], ProgramOptions(folders=[SOURCE.parent], gpus=gpus))
    found = [one for one in result.findings if one.level != "note"]
    lines = enumerate(TEXT.split("\n"), 1)
    expected = {(code[1], at) for at, line in lines for code in re.finditer(rf"// expect {case}: ([\w-]+)", line)}
    shown = [(one.code, label.span) for one in found for label in one.labels]
    labels = {(code, at.source.position(at.start)[0]) for code, at in shown if at.source.name.endswith(SOURCE.name)}
    assert labels == expected
    assert len(found) == bool(expected)
    for one in found:
        if one.code == "data-race":
            first, second = sorted(at for _, at in expected)[-2:]  # those of the host, which is below the kernels
            event = f"`cudaEventRecord` after line {first}, `cudaStreamWaitEvent` before line {second}"
            edge = f"let one node depend on the other: `cudaGraphAddDependencies` for line {first} and line {second}"
            wait = "`griddepcontrol.wait;` before this line, or before a barrier that precedes it"
            assert ("no path of the graph" in one.notes[0]) == (case == "graph")
            helps = {"graph": edge, "dependent": wait}
            assert [help.text for help in one.helps] == [helps.get(case, f"order them by an event: {event}")]
    printed = capfd.readouterr().out
    assert printed == OUTPUT.get(case, "")


def test_large_kernels_of_streams_run_apart_if_they_share_nothing(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[Any] = []
    monkeypatch.setattr(queue, "run_apart", lambda grids: results.append(run_apart(grids)) or results[-1])
    for case in ("large_right", "large_read_right", "large", "large_read"):
        monkeypatch.setattr(apart, "_sharing", set())
        run_program([str(program), case], ProgramOptions(folders=[SOURCE.parent]))
    assert [one is None for one in results] == [False, False, True, True]


def test_kernels_of_two_gpus_are_recorded_together(program: Path, tmp_path: Path) -> None:
    options = ProgramOptions(folders=[SOURCE.parent], gpus=2, folder=tmp_path)
    assert not run_program([str(program), "exchange_right"], options).findings
    traces = Traces.open(tmp_path / "000")
    assert [one.together.title for one in traces] == ["`exchange` on GPU 0", "`exchange` on GPU 1"]
    (flag,) = traces.flags
    assert (flag.name, [one.value for one in flag.writes]) == ("allocation 1+0", [1, 2])
    assert {wait.launch for wait in flag.waits} == {0, 1}

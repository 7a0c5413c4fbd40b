"""Whole programs that call NVSHMEM's host functions: a process for each PE, on one machine and on two."""

import re
from pathlib import Path

import pytest

from ptxlab.node.nvshmem.state import headers
from ptxlab.programs.building import build
from ptxlab.programs.program import ProgramOptions, run_program
from tests.programs.tools import needs_compilers

pytestmark = [
    needs_compilers,
    pytest.mark.slow,
    pytest.mark.skipif(headers() is None, reason="needs NVSHMEM's headers: pip install nvidia-nvshmem-cu13"),
]
SOURCE = Path(__file__).parent / "nvshmem.cu"
TEXT = SOURCE.read_text()
CASES = re.findall(r"RUN\((\w+)\)", TEXT)[1:]
OF_A_NETWORK = ("no_quiet", "put_get")


def printed(case: str, machines: int) -> list[str]:
    """What the four PEs print, in order."""
    near = [pe % (4 // machines) + 1 < 4 // machines for pe in range(4)]
    near = near if machines > 1 else [True] * 4
    of_pe = {
        "barrier_right": lambda pe: [f"barrier {pe}: {(pe - 1) % 4 + 10}"],
        "stream_right": lambda pe: [f"stream {pe}: 14"],
        "quiet_right": lambda pe: [f"quiet {pe}: 3"],
        "signal_right": lambda pe: [f"signal {pe}: 80"],
        "put_get_right": lambda pe: [f"put {pe}: 0"],
        "later_right": lambda pe: [f"later {pe}: {5 if pe else 1}"],
        "host_right": lambda pe: [
            f"g {pe}: {pe + 5}", f"put {pe}: {(pe + 1) % 4 * 3}", f"fcollect {pe}: 4", f"sum {pe}: 12",
            f"broadcast {pe}: 4", f"ptr {pe}: 1 {int(near[pe])}",
        ],
        "team_right": lambda pe: [f"team {pe}: {3 * (pe % 2)}", *([f"team {pe}: {pe // 2} of 2"] if pe % 2 else []),
                                  f"column {pe}: {pe if pe % 3 else 3}",
                                  f"row {pe}: {pe % 3} of {1 if pe == 3 else 3}, {pe // 3} of {1 if pe % 3 else 2}"],
    }  # fmt: skip
    return sorted(line for pe in range(4) for line in of_pe[case](pe))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "nvshmem"
    assert not build(SOURCE, made, None, [])
    return made


@pytest.mark.parametrize("machines", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_nvshmem(program: Path, case: str, machines: int, capfd: pytest.CaptureFixture[str]) -> None:
    if machines == 1 and case in OF_A_NETWORK:
        pytest.skip("right where PEs reach each other by stores")
    options = ProgramOptions(folders=[SOURCE.parent], gpus=4, machines=machines)
    result = run_program([str(program), case], options)
    found = [one for one in result.findings if one.level != "note"]
    lines = enumerate(TEXT.split("\n"), 1)
    expected = {(code[1], at) for at, line in lines for code in re.finditer(rf"expect {case}: ([\w-]+)", line)}
    shown = [(one.code, label.span) for one in found for label in one.labels]
    labels = {(code, at.source.position(at.start)[0]) for code, at in shown if at.source.name.endswith(SOURCE.name)}
    assert labels == expected
    assert len({one.code for one in found}) == bool(expected)  # of PEs that are near and of others, at most
    assert len(found) <= machines
    if case.endswith("_right"):
        assert sorted(capfd.readouterr().out.strip().split("\n")) == printed(case, machines)


def test_one_process_is_one_pe_of_a_program_that_is_run_alone(program: Path) -> None:
    result = run_program([str(program), "barrier_right"], ProgramOptions(folders=[SOURCE.parent]))
    assert (result.status, result.findings) == (0, [])

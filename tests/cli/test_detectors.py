"""Which detectors run, as `ptxlab run` and a launch are asked."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.launching import _DETECTOR
from ptxlab.cli.run import command
from ptxlab.device.detectors import DETECTORS

RACE = """.version 8.0
.target sm_80
.entry k() {
    .shared .b32 x;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    st.shared.u32 [x], %r1;
    ret;
}
"""


@pytest.mark.parametrize(("given", "found"), [
    ([], 1), (["--no-detectors"], 0), (["--detector", "data-race"], 1), (["--detector", "stale-phase"], 0),
])  # fmt: skip
def test_options(tmp_path: Path, given: list[str], found: int) -> None:
    (tmp_path / "race.ptx").write_text(RACE)
    shown = CliRunner().invoke(command, [str(tmp_path / "race.ptx"), "--block", "64", "--format", "concise", *given])
    assert shown.stdout.count("data-race") == shown.exit_code == found


def test_of_a_launch() -> None:
    kernel = ptxlab.parse(RACE)["k"]
    assert kernel.launch(1, 64, detectors=False).diagnostics == []
    with pytest.raises(ptxlab.KernelError, match="data-race"):
        kernel.launch(1, 64, detectors="data-race")


def test_every_detector_can_be_chosen() -> None:
    assert {*_DETECTOR.choices} == {*DETECTORS, "uninitialised-read"}

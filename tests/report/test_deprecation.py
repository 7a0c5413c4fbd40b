"""Names that 0.1 settled: the old ones work, and say what they are called."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.launching import _DETECTOR
from ptxlab.cli.run import command
from ptxlab.device.options import DETECTORS
from ptxlab.pytest_plugin.case import Case
from ptxlab.report.deprecation import renamed

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


@renamed(old="new")
def double(x: int, *, new: int = 1) -> int:
    """Twice."""
    return 2 * x * new


def test_an_old_keyword() -> None:
    with pytest.warns(DeprecationWarning, match=r"`old=` is called `new=`; 0\.3 has no `old=`") as caught:
        assert double(2, old=3) == 12  # type: ignore[call-arg]
    assert caught[0].filename == __file__
    with pytest.raises(TypeError, match="both are given"):
        double(2, old=3, new=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        double(2, older=3)  # type: ignore[call-arg]
    assert (double(2, new=3), double.__doc__, list(inspect.signature(double).parameters)) == (
        12,
        "Twice.",
        ["x", "new"],
    )


def test_checks_of_a_launch_are_its_detectors() -> None:
    kernel = ptxlab.parse(RACE)["k"]
    assert kernel.launch(1, 64, detectors=False).diagnostics == []
    with pytest.warns(DeprecationWarning, match="`checks=` is called `detectors=`"):
        assert kernel.launch(1, 64, checks=False).diagnostics == []  # type: ignore[call-arg]
    with pytest.raises(ptxlab.KernelError, match="data-race"):
        kernel.launch(1, 64, detectors="data-race")


@pytest.mark.parametrize(("old", "new", "found"), [
    (["--no-checks"], ["--no-detectors"], 0), (["--check", "data-race"], ["--detector", "data-race"], 1),
    (["--check", "stale-phase"], ["--detector", "stale-phase"], 0),
])  # fmt: skip
def test_options(tmp_path: Path, old: list[str], new: list[str], found: int) -> None:
    (tmp_path / "race.ptx").write_text(RACE)
    given = [str(tmp_path / "race.ptx"), "--block", "64", "--format", "concise"]
    before, now = (CliRunner().invoke(command, [*given, *words]) for words in (old, new))
    assert (before.exit_code, before.stdout) == (now.exit_code, now.stdout)
    assert now.stdout.count("data-race") == now.exit_code == found
    assert before.stderr.splitlines()[0] == f"warning: `{old[0]}` is called `{new[0]}`; 0.3 has no `{old[0]}`"
    assert "warning" not in now.stderr


def test_every_detector_can_be_chosen() -> None:
    assert {*_DETECTOR.choices} == {*DETECTORS, "uninitialised-read"}


@pytest.mark.parametrize("line", ["grid=1 block=64 checks=no", "--block 64 --no-checks"])
def test_lines_of_test_files(tmp_path: Path, line: str) -> None:
    (tmp_path / "race.ptx").write_text(f"// run: {line}\n{RACE}")
    with pytest.warns(DeprecationWarning, match="is called"):
        assert Case(tmp_path / "race.ptx").how["detectors"] == "no"


def test_scales_of_caches() -> None:
    from ptxlab.kernels import decode_attention

    q, cache = np.zeros((1, 1, 64), np.float16), np.zeros((1, 16, 1, 64), np.float16)
    lengths = np.zeros(1, np.int32)
    with pytest.warns(DeprecationWarning, match="`k_scale=` is called `scale_k=`"):
        decode_attention(q, cache, cache, lengths, k_scale=1.0)  # type: ignore[call-arg]

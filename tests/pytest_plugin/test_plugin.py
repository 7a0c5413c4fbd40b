"""The pytest plugin, by runs of pytest in a folder of their own."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ptxlab
import ptxlab.pytest_plugin.files
from ptxlab.cli.samples import SAXPY
from ptxlab.pytest_plugin import case

pytest_plugins = ["pytester"]

TEST = """
import numpy as np
import ptxlab

def test_saxpy(ptxlab_launch):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    ptxlab_launch(ptxlab.load("saxpy.ptx")["saxpy"], grid=1, block=128, args=[x, y, 3.0, 100])
    np.testing.assert_array_equal(y, 3 * x + 1)

def test_device(ptxlab_device):
    assert ptxlab_device in ("cpu", "cuda")
"""
RACE = """\
// run: grid=1 block=64 args=u32[64]=arange
// expect: silent
.version 8.0
.target sm_80
.address_size 64
.visible .entry reverse(.param .u64 data)
{
    .shared .align 4 .b8 tile[256];
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    ld.global.u32 %r2, [%rd2];
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], %r2;
    mad.lo.u32 %r4, %r1, -4, %r3;
    ld.shared.u32 %r5, [%r4+252];
    st.global.u32 [%rd2], %r5;
    ret;
}
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def loaded() -> None:
    """All modules that a launch needs: a run in this process forgets those that it loads, and NumPy refuses that."""
    args = [np.arange(64, dtype=np.uint32)]
    found = ptxlab.parse(RACE)["reverse"].launch(1, 64, args, device="cpu", on_error="collect")
    assert ptxlab.pytest_plugin.why_no_gpu() is not None
    assert isinstance(case.Case(ROOT), case.Case)
    assert found.diagnostics


@pytest.fixture
def folder(loaded: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of a user; where ptxlab is not installed anew, the plugin is loaded as its entry point would."""
    pytester.makeconftest("pytest_plugins = ['ptxlab.pytest_plugin']")
    pytester.syspathinsert(ROOT / "src")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:benchmark")  # which warns where xdist is, and warnings are errors here
    monkeypatch.setenv("COLUMNS", "200")
    return pytester


def run(folder: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest there; in a process of its own where a GPU is, since what a launch on it loads is loaded once."""
    start = folder.runpytest_inprocess if ptxlab.pytest_plugin.why_no_gpu() else folder.runpytest_subprocess
    return start("-p", "no:xdist", "-p", "no:cacheprovider", *options)


def test_a_test_runs_on_each_device_and_schedule(folder: pytest.Pytester) -> None:
    folder.makefile(".ptx", saxpy=SAXPY)
    folder.makepyfile(TEST)
    ran = run(folder, "-v", "-rs", "--ptxlab-device=both", "--ptxlab-seeds=2")
    ran.stdout.fnmatch_lines([
        "*::test_saxpy[[]cpu] PASSED*",
        "*::test_saxpy[[]cpu-seed1] PASSED*",
        "*::test_saxpy[[]cuda] *",
        "*::test_device[[]cpu] PASSED*",
        "*::test_device[[]cuda] *",
    ])  # fmt: skip
    assert ran.parseoutcomes() in ({"passed": 5}, {"passed": 3, "skipped": 2})


def test_settings_choose_the_device_and_the_seeds(folder: pytest.Pytester) -> None:
    folder.makepyfile("def test_it(ptxlab_device, ptxlab_seed): assert ptxlab_device == 'cpu'")
    folder.makeini("[pytest]\nptxlab_seeds = 3")
    assert run(folder).parseoutcomes() == {"passed": 3}
    folder.makeini("[pytest]\nptxlab_device = tpu")
    assert "ptxlab_device must be one of cpu, cuda, both" in run(folder).stderr.str()


def test_a_failing_launch_is_shown_as_its_diagnostic(folder: pytest.Pytester) -> None:
    folder.makefile(".ptx", reverse=RACE.split("\n", 2)[2])
    folder.makepyfile(
        """
        import numpy as np
        import ptxlab

        def test_reverse(ptxlab_launch):
            ptxlab_launch(ptxlab.load("reverse.ptx")["reverse"], grid=1, block=64, args=[np.arange(64, dtype="u4")])
        """
    )
    ran = run(folder)
    ran.stdout.fnmatch_lines([
        "test_a_failing_launch_is_shown_as_its_diagnostic.py:5: KernelError",
        ">*ptxlab_launch(ptxlab.load*",
        "error[[]data-race]: unsynchronized: one thread reads shared memory that another writes",
        "  --> reverse.ptx:17:5",
        "17 |     ld.shared.u32 %r5, [[]%r4+252];",
        "FAILED *::test_reverse[[]cpu] - error[[]data-race]: unsynchronized*",
    ])  # fmt: skip
    shown = ran.stdout.str()
    assert "src/ptxlab/" not in shown
    assert "\nE  " not in shown
    assert "src/ptxlab/" in run(folder, "--full-trace").stdout.str()


PROVED = r"""
from pathlib import Path
import re
import numpy as np
import pytest
import ptxlab

@pytest.mark.ptxlab(prove=True)
@pytest.mark.parametrize("block", [128, 32])
def test_saxpy(ptxlab_launch, block):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    kernel = ptxlab.load("saxpy.ptx")["saxpy"]
    ptxlab_launch(kernel, grid=4, block=block, args=[x, y, 3.0, 100])

@pytest.mark.ptxlab(prove=True)
def test_two_blocks(ptxlab_launch):
    text = Path("saxpy.ptx").read_text()
    text = re.sub(r"mov.u32 (\S+), %ctaid.x;", r"mov.u32 \1, %ctaid.x; min.u32 \1, \1, 1;", text)
    ptxlab_launch(ptxlab.parse(text)["saxpy"], grid=2, block=64, args=[np.ones(99, "f4"), np.ones(99, "f4"), 3.0, 99])
"""


def test_a_marker_asks_for_a_proof(folder: pytest.Pytester) -> None:
    """What two blocks do is right; the proof is for three of them, too."""
    pytest.importorskip("z3", reason="a proof needs `pip install 'ptxlab[prove]'`")
    folder.makefile(".ptx", saxpy=SAXPY)
    folder.makepyfile(PROVED)
    result = run(folder, "-W", "error::pytest.PytestUnknownMarkWarning", "test_a_marker_asks_for_a_proof.py")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines(["*data-race*"])


def test_ptx_files_are_tests(folder: pytest.Pytester) -> None:
    folder.makefile(".ptx", plain=SAXPY, reverse=RACE)
    folder.makefile(
        ".ptx", right=RACE.replace("%r2;\n    mad", "%r2;\n    bar.sync 0;\n    // or: bar.sync 1;\n    mad")
    )
    folder.makefile(".ptx", typo="// run: grid=1 blok=64\n.version 8.0\n")
    ran = run(folder, "-v", "--ptxlab-seeds=4")
    ran.stdout.fnmatch_lines([
        "reverse.ptx::reverse FAILED*",
        "right.ptx::right PASSED*",
        "right.ptx::right[[]or 1] PASSED*",
        "typo.ptx::typo FAILED*",
        "*reverse.ptx: not as expected",
        "  seeds 0, 1, 2, 3: found data-race*",
        "error[[]data-race]: unsynchronized*",
        "*typo.ptx: `run` has `blok`, and not one of grid=, block=, *",
    ])  # fmt: skip
    assert ran.parseoutcomes() == {"passed": 2, "failed": 2}


def test_run_as_on_the_command_line(tmp_path: Path) -> None:
    def how(line: str) -> tuple[dict[str, str], list[str]]:
        (tmp_path / "k.ptx").write_text(RACE.replace("grid=1 block=64 args=u32[64]=arange", line))
        found = case.Case(tmp_path / "k.ptx")
        return found.how, found.arguments

    expected = {"grid": "2,1", "block": "64", "detectors": "no", "seeds": "5"}
    args = ["u32[2]=1,2", "f32=0.5", "x:map:f16[8,8],box=8x8,swizzle=128B", "=x,at=8", "(1,2)", "same", "null", "i32"]
    options, words = " ".join(f"--arg '{one}'" for one in args), " ".join(f"{one}={expected[one]}" for one in expected)
    assert how(f"--grid 2,1 --block=64 {options} --no-detectors --seeds 5") == (expected, args)
    assert how(f"{words} args={','.join(args)}") == (expected, args)
    assert how("--block 64 --arg 2.0") == ({"grid": "1", "block": "64"}, ["2.0"])
    for line, message in {
        "--blok 64": "`run`: No such option",
        "--block 64 --profile": "`run` has `--profile`, which is not for tests",
        "--block 64 k.ptx": "`run` has `k.ptx`, which is not for tests",
        "--grid 2": "`run` needs `--block`",
    }.items():
        with pytest.raises(case.CaseError, match=message):
            how(line)
    how("--block 64 --arg u32[64]=arange")
    assert [one.code for one in case.Case(tmp_path / "k.ptx").launch().findings] == ["data-race"]


def test_the_file_of_the_docs(folder: pytest.Pytester) -> None:
    (text,) = re.findall(r"```ptx\n(.*?)```", (ROOT / "docs/pytest.md").read_text("utf-8"), re.DOTALL)
    folder.makefile(".ptx", reverse=text)
    assert run(folder).parseoutcomes() == {"passed": 2}


def test_expectations_are_written_anew(folder: pytest.Pytester) -> None:
    file = folder.makefile(".ptx", reverse=RACE)
    assert run(folder, "--ptxlab-bless").parseoutcomes() == {"passed": 1}
    assert file.read_text().splitlines()[:2] == [RACE.splitlines()[0], "// expect: data-race 19 with 17"]
    assert run(folder).parseoutcomes() == {"passed": 1}


def test_a_run_without_kernels_imports_next_to_nothing() -> None:
    code = "import sys, pytest; before = {*sys.modules}; import ptxlab.pytest_plugin; print(*{*sys.modules} - before)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name for name in shown.stdout.split() if name.startswith(("ptxlab", "numpy", "llvmlite", "click"))}
    assert loaded == {"ptxlab", "ptxlab.lazily", "ptxlab.pytest_plugin"}


@pytest.fixture
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """A folder of a user, in which pytest runs in a process of its own, with no other plugin: that takes a third."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "ptxlab.pytest_plugin")
    return pytester.runpytest_subprocess


def test_a_finding_of_several_seeds_is_shown_once(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    pytester.makefile(".ptx", race=RACE.partition("silent\n")[2])
    pytester.makepyfile("""
        import numpy as np
        import ptxlab

        def test_race(ptxlab_launch):
            ptxlab_launch(ptxlab.load("race.ptx")["reverse"], 1, 64, [np.arange(64, dtype=np.uint32)])
    """)
    result = alone("--ptxlab-seeds=3")
    text = result.stdout.str()
    assert text.count("\nerror[data-race]: unsynchronized") == 1
    assert (
        text.count("\nthe same finding as in test_a_finding_of_several_seeds_is_shown_once.py::test_race[cpu]\n") == 2
    )
    result.assert_outcomes(failed=3)


def test_equal_differences_of_a_file_are_on_one_line(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    pytester.makefile(".ptx", race=RACE)
    shown = alone().stdout.str()
    assert re.search(r"^  seeds 0, 1, 2: found data-race \d+ with \d+$", shown, re.MULTILINE)


def test_targets(folder: pytest.Pytester) -> None:
    folder.makepyfile("""
        def test_target(ptxlab_target, ptxlab_device):
            print("for", ptxlab_target)
    """)

    def targets(*options: str) -> list[str]:
        result = run(folder, "-s", *options)
        return re.findall(r"for (sm_\w+)", result.stdout.str())

    assert targets() == ["sm_80"]
    folder.makepyprojecttoml('[tool.ptxlab]\ntarget = "sm_90a"\n')
    assert targets() == ["sm_90a"]
    assert targets("--ptxlab-target=sm_90a,sm_100a") == ["sm_90a", "sm_100a"]
    result = run(folder, "--ptxlab-target=sm_9")
    assert "there is no target `sm_9`; did you mean `sm_90`?" in result.stdout.str() + result.stderr.str()

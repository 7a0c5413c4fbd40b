"""Tests of kernels by pytest: devices and schedules to run them on, PTX files that are tests, diagnostics as reports.

pytest loads this module by its entry point, in every run where ptxlab is installed: what is not needed to know the
options is imported when it is used. docs/pytest.md is for users.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from ptxlab.device.result import Result

    Launch = Callable[..., Result]

_SEED = re.compile(r"-seed\d+(?=[]-])")  # in the name of a test
_MARK = "ptxlab_mark"  # of a report: what its findings are compared by
DEVICES = {"cpu": ("cpu",), "cuda": ("cuda",), "both": ("cpu", "cuda")}


class Run(NamedTuple):
    """Where a test runs its kernels: the device, and the schedule of the emulator."""

    device: str
    seed: int

    def __str__(self) -> str:
        return f"{self.device}-seed{self.seed}" if self.seed else self.device


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ptxlab", "kernels by ptxlab")
    group.addoption(
        "--ptxlab-device",
        choices=[*DEVICES],
        help="where kernels run: `cpu` is the emulator (default: setting `ptxlab_device`, else cpu)",
    )
    group.addoption(
        "--ptxlab-seeds",
        type=_count,
        metavar="N",
        help="run each test of a kernel under N schedules of the emulator (default: setting `ptxlab_seeds`, else 1)",
    )
    group.addoption(
        "--ptxlab-target",
        metavar="TARGET,...",
        help="run each test that uses `ptxlab_target` for these targets, such as sm_90a,sm_100a (default: setting "
        "`ptxlab_target`, else that of the project, else sm_80)",
    )
    group.addoption(
        "--ptxlab-bless",
        action="store_true",
        help="write the `expect` and `check` lines of PTX files anew from what is found",
    )
    parser.addini("ptxlab_device", "where kernels run: cpu, cuda or both", default="cpu")
    parser.addini("ptxlab_target", "targets, with commas between them, that tests run for", default="")
    parser.addini("ptxlab_seeds", "schedules of the emulator that each test of a kernel runs under", default="1")


def pytest_configure(config: pytest.Config) -> None:
    if config.getini("ptxlab_device") not in DEVICES:
        raise pytest.UsageError(f"ptxlab_device must be one of {', '.join(DEVICES)}")
    try:
        _count(config.getini("ptxlab_seeds"))
    except ValueError:
        raise pytest.UsageError("ptxlab_seeds must be a positive number") from None
    config.addinivalue_line("markers", "ptxlab(prove=True, assume=(), bounds=True, timeout=120): prove the kernels "
                            "that `ptxlab_launch` launches, with the launch as the example")  # fmt: skip
    config.pluginmanager.register(Folding(config), "ptxlab-folding")


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def devices_of(config: pytest.Config) -> tuple[str, ...]:
    """The devices that were asked for."""
    return DEVICES[config.getoption("ptxlab_device") or config.getini("ptxlab_device")]


def seeds_of(config: pytest.Config) -> int:
    """How many schedules were asked for."""
    return int(config.getoption("ptxlab_seeds") or config.getini("ptxlab_seeds"))


def targets_of(config: pytest.Config, path: Path) -> list[str]:
    """The targets that were asked for, or that of the project of a test."""
    from ptxlab.isa.targets import TARGETS
    from ptxlab.project import Project, ProjectError
    from ptxlab.report.nearest import nearest
    from ptxlab.toolchain.compilation import DEFAULT_TARGET

    given = config.getoption("ptxlab_target") or config.getini("ptxlab_target")
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name not in TARGETS:
            close = nearest(name, TARGETS)
            raise pytest.UsageError(f"there is no target `{name}`" + (f"; did you mean `{close}`?" if close else ""))
    try:
        return names or [Project.of(path).target or DEFAULT_TARGET]
    except ProjectError as wrong:
        raise pytest.UsageError(str(wrong)) from None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each target, for each device, and on the emulator for each schedule, if the test depends on it."""
    names = metafunc.fixturenames
    if "ptxlab_target" in names:
        path = Path(str(metafunc.module.__file__))
        metafunc.parametrize("ptxlab_target", targets_of(metafunc.config, path), indirect=True)
    if "_ptxlab_run" not in names:
        return
    seeds = seeds_of(metafunc.config) if "ptxlab_seed" in names else 1
    runs = [
        Run(device, seed) for device in devices_of(metafunc.config) for seed in range(seeds if device == "cpu" else 1)
    ]
    metafunc.parametrize("_ptxlab_run", runs, ids=map(str, runs), indirect=True)


@pytest.fixture
def _ptxlab_run(request: pytest.FixtureRequest) -> Run:
    run: Run = request.param
    if run.device == "cuda" and (reason := why_no_gpu()):
        pytest.skip(reason)
    return run


@pytest.fixture
def ptxlab_target(request: pytest.FixtureRequest) -> str:
    """The target of this test, such as "sm_90a", for what is compiled: `ptxlab.cuda(path, ptxlab_target)`."""
    target: str = request.param
    return target


@pytest.fixture
def ptxlab_device(_ptxlab_run: Run) -> str:
    """Where kernels run in this test: "cpu", the emulator, or "cuda"."""
    return _ptxlab_run.device


@pytest.fixture
def ptxlab_seed(_ptxlab_run: Run) -> int:
    """The schedule of the emulator in this test, for `kernel.launch(seed=…)`."""
    return _ptxlab_run.seed


@pytest.fixture
def ptxlab_launch(request: pytest.FixtureRequest, ptxlab_device: str, ptxlab_seed: int) -> Launch:
    """`kernel.launch` on the device of this test: `ptxlab_launch(kernel, grid=1, block=64, args=[x])`."""
    marker = request.node.get_closest_marker("ptxlab")
    asked = dict(marker.kwargs) if marker is not None else {}
    is_proved = asked.pop("prove", False) and ptxlab_device == "cpu" and ptxlab_seed == 0

    def launch(kernel: Any, grid: Any, block: Any, args: Any = (), **options: Any) -> Result:
        if is_proved:
            _prove(kernel, args, grid=grid, block=block, options=options, **asked)
        scheduled = {"seed": ptxlab_seed} if ptxlab_device == "cpu" else {}
        result: Result = kernel.launch(grid, block, args, **{"device": ptxlab_device, **scheduled, **options})
        return result

    return launch


def _prove(kernel: Any, args: Any, *, options: dict[str, Any], **given: Any) -> None:
    """Fail unless a kernel is proved."""
    from ptxlab.prove import prove
    from ptxlab.report import KernelError

    if options.get("cluster"):
        pytest.fail("prove: clusters are not followed", pytrace=False)
    found = prove(kernel, args, shared=options.get("shared", 0), **given)
    if found.counterexample is not None:
        raise KernelError([found.counterexample.finding])
    if not found:
        pytest.fail(str(found), pytrace=False)


def why_no_gpu() -> str:
    """Why nothing can run on a GPU here; empty where something can."""
    from ptxlab.gpu import absence

    problem = absence()
    return f"{problem.message}: {problem.notes[0]}" if problem else ""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """PTX files that say how they are run."""
    if file_path.suffix != ".ptx":
        return None
    from ptxlab.pytest_plugin.files import PtxFile, is_case

    collector: pytest.Collector | None = PtxFile.from_parent(parent, path=file_path) if is_case(file_path) else None
    return collector


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A kernel that fails is reported by its diagnostics, below the lines of the test that led there."""
    report = yield
    errors = sys.modules.get("ptxlab.report.errors")
    problem = call.excinfo.value if call.excinfo else None
    if errors is not None and isinstance(problem, errors.DiagnosedError) and not item.config.getoption("fulltrace"):
        from ptxlab.pytest_plugin.failures import mark_of, show_diagnostics

        show_diagnostics(report, problem, item.config)
        report.__dict__[_MARK] = mark_of(problem)  # xdist takes it to the process that shows the report
    return report


class Folding:
    """Shows a finding that several schedules of one test report once; the others name the test that shows it."""

    def __init__(self, config: pytest.Config) -> None:
        self.is_worker = hasattr(config, "workerinput")  # of xdist: its reports are shown by another process
        self.shown: dict[tuple[str, str], str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        mark = getattr(report, _MARK, None)
        test = _SEED.sub("", report.nodeid)
        if mark is None or self.is_worker:
            return
        first = self.shown.setdefault((test, mark), report.nodeid)
        if first != report.nodeid:
            report.longrepr = f"the same finding as in {first}"

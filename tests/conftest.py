"""What holds for all tests."""

import gc
import hashlib
import os
import platform
import signal
import sys
from collections.abc import Generator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# How fast a busy machine thinks of examples is nothing that a test is about.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
# Every process would read the source of ptxlab, which takes seconds, for constants to try now and then.
providers._get_local_constants = lambda: providers._local_constants

# A shell starts what is to run in the background with Ctrl-C ignored, and so would be what tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


ROOT = Path(__file__).resolve().parents[1]


def _own_cache() -> Path:
    """A cache folder for tests alone; machine code that was made from other source is removed from it."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "src").rglob("*.py")):
        digest.update(f"{file} ".encode() + file.read_bytes())
    folder = ROOT / ".pytest_cache" / "ptxlab"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = folder / "sources.txt"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        for file in folder.iterdir():
            if not file.name.startswith("answers.sqlite"):  # of ptxas, which does not depend on our source
                file.unlink(missing_ok=True)
        stamp.write_text(digest.hexdigest())
    return folder


def _python_path() -> str:
    """This source first, then what was set before; absolute, because tests start processes in other folders."""
    before = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return os.pathsep.join(dict.fromkeys(map(str, [ROOT / "src", ROOT, *(Path(path).resolve() for path in before)])))


# For the processes that tests start, too.
os.environ["PTXLAB_CACHE"] = str(_own_cache())
os.environ["PYTHONPATH"] = _python_path()
# torch.compile would start as many processes as there are cores in each process of the tests, and leave pipes open.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
# JAX would take three quarters of the memory of a GPU for one of the processes of the tests.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


# Where ptxlab was not installed since it has the plugin, too; pytest in processes of tests knows it by its variable.
pytest_plugins = ["ptxlab.pytest_plugin", "tests.workers"]
if not any(one.module == pytest_plugins[0] for one in entry_points(group="pytest11")):
    os.environ["PYTEST_PLUGINS"] = pytest_plugins[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="a part of the tests that touches everything: see below")
    parser.addoption("--bulk", action="store_true", help="what is marked `bulk`, too")
    parser.addoption("--ask-all", action="store_true", help="ask ptxas what it has confirmed before, too")
    parser.addoption("--optimized", action="store_true", help="compile every kernel as for a user")
    parser.addoption("--checked", action="store_true", help="check every access of native code, here and in children")


def _select_fast() -> None:
    """Let LLVM select instructions as fast on aarch64 as on x86-64 where it does not optimize: a fifth of its time."""
    import llvmlite.binding as llvm

    llvm.set_option("tests", "-aarch64-enable-global-isel-at-O=-1")


def pytest_configure(config: pytest.Config) -> None:
    if platform.machine() == "aarch64":
        _select_fast()
    if config.option.checked:
        assert "ptxlab.native" not in sys.modules, "native code is made one way in a process"
        os.environ["PTXLAB_NATIVE_CHECKED"] = "1"
    if os.environ.get("BLESS"):
        config.option.ptxlab_bless = True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are collected, and stay: the garbage collector need not traverse them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Leave out parameters, of which pytest makes no items then: a third of all, in each process of the tests.

    These are what is for `bulk`, but with --bulk, and all but the first one for a GPU where there is none: it is
    skipped, and says so. What is asked for by the name of its parameter is not left out.
    """
    asked = {argument.partition("[")[0].rpartition("::")[2] for argument in metafunc.config.args if "[" in argument}
    calls = metafunc._calls
    if not calls or metafunc.function.__name__ in asked:
        return
    if metafunc.definition.get_closest_marker("gpu"):
        from ptxlab.gpu import absence

        kept = calls[:1] if absence() else calls
    else:
        kept = calls if metafunc.config.option.bulk else _of_each_run(metafunc)
    metafunc._calls = kept or calls[:1]  # where none is left, the test is left out below


def _of_each_run(metafunc: pytest.Metafunc) -> list[Any]:
    """The parameters that are not for `bulk`: of `bulk(one_in=n)` each n-th one, the first one first."""
    common, kept, count = [*metafunc.definition.iter_markers("bulk")], [], 0
    for call in metafunc._calls:
        marks = [*common, *(mark for mark in call.marks if mark.name == "bulk")]
        is_for_gpu = any(mark.name == "gpu" for mark in call.marks)
        one_in = [mark.kwargs.get("one_in") for mark in marks]
        if None in one_in:
            continue
        if is_for_gpu or count % max(one_in, default=1) == 0:
            kept.append(call)
        count += bool(one_in) and not is_for_gpu
    return kept


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is for `bulk` as a whole, but with --bulk; with --quick, see below."""
    left_out = [] if config.option.bulk else [item for item in items if any(map(_is_whole, item.iter_markers("bulk")))]
    if config.option.quick:
        left_out += _not_quick(items)
    from tests.workers import processes

    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", processes(config))) > 1:
        shared = pytest.mark.skip(reason="needs a GPU for itself, and several processes share it: `pytest -m alone`")
        for item in items:
            if item.get_closest_marker("alone"):
                item.add_marker(shared)
    config.hook.pytest_deselected(items=left_out)
    kept = {*map(id, items)} - {*map(id, left_out)}
    items[:] = [item for item in items if id(item) in kept]


def _is_whole(marker: pytest.Mark) -> bool:
    return "one_in" not in marker.kwargs


def _not_quick(items: list[pytest.Item]) -> list[pytest.Item]:
    """What is marked `slow`, and all but one parameter of each test that is not marked `core`."""
    left_out, seen = [], set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        is_slow, is_core = (item.get_closest_marker(name) is not None for name in ("slow", "core"))
        if is_slow or (function in seen and not is_core):
            left_out.append(item)
        else:
            seen.add(function)
    return left_out


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Most tests run a kernel once, for a moment: LLVM would take longer to optimize it than that saves.

    The runtime is optimized, and serves all of them.
    """
    from ptxlab.emulate.translate import effort

    effort.FEW_THREADS = 0
    effort.HIGHEST = 2 if item.config.option.optimized or item.get_closest_marker("optimized") else 0


_codes: set[str] = set()


def pytest_sessionstart() -> None:
    """Remember the code of every diagnostic that ptxlab makes in these tests."""
    from ptxlab.report import Diagnostic

    original = Diagnostic.__init__

    def remember(self: Diagnostic, *args: Any, **named: Any) -> None:
        original(self, *args, **named)
        frame = sys._getframe(1)
        while frame.f_back and frame.f_globals["__name__"].startswith("ptxlab.report."):
            frame = frame.f_back
        if frame.f_globals["__name__"].startswith("ptxlab."):  # not by a test of how diagnostics look
            _codes.add(self.code)

    Diagnostic.__init__ = remember  # type: ignore[method-assign]


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """After the last test: whatever code a diagnostic had, `ptxlab explain` has a page of it."""
    from ptxlab.explain import pages

    assert nextitem or _codes <= set(pages()), _codes - set(pages())

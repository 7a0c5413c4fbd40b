"""Children end when they should and leave nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from ptxlab.toolchain.process import Children, run, run_together

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")


def test_output_and_status(tmp_path: Path) -> None:
    outcome = run(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path)
    assert (outcome.text, outcome.status, outcome.signal_name) == ("out\nerr\n", 3, None)


@pytest.mark.parametrize("script", ["kill -SEGV $$", "sh -c 'kill -SEGV $$'; exit $?"])
def test_a_signal_is_named_also_through_a_wrapper(tmp_path: Path, script: str) -> None:
    assert run(["sh", "-c", script], tmp_path).signal_name == "SIGSEGV"


def test_a_time_limit_ends_grandchildren_too(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = run(["sh", "-c", "sleep 30; echo never"], tmp_path, timeout=0.2)
    assert outcome.timed_out
    assert outcome.signal_name is None
    assert time.monotonic() - started < 10


def test_an_ended_group_starts_no_more(tmp_path: Path) -> None:
    children = Children()
    children.end()
    with pytest.raises(KeyboardInterrupt):
        children.run(["true"], tmp_path, None)


def test_a_failure_ends_the_other_tasks(tmp_path: Path) -> None:
    def fail() -> str:
        raise ValueError("stop")

    started = time.monotonic()
    with pytest.raises(ValueError, match="stop"):
        run_together([fail, lambda: run(["sleep", "30"], tmp_path).text], workers=2)
    assert time.monotonic() - started < 10


def test_interrupt_ends_the_child(tmp_path: Path) -> None:
    program = textwrap.dedent(f"""
        from pathlib import Path
        from ptxlab.toolchain.process import run
        run(["sh", "-c", "echo $$ > pid; exec sleep 60"], Path({str(tmp_path)!r}))
    """)
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, env=_environment())
    pid_file = tmp_path / "pid"
    deadline = time.monotonic() + 20
    while not (pid_file.exists() and pid_file.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    child = int(pid_file.read_text())
    parent.send_signal(signal.SIGINT)
    assert parent.wait(20) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_an_interrupt_while_a_child_starts_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []
    popen = subprocess.Popen

    def interrupted(*command: Any, **how: Any) -> subprocess.Popen[str]:
        started.append(popen(*command, **how))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["sleep", "60"], tmp_path)
    assert started[0].returncode == -signal.SIGKILL


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

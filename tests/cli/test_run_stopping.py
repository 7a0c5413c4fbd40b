"""`ptxlab run` of kernels that take long: time limits, Ctrl-C, the progress bar."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.running import HEADER, run, write

SPIN = HEADER + ".entry spin()\n{\n    .reg .u32 %r; mov.u32 %r, 0;\nforever:\n    bra forever;\n}\n"


def test_an_endless_loop_ends_with_its_time(tmp_path: Path) -> None:
    result = run(write(tmp_path, SPIN), "--block", 1, "--timeout", 0.2)
    assert result.exit_code == 1
    assert "error[timeout]" in result.stdout


@pytest.mark.slow
def test_a_long_run_shows_a_bar_and_ctrl_c_stops_it_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ptxlab", "run", str(write(tmp_path, SPIN)), "--block", "1"]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    shown = b""
    until = time.perf_counter() + 60
    while b"0 of 1 blocks" not in shown and time.perf_counter() < until:
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    asked = time.perf_counter()
    output, _ = process.communicate(timeout=60)
    os.close(ours)
    assert b"0 of 1 blocks" in shown
    assert time.perf_counter() - asked < 5
    assert process.returncode == 130
    assert "kernel.ptx:8:5" in output
    assert "block (0,0,0)" in output


@pytest.mark.slow
def test_without_a_terminal_there_is_no_bar(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ptxlab", "run", str(write(tmp_path, SPIN)), "--block", "1", "--timeout", "1.5"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")

"""`ptxlab run` of kernels that take long: time limits, Ctrl-C, the progress bar."""

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import HEADER, run, write

from ptxlab import parse, variables
from ptxlab.cli import launching, trying

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


# Sends Ctrl-C at the n-th instruction of Python that starts a kernel and waits for it, and counts what became of it.
AT_EACH_INSTRUCTION = """
import collections, signal, sys, threading
from ptxlab import parse
from ptxlab.emulate.host import running

def launch(kernel, number):
    count = 0
    def count_instruction(frame, event, argument):
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        if event == "opcode" and count == number:
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        return count_instruction
    def enter(frame, event, argument):
        is_ours = frame.f_code is running.RunningLaunch._run_workers.__code__
        return count_instruction(frame, event, argument) if is_ours or count and frame.f_code in waiting else None
    sys.settrace(enter)
    try:
        kernel.launch(1, 1, [], device="cpu", timeout=20)
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        sys.settrace(None)

waiting = {getattr(owner, name).__code__ for owner in (threading.Thread, threading.Event, threading.Condition)
           for name in ("start", "wait", "clear", "__init__", "__enter__", "__exit__", "_release_save")
           if hasattr(getattr(owner, name, None), "__code__")}
kernel = parse(sys.stdin.read())["spin"]
print(dict(collections.Counter(launch(kernel, number) for number in range(1, 320, 6))))
"""


@pytest.mark.slow
def test_ctrl_c_stops_a_kernel_at_whatever_instruction_it_comes() -> None:
    """A thread that is not started yet would be waited for, and an event stay locked that it came in the middle of."""
    command = [sys.executable, "-c", AT_EACH_INSTRUCTION]
    ended = subprocess.run(command, input=SPIN, capture_output=True, text=True, timeout=60)
    assert ended.stdout == "{'interrupted': 54}\n", ended.stderr


# The first block ends, the others never do.
PARTLY = (
    HEADER
    + """.entry partly(.param .u64 out)
{
    .reg .b32 %r1;
    .reg .b64 %rd1;
    .reg .pred %p1;
    mov.u32 %r1, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra write;
forever:
    bra forever;
write:
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1], 7;
    ret;
}
"""
)


def test_ctrl_c_keeps_what_was_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    monkeypatch.setattr(trying, "progress_bar", lambda before="": nullcontext(interrupt))
    given = ("--grid", 3, "--block", 1, "--arg", "u32[2]", "--save", tmp_path / "kept")
    result = run(write(tmp_path, PARTLY), *given)
    assert result.exit_code == 130
    assert "out: u32[2], 1 of 2 elements changed" in result.stdout
    assert "`partly` was stopped on 3 blocks of 1 thread" in result.stdout
    assert "error[interrupted]: the kernel was stopped by Ctrl-C" in result.stdout
    assert "1 of 3 blocks had ended" in result.stdout
    assert np.load(tmp_path / "kept" / "out.npy").tolist() == [7, 0]


def test_one_bar_shows_launches_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes when a launch ends, so that a program can print, and a short launch has none."""
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", shown)
    now = [0.0]
    monkeypatch.setattr(trying.time, "perf_counter", lambda: now[0])
    with trying.progress_bar() as report:
        assert report is not None
        for seconds, done, total in ((0, 0, 4), (0.5, 4, 4), (5, 0, 9), (5.5, 1, 9), (7, 2, 9), (8, 9, 9), (9, 0, 3)):
            now[0] = seconds
            report(done, total)
    lines = re.findall(r"(\d) of (\d) blocks", shown.getvalue())
    assert set(lines) == {("2", "9")}


@pytest.mark.slow
def test_without_a_terminal_there_is_no_bar(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ptxlab", "run", str(write(tmp_path, SPIN)), "--block", "1", "--timeout", "1.5"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_reading_and_checking_have_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten megabytes would take a minute."""
    monkeypatch.setattr(launching, "NOT_COUNTED", 0.2)
    lines = "    add.s32 %r1, %r1, 1;\n" * 400_000
    path = tmp_path / "long.ptx"
    path.write_text(HEADER + f".visible .entry k()\n{{\n    .reg .b32 %r<2>;\n{lines}    ret;\n}}\n")
    started = time.perf_counter()
    shown = run(path, "--block", 1, "--timeout", 0.3)
    assert time.perf_counter() - started < 10
    assert shown.exit_code == 1
    assert "was not read and checked within 0.3 seconds" in shown.output


@pytest.mark.parametrize("size", ["12000000000", "65536][65536][65536][65536"])
def test_variables_that_are_too_large_are_refused_before_memory_is_taken(tmp_path: Path, size: str) -> None:
    path = tmp_path / "large.ptx"
    path.write_text(HEADER + f".global .align 4 .b8 unused[{size}];\n.visible .entry k()\n{{\n    ret;\n}}\n")
    tracemalloc.start()
    shown = run(path, "--block", 1)
    assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()
    assert (shown.exit_code, "error[out-of-memory]: `k`: its variables take" in shown.output) == (1, True)


def test_a_variable_that_is_large_is_not_copied(tmp_path: Path) -> None:
    """It may be as large as the limit allows; what a kernel did to it is not shown."""
    text = HEADER + ".global .b8 v[3000000000];\n.visible .entry k()\n{\n    ret;\n}\n"
    module = parse(text)
    tracemalloc.start()
    module["k"].launch(1, 1, [], device="cpu")
    assert variables.written(module) == {}
    assert tracemalloc.get_traced_memory()[1] < 1 << 28
    tracemalloc.stop()

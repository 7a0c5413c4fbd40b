"""The command line as a process: fast to start, quiet when the reader leaves, one line when interrupted."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptxlab.cli import group, main

PTXLAB = [sys.executable, "-m", "ptxlab"]
RIGHT = ".version 8.0\n.target sm_80\n.address_size 64\n\n.visible .entry nothing()\n{\n    ret;\n}\n"


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PTXLAB, *arguments], capture_output=True, text=True, timeout=60, **options)  # type: ignore


def test_help_lists_the_subcommands_and_an_example() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert "ptxlab check kernel.ptx" in shown.stdout
    for name in ("check", "run", "format", "assemble", "sass", "explain", "tour"):
        assert f"\n  {name} " in shown.stdout


@pytest.mark.parametrize("name", ["check", "run", "format", "assemble", "sass", "explain", "tour"])
def test_each_subcommand_has_help_with_an_example(name: str) -> None:
    shown = run(name, "--help")
    assert shown.returncode == 0
    assert f"\n    ptxlab {name}" in shown.stdout


def test_an_unknown_subcommand_is_a_usage_error() -> None:
    shown = run("chekc")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.endswith("Error: there is no command `chekc`; did you mean `check`?\n")


def test_version() -> None:
    import ptxlab

    assert run("--version").stdout == f"ptxlab {ptxlab.__version__}\n"


def test_importing_loads_nothing_heavy() -> None:
    code = "import ptxlab, sys; print(sorted({'numpy', 'rich', 'click', 'ptxlab.isa', 'json'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert shown.stdout == "[]\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from ptxlab.cli.group import ptxlab\n"
        "assert CliRunner().invoke(ptxlab, ['--help']).exit_code == 0\n"
        "print(sorted({'numpy', 'rich', 'ptxlab.isa', 'ptxlab.syntax'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (shown.stdout, shown.stderr) == ("[]\n", "")


SMALL = Path(__file__).parents[2] / "src/ptxlab/kernels/sgemm/naive.ptx"


@pytest.mark.parametrize(
    ("most", "arguments"),
    [
        (215, ["check", "naive.ptx"]),
        (120, ["format", "--check", "naive.ptx"]),
        (65, ["explain", "shl"]),
        (110, ["explain", "divergent-barrier"]),
        (40, ["explain", "hang"]),
    ],
)
def test_few_modules_are_imported_by_what_must_start_at_once(most: int, arguments: list[str], tmp_path: Path) -> None:
    """Outside a project: so many of ptxlab at most, and nothing slow; `benchmarks/start.py` measures the time."""
    code = (
        "import sys; from ptxlab.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    (tmp_path / "naive.ptx").write_bytes(SMALL.read_bytes())
    command = [sys.executable, "-c", code, *arguments]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    imported = set(shown.stderr.split())
    assert (
        imported & {"numpy", "llvmlite", "rich", "json", "ctypes", "tomllib", "subprocess", "ptxlab.ir.dwarf"} == set()
    )
    own = [name for name in imported if name.startswith("ptxlab")]
    assert len(own) <= most, sorted(own)


def test_what_runs_before_an_interrupt_is_answered_is_next_to_nothing() -> None:
    code = "import sys; known = set(sys.modules); import ptxlab.cli; print(sorted(set(sys.modules) - known))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert set(eval(shown.stdout)) <= {"__future__", "gc", "ptxlab", "ptxlab.cli", "ptxlab.lazily", "types"}


@pytest.mark.skipif(os.name == "nt", reason="signals as on POSIX systems")
@pytest.mark.parametrize("command", ["check", "run"])
def test_an_interrupt_is_one_line_and_status_130(command: str) -> None:
    pipe = subprocess.PIPE
    process = subprocess.Popen([*PTXLAB, command, "-"], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    printed, shown = process.communicate(timeout=60)
    assert (process.returncode, printed, shown.strip()) == (130, "", "ptxlab: interrupted")


@pytest.mark.skipif(os.name == "nt", reason="pipes as on POSIX systems")
def test_a_reader_that_left_gets_no_message(tmp_path: Path) -> None:
    file = tmp_path / "right.ptx"
    file.write_text(RIGHT)
    process = subprocess.Popen([*PTXLAB, "check", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 128 + signal.SIGPIPE


@pytest.mark.skipif(os.name == "nt", reason="streams as on POSIX systems")
def test_closed_streams_are_empty_and_silent(tmp_path: Path) -> None:
    (tmp_path / "right.ptx").write_text(RIGHT)
    command = f"'{sys.executable}' -m ptxlab"
    shell = {"shell": True, "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 60}
    silent = subprocess.run(f"{command} check right.ptx >&- 2>&-", **shell)  # type: ignore[call-overload]
    assert silent.returncode == 0
    empty = subprocess.run(f"{command} check --format concise - <&-", **shell)  # type: ignore[call-overload]
    assert (empty.returncode, empty.stderr) == (1, "")
    assert empty.stdout == "<stdin>:1:1: error[missing-version]: the file is empty\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "right.ptx").write_text(RIGHT)
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(
            [*PTXLAB, "format", tmp_path / "right.ptx"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (shown.returncode, shown.stderr) == (2, "ptxlab: the output can't be used: no space left on device\n")


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (OSError("could not load the library libllvmlite.so"), "could not load the library libllvmlite.so"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "cannot allocate memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "the output can't be used: no space left on device"),
        (OSError(errno.ENOSPC, "No space left on device", "a.npy"), "`a.npy` can't be used: no space left on device"),
        (MemoryError(), "this machine has too little memory for it"),
    ],
)
def test_what_the_system_refuses_is_said_as_it_is(
    problem: Exception, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> int:
        raise problem

    monkeypatch.setattr(group, "run", fail)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err == f"ptxlab: {says}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_recording_on_a_full_disk_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "right.ptx").write_text(RIGHT)
    (tmp_path / "k.ptxtrace").symlink_to("/dev/full")
    shown = subprocess.run([*PTXLAB, "run", "right.ptx", "--block", "1", "--record", "k.ptxtrace"], cwd=tmp_path,
                           capture_output=True, text=True)  # fmt: skip
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.endswith("Error: `k.ptxtrace` cannot be recorded: No space left on device\n")


def test_output_survives_a_terminal_without_unicode(tmp_path: Path) -> None:
    file = tmp_path / "wrong.ptx"
    file.write_text(RIGHT.replace("ret;", "ret; \N{SNOWMAN}"), "utf-8")
    shown = run("check", str(file), env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert shown.returncode == 1
    assert "\\u2603" in shown.stdout
    assert "Traceback" not in shown.stderr

"""Lines in machine code: an address, a crash, gdb and perf name the Python line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxlab.native import native, u32
from ptxlab.native.engine import compile_text
from ptxlab.native.lines import ObjectFile
from ptxlab.native.translate import emit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF, and signals of Linux")

PROGRAM = """
import os, sys
from pathlib import Path
from ptxlab.native import *
from ptxlab.native.engine import build
from ptxlab.native.locating import locate

@native(inline=True)
def element(place: Pointer[u32], index: u32) -> u32:
    return u32(place[index] * 5)  # inlined

@native
def follow(address: u64, index: u32) -> u32:
    place = cast(Pointer[u32], address)
    total: u32 = 7
    for step in range(index):
        total = u32(total * 3 + element(place, step))  # loop
    return total  # last

library = build([follow])
start = library.address("__main__.follow")
map = Path(f"/tmp/perf-{os.getpid()}.map")
text = map.read_text()
map.unlink()
if sys.argv[1:] == ["crash"]:
    library.function(follow)(64, 3)
size = sum(int(line.split()[1], 16) for line in text.splitlines())
for offset in range(size):
    print(locate(start + offset))
print("outside", locate(start - 64), locate(start + size + 64))
print(text)
"""


def line_of(mark: str) -> int:
    return next(number for number, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith(f"# {mark}"))


def run(file: Path, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    file.write_text(PROGRAM)
    environment = os.environ | {
        "PTXLAB_NATIVE_DEBUG": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [*before, sys.executable, str(file), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_addresses_have_lines(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    found = run(file)
    assert found.returncode == 0, found.stderr
    named = {line.partition(" in ")[0] for line in found.stdout.splitlines() if line.endswith(" in __main__.follow")}
    assert {f"{file}:{line_of(mark)}" for mark in ("inlined", "loop", "last")} <= named
    assert "outside None None" in found.stdout


def test_perf_reads_functions_with_lines(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    lines = run(file).stdout.splitlines()
    named = f"{file}:{line_of('loop')} in __main__.follow"
    stretches = [line.split(" ", 2)[:2] for line in lines if line.endswith(f" {named}")]
    assert stretches
    assert all(int(start, 16) and 0 < int(size, 16) < 256 for start, size in stretches)


def test_a_crash_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    found = run(file, "crash")
    assert found.returncode == -11, "the signal comes again, to whatever handled it before"
    said = f"ptxlab: native code crashed with signal 11 at {file}:{line_of('inlined')} in __main__.follow"
    assert said in found.stderr


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_gdb_shows_the_line(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    gdb = ("gdb", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "run", "-ex", "bt 2", "--args")
    found = run(file, "crash", before=gdb)
    if "Program received signal" not in found.stdout:
        pytest.skip("gdb may not trace processes here")
    # At the first instruction of what is inlined, gdb still shows the line that calls it.
    assert any(f"at {file}:{line_of(mark)}" in found.stdout for mark in ("inlined", "loop"))


@native
def plain(a: u32) -> u32:
    return u32(a + 1)


def test_lines_are_only_there_when_asked_for() -> None:
    file = ObjectFile(compile_text(emit([plain])))
    assert [symbol.name for symbol in file.symbols if symbol.is_global] == [plain.__native__.symbol]  # type: ignore[attr-defined]
    assert file.rows == []

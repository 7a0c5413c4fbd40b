"""Machine code on disk and in the process."""

import ctypes
import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptxlab.native import cache, engine, native, u32
from ptxlab.native.cache import cached
from ptxlab.native.engine import build, compile_text, load

pytestmark = pytest.mark.skipif(os.name == "nt", reason="file permissions")


@native
def triple(a: u32) -> u32:
    return u32(3 * a)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache._surroundings()  # the first time it keeps a file of its own
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Maker:
    """Counts how often it is asked."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked = 0

    def __call__(self) -> bytes:
        self.asked += 1
        return self.content


def test_what_was_made_is_found_again(folder: Path) -> None:
    make, other = Maker(b"code"), Maker(b"other")
    assert [cached("key", make), cached("key", make), cached("another", other)] == [b"code", b"code", b"other"]
    assert (make.asked, other.asked, len(list(folder.iterdir()))) == (1, 1, 2)


@pytest.mark.parametrize("damage", [b"", b"x", b"x" * 100])
def test_a_damaged_file_is_made_again(folder: Path, damage: bytes) -> None:
    make = Maker(b"code" * 100)
    cached("key", make)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-50] + damage)
    assert cached("key", make) == b"code" * 100
    assert make.asked == 2
    assert cached("key", make) == b"code" * 100
    assert make.asked == 2


def test_a_file_under_another_name_is_not_used(folder: Path) -> None:
    first, second = Maker(b"first"), Maker(b"second")
    cached("first", first)
    (one,) = folder.iterdir()
    cached("second", second)
    (other,) = set(folder.iterdir()) - {one}
    one.write_bytes(other.read_bytes())
    assert cached("first", first) == b"first"
    assert (first.asked, second.asked) == (2, 1)


def test_a_folder_that_cannot_be_made_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("not a folder")
    folder = tmp_path / "file" / "cache"
    monkeypatch.setenv("PTXLAB_CACHE", str(folder))
    make = Maker(b"code")
    assert cached("key", make) == cached("key", make) == b"code"
    assert make.asked == 2
    said = f"ptxlab: the cache folder {folder} cannot be used (Not a directory); every process compiles anew\n"
    assert capsys.readouterr() == ("", said)


def test_a_folder_that_cannot_be_written_is_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    make = Maker(b"code")
    assert cached("key", make) == cached("key", make) == b"code"
    assert make.asked == 2
    said = f"ptxlab: the cache folder {folder} cannot be written (Read-only file system); every process compiles anew\n"
    assert capsys.readouterr() == ("", said)


def test_a_new_folder_is_its_owners_alone(folder: Path) -> None:
    cached("key", Maker(b"code"))
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o702])
def test_a_folder_that_others_can_write_is_not_used(
    folder: Path, mode: int, capsys: pytest.CaptureFixture[str]
) -> None:
    make = Maker(b"code")
    cached("key", make)
    folder.chmod(mode)
    assert cached("key", make) == cached("key", make) == b"code"
    assert make.asked == 3
    said = "can be written by other users and is not used (`chmod go-w` and empty it); every process compiles anew\n"
    assert capsys.readouterr().err == f"ptxlab: the cache folder {folder} {said}"
    folder.chmod(0o755)
    cached("key", make)
    assert make.asked == 3


@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], linked: bool
) -> None:
    folder = target = tmp_path / "cache"
    if linked:
        target = tmp_path / "target"
        folder.symlink_to(target)
    target.mkdir(mode=0o755)
    monkeypatch.setenv("PTXLAB_CACHE", str(folder))
    make = Maker(b"code")
    assert cached("key", make) == cached("key", make) == b"code"
    assert make.asked == 1
    others = os.stat_result((0o40755, 1, 1, 1, os.geteuid() + 1, 0, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "lstat" if linked else "stat", lambda path, **_: others)
    assert cached("key", make) == cached("key", make) == b"code"
    assert make.asked == 3
    said = "belongs to another user and is not used; every process compiles anew\n"
    assert capsys.readouterr().err == f"ptxlab: the cache folder {folder} {said}"


def test_a_file_of_another_user_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have put it there before the folder became its owner's alone."""
    make = Maker(b"code")
    cached("key", make)
    others = os.stat_result((0o100600, 1, 1, 1, os.geteuid() + 1, 0, 0, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda descriptor: others)
    assert cached("key", make) == b"code"
    assert make.asked == 2


def test_a_relative_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be inside the current folder, which may be a stranger's."""
    monkeypatch.setenv("PTXLAB_CACHE", "cache")
    monkeypatch.chdir(tmp_path)
    make = Maker(b"code")
    assert cached("key", make) == cached("key", make) == b"code"
    assert (make.asked, [*tmp_path.iterdir()]) == (2, [])
    assert "the cache folder cache is not an absolute path and is not used" in capsys.readouterr().err


def test_what_is_provisional_is_not_kept(folder: Path) -> None:
    make = Maker(cache.Provisional(b"code"))
    assert cached("key", make) == cached("key", make) == b"code"
    assert make.asked == 2


def test_an_empty_name_turns_the_cache_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", "")
    monkeypatch.chdir(tmp_path)
    make = Maker(b"code")
    cached("key", make)
    cached("key", make)
    assert make.asked == 2
    assert not list(tmp_path.iterdir())


def test_what_was_not_used_for_long_goes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 3000)
    for number in range(2):
        cached(f"key {number}", Maker(bytes([number]) * 1000))
    for age, file in enumerate(sorted(folder.iterdir(), key=lambda file: file.read_bytes()[32])):
        os.utime(file, (1000 + age, 1000 + age))
    cached("key 0", Maker(b"used again"))
    cached("key 2", Maker(bytes([2]) * 1000))
    kept = {file.read_bytes()[32] for file in folder.iterdir()}
    assert kept == {0, 2}


def test_compiled_functions_come_from_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build([triple]).function(triple)(5) == 15
    monkeypatch.setattr("ptxlab.native.engine.compile_text", lambda *_, **__: pytest.fail("compiled again"))
    assert build([triple]).function(triple)(6) == 18


def test_a_missing_symbol_is_named() -> None:
    library = load([compile_text("define i32 @here() { ret i32 1 }")])
    assert library.address("here")
    with pytest.raises(KeyError, match="there is no `elsewhere` in the machine code"):
        library.address("elsewhere")


def test_wrong_text_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="use of undefined value"):
        compile_text("define i32 @here() { ret i32 %x }")


def test_the_language_loads_without_llvm() -> None:
    text = "import sys, ptxlab.native; print([name for name in ('llvmlite', 'ast', 'ctypes') if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-S", "-c", text]  # -S: without what installed packages load when Python starts
    assert subprocess.check_output(command, text=True, env=environment).strip() == "[]"


def test_a_library_uses_another_and_unloads() -> None:
    """Only ORC links a library with one that is loaded already; what is missing is an error, not a null address."""
    shared = load([compile_text("define i32 @one() {\n  ret i32 1\n}\n")])
    user = "declare i32 @one()\ndefine i32 @two() {\n  %a = call i32 @one()\n  %b = add i32 %a, 1\n  ret i32 %b\n}\n"
    library = load([compile_text(user)], libraries=[shared])
    assert ctypes.CFUNCTYPE(ctypes.c_uint32)(library.address("two"))() == 2
    assert library.address("one") == shared.address("one")
    alone = load([compile_text(user)])
    with pytest.raises(RuntimeError, match="Failed to materialize symbols"):
        alone.address("two")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_loading_and_unloading_does_not_grow_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST", 100)
    code = compile_text("define i32 @one() {\n  ret i32 1\n}\n")
    sizes = []
    for _ in range(4):
        for _ in range(engine.MOST):
            load([code]).address("one")
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    assert sizes[3] - sizes[1] < 256 << 10, "the first rounds fill what stays"


# Memory that is left in pages 16 GiB apart, one after the other, as large mappings of a program may leave it.
SCATTERED = """
import ctypes, mmap, sys
from pathlib import Path
from ptxlab.native.engine import compile_text, load

code = compile_text(sys.argv[1], speed=0)
load([code]).address("add")
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
FIXED, PRIVATE = 0x100000, 0x4022  # MAP_FIXED_NOREPLACE; MAP_PRIVATE, MAP_ANONYMOUS and MAP_NORESERVE
large = library.mmap(None, 1 << 40, 0, PRIVATE, -1, 0)
ranges = [[int(end, 16) for end in line.split()[0].split("-")] for line in open("/proc/self/maps")]
for (_, end), (start, _) in zip(ranges, ranges[1:]):
    if large <= end < start:
        library.mmap(end, start - end, 0, PRIVATE | FIXED, -1, 0)
for number in range(1, 60):
    library.munmap(large + number * (16 << 30), mmap.PAGESIZE)
libraries = [load([code]) for _ in range(10)]
for one in libraries:
    values = (ctypes.c_float * 4)(1, 1, 1, 1)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(one.address("add"))(ctypes.addressof(values))
    print(*values)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_code_is_linked_wherever_memory_is_left() -> None:
    """Code that is not optimized has constants that it must be near to: LLVM's other linker aborts on aarch64."""
    vector = "<float 1.5, float 2.25, float 3.125, float 4.0625>"
    text = (
        "define void @add(ptr %p) {\n  %x = load <4 x float>, ptr %p\n"
        f"  %y = fadd <4 x float> %x, {vector}\n  store <4 x float> %y, ptr %p\n  ret void\n}}\n"
    )
    shown = subprocess.run([sys.executable, "-c", SCATTERED, text], capture_output=True, text=True)
    assert (shown.stdout, shown.stderr) == ("2.5 3.25 4.125 5.0625\n" * 10, "")


def test_what_takes_long_is_made_once(folder: Path) -> None:
    made = []

    def make() -> bytes:
        made.append(b"code")
        time.sleep(0.2)
        return made[-1]

    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(cached, "a key", make, takes_long=True) for _ in range(3)]
    assert [one.result() for one in found] == [b"code"] * 3
    assert len(made) == len(list(folder.iterdir())) == 1


def test_a_failure_lets_the_next_one_make_it(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        cached("a key", lambda: bytes(1 // 0), takes_long=True)
    assert list(folder.iterdir()) == []
    assert cached("a key", lambda: b"code", takes_long=True) == b"code"

"""Machine code is kept under a name that covers all that it was made from."""

import time
from functools import cache
from pathlib import Path

import pytest

import ptxlab
from ptxlab.emulate.runtime.table import ENTRIES, RUNTIME
from ptxlab.emulate.translate import compile as compiling
from ptxlab.native import cache as native_cache
from ptxlab.native.cache import _python_files
from ptxlab.native.translate import reachable
from tests.processes import run

SOURCE = Path(str(ptxlab.__file__)).parent
PACKAGES = ("native", "numbers", "isa", "ir", "syntax", "flow", "check", "device", "emulate")
FILES = [file for package in PACKAGES for file in sorted((SOURCE / package).rglob("*.py"))]
TEXT = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def keys(monkeypatch: pytest.MonkeyPatch, touched: Path | None) -> list[str]:
    """What the runtime and a kernel are kept under, if one file of the source had one more byte."""
    seen: list[str] = []

    def read_bytes(path: Path) -> bytes:
        return _read(path) + b"#" * (path == touched)

    def note(key: str, make: object, takes_long: bool = False) -> bytes:
        seen.append(key)
        return b""

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", read_bytes)
        patch.setattr(Path, "read_text", lambda path, *_, **__: read_bytes(path).decode())
        patch.setattr(native_cache, "_python_files", _listed)
        patch.setattr(native_cache, "_stamps", lambda packages: None)  # so that files are read
        patch.setattr(compiling.engine, "cached", note)
        patch.setattr(compiling, "_loaded", {})
        for function in vars(compiling).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
        compiling.runtime_code()
        with pytest.raises(ValueError, match="not enough values"):  # there is nothing to load
            compiling.compile_kernel(_module(), _module()["k"], "of its text", checks=True)
        for function in vars(compiling).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
    return seen


@cache
def _listed(folder: Path, name: str) -> list[tuple[str, Path]]:
    return [*_python_files(folder, name)]


@cache
def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read()


@cache
def _module() -> ptxlab.ir.Module:
    return ptxlab.parse(TEXT)


def test_every_function_of_the_runtime_is_of_a_file_that_is_tried() -> None:
    files = {Path(function.__code__.co_filename) for function in reachable([*RUNTIME.values(), *ENTRIES])}
    assert files <= set(FILES)
    assert len(files) > 40


def test_what_the_emulator_loads_besides_makes_no_machine_code() -> None:
    shown = run(
        "import sys, pkgutil, ptxlab.emulate.launch, ptxlab.emulate.translate as folder\n"
        "for module in pkgutil.iter_modules(folder.__path__): __import__(f'{folder.__name__}.{module.name}')\n"
        "print(*(name for name in sys.modules if name.startswith('ptxlab.')))"
    )
    assert {name.split(".")[1] for name in shown.split()} - set(PACKAGES) == {
        "interrupts",
        "lazily",
        "report",
        "services",
        "toolchain",
        "values",
    }


@pytest.mark.slow
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.bulk)])
def test_a_change_of_any_source_changes_the_keys(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(monkeypatch, None)
    assert keys(monkeypatch, None) == before
    assert len(before) == 2
    assert [file for file in FILES[::step] if set(before) & set(keys(monkeypatch, file))] == []


@pytest.mark.parametrize("file", sorted((SOURCE / "native").glob("*.py")), ids=lambda file: str(file.name))
def test_a_change_of_the_compiler_changes_every_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_cache, "_stamps", lambda packages: None)  # so that files are read
    before = native_cache._surroundings.__wrapped__()
    plain = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: plain(path) + b"#" * (path == file))
    assert native_cache._surroundings.__wrapped__() != before


def test_a_digest_of_sources_is_kept_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ptxlab, "_loaded_at", time.time() + 1000)
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "digested" / "inner" / "code.py"
    file.parent.mkdir(parents=True)
    (tmp_path / "digested" / "__init__.py").write_text("")
    file.write_text("x = 1\n")
    read: list[Path] = []
    plain = native_cache._digest
    monkeypatch.setattr(native_cache, "_digest", lambda packages: read.append(file) or plain(packages))
    first = native_cache.sources("digested")
    assert (native_cache.sources("digested"), len(read)) == (first, 1)
    file.write_text("x = 2\n")
    second = native_cache.sources("digested")
    assert (second != first, len(read)) == (True, 2)
    file.write_text("x = 1\n")  # the digest is of what is in it, not of when it was written
    assert (native_cache.sources("digested"), len(read)) == (first, 3)
    file.with_name("more.py").write_text("")
    assert native_cache.sources("digested") not in (first, second)


def test_source_that_was_edited_since_is_a_key_of_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(monkeypatch, None)
    monkeypatch.setattr(ptxlab, "_loaded_at", 0.0)
    edited = keys(monkeypatch, None)
    assert not set(before) & set(edited)
    assert not set(edited) & set(keys(monkeypatch, None))

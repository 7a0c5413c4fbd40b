"""The programs that measure on a GPU: each can be imported, so that none is forgotten when what it uses is renamed."""

import importlib.util
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_can_be_imported(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location(f"benchmark_{program.stem}", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look for the module they are in
    monkeypatch.syspath_prepend(str(program.parent))
    spec.loader.exec_module(module)
    assert module.__doc__

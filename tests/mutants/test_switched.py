"""A change is made in a process: variants of native functions by a number in memory, code of Python in its place."""

import ctypes
import importlib.util
from pathlib import Path

import pytest

from ptxlab.isa.bits import find_set_bit
from ptxlab.native import engine, translate
from ptxlab.native.functions import signature
from tests.mutants.forked import Loaded
from tests.mutants.sites import sites
from tests.mutants.switched import Switched
from tests.mutants.trees import ROOT


def test_a_number_in_memory_chooses_a_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = "while 1 <= position < 32:"
    chosen = [
        site
        for site in sites(ROOT, ["isa"])
        if site.file.endswith("isa/bits.py") and site.show((ROOT / site.file).read_bytes())["after"] == shown
    ]
    switched = Switched(dict(enumerate(chosen, 1)))
    monkeypatch.setattr(translate, "_UNITS", {})
    monkeypatch.setattr(translate, "unit_of", switched._unit_of)
    library = engine.load([engine.compile_text(translate.emit([find_set_bit]), speed=0)])
    found = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_int32)(
        library.address(signature(find_set_bit).symbol)
    )
    assert switched.refused == set()
    assert [found(0b101, 0, 1), found(0b101, 2, 1), found(0b101, 2, -2)] == [0, 2, 0]
    switched.choose([1])
    assert [found(0b101, 0, 1), found(0b101, 2, 1), found(0b101, 2, -2)] == [0xFFFFFFFF, 2, 0xFFFFFFFF]
    switched.choose([])
    assert found(0b101, 0, 1) == 0


def test_changed_functions_have_new_code_wherever_they_are(tmp_path: Path) -> None:
    before = "def one():\n    return 1\n\n\nclass A:\n    def two(self):\n        return [one() for _ in range(2)]\n"
    file = tmp_path / "changed.py"
    file.write_text(before)
    spec = importlib.util.spec_from_file_location("changed", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept, method, swap = module.one, module.A().two, Loaded().swap
    assert swap({str(file): (before.encode(), before.replace("return 1", "return 5").encode())}) == {str(file)}
    assert (kept(), method()) == (5, [5, 5])
    assert swap({str(file): (before.encode(), before.replace("range(2)", "range(3)").encode())}) == {str(file)}
    assert method() == [5, 5, 5]
    assert swap({str(file): (before.encode(), f"{before}X = 1\n".encode())}) == set()

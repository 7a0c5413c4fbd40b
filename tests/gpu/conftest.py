"""Tests with the marker `gpu` are skipped where there is no GPU, and say why; `fake` is one in Python."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlab.gpu import absence, driver, hardware, loading
from ptxlab.launch import contexts
from tests.gpu.driver_of_python import Driver
from tests.gpu.fakes import saxpy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    problem = absence()
    if problem is None:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=f"{problem.message}: {problem.notes[0]}"))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Driver]:
    """An H200 whose kernel `saxpy` is Python, and a cubin that need not be compiled."""
    made = Driver(saxpy)
    made.parameters = 4
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(driver, "_open", lambda: made)
    monkeypatch.setattr(driver, "_contexts", {})
    monkeypatch.setattr(driver, "_broken", [])
    monkeypatch.setattr(contexts, "_contexts", {})  # what a real GPU has loaded is not loaded here
    monkeypatch.setattr(loading, "compile_text", lambda *given: b"cubin")
    monkeypatch.setattr(loading, "_default_compiler", lambda: "ptxas")
    hardware.gpu.cache_clear()
    yield made
    hardware.gpu.cache_clear()

"""Tests with the marker `gpu` are skipped where there is no GPU, and say why."""

import pytest

from ptxlab.gpu import absence


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    problem = absence()
    if problem is None:
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=f"{problem.message}: {problem.notes[0]}"))

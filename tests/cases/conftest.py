"""What a case reports and counts, compared whole with the file beside it: `BLESS=1 pytest tests/cases` writes these.

The header of a case says what is found, and where; `NAME.txt` has every word of it, what the first seed counts, and a
digest of what all seeds report and leave in memory.
"""

import hashlib
import json
from collections.abc import Generator

import pytest

from ptxlab.pytest_plugin.case import Seen
from ptxlab.pytest_plugin.files import GpuItem, PtxItem


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    done = yield
    if isinstance(item, PtxItem) and not isinstance(item, GpuItem) and item.seen and not item.case.spelling:
        file = item.path.with_suffix(".txt")
        found = _whole(item.seen[: item.case.seeds])
        if item.config.getoption("ptxlab_bless"):
            file.write_text(found, encoding="utf-8")
        assert found == file.read_text(encoding="utf-8")
    return done


def _whole(seen: list[Seen]) -> str:
    """All that a case shows."""
    first = seen[0]
    digest = hashlib.sha256()
    for run in seen:
        digest.update(_shown(run).encode())
        for array in run.arrays:
            digest.update(array.tobytes())
    return f"{_shown(first)}{len(seen)} seeds: {digest.hexdigest()[:16]}\n"


def _shown(run: Seen) -> str:
    if run.result is None:
        return f"{run.report}\n"
    result = run.result
    counted = [f"{name}: {json.dumps(value)}" for name, value in result.counters.items()]
    parts = [run.report, result.output, str(result.coverage), str(result.fidelity), str(result.depends_on), *counted]
    return "".join(f"{part}\n" for part in parts if part)

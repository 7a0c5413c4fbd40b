"""Triton's own tests on the emulator: a plugin of pytest, for the files below `python/test` of Triton's repository.

    TARGET=sm_100a ROWS=rows.jsonl python -m pytest -p tests.frameworks.triton_suite --rootdir ../triton/python
        ../triton/python/test/gluon/test_consan.py -k "1ctas or 2ctas"

Each test runs unchanged. Those of Triton's own sanitizers (`test_consan.py`, `test_gsan_failures.py`) have kernels with
a bug, and expect a process that fails: here a finding is such a failure, and a wrong kernel without one fails its test.
What they assert of a sanitizer's messages and memory does not apply here. `ROWS` gets a line for each test: what became
of it, what was found, how many instructions ran. `SAMPLE=3` runs three parameters of each test, chosen by `SEED`.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import triton._internal_testing as internals
import triton.testing
from triton.backends.nvidia.compiler import CUDABackend

import ptxlab

torch.set_num_threads(1)
TARGET = os.environ.get("TARGET", "sm_100a")
# Tests ask for the GPU when they are imported: the session stays open as long as the process runs.
_opened = ptxlab.triton.emulated(TARGET, timeout=float(os.environ.get("LIMIT", "60")))
SESSION = _opened.__enter__()
_started = {"at": 0.0}


class _Anything(str):
    """What a sanitizer would have printed: it contains whatever a test looks for."""

    __slots__ = ()

    def __contains__(self, other: object) -> bool:
        return True


class _Product:
    """Instead of cuBLAS, which is not there."""

    def matmul(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        out.copy_((a.float() @ b.float().T).to(out.dtype))


def _run_here(function: Any, args: Any = (), kwargs: Any = None, env: Any = None) -> Any:
    """Instead of a process that a sanitizer stops: a finding is what it stops at."""
    try:
        function(*args, **(kwargs or {}))
    except ptxlab.KernelError as found:
        return internals.ProcessResult(RuntimeError(str(found)), _Anything("found"))
    return internals.ProcessResult(None, "")


def _is_found(problem: BaseException | None) -> None:
    assert problem is not None, "nothing was found in a kernel that is wrong"


def _without_sanitizer(parse: Any) -> Any:
    return lambda self, options: parse(self, {**options, "instrumentation_mode": ""})


CUDABackend.parse_options = _without_sanitizer(CUDABackend.parse_options)
internals.run_in_process = _run_here
triton.testing.cublas = lambda *_: _Product()
torch.cuda.use_mem_pool = lambda *_, **__: nullcontext()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Choose parameters, and have tests call what is here in place of processes."""
    groups: dict[tuple[Any, str], list[Any]] = {}
    for item in items:
        groups.setdefault((item.path, item.originalname), []).append(item)  # type: ignore[attr-defined]
        for name, other in (("assert_expected_cuda_failure", _is_found), ("run_in_process", _run_here)):
            if hasattr(item.module, name):  # type: ignore[attr-defined]
                setattr(item.module, name, other)  # type: ignore[attr-defined]
    most, chosen = int(os.environ.get("SAMPLE", "0")), random.Random(int(os.environ.get("SEED", "1")))
    if most:
        kept = {item for group in groups.values() for item in chosen.sample(group, min(most, len(group)))}
        items[:] = [item for item in items if item in kept]


@pytest.fixture
def process_pool() -> None:
    """Triton's fixture starts processes."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    _started["at"] = time.monotonic()
    SESSION.launches.clear()
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "ROWS" not in os.environ or (report.when != "call" and not report.failed):
        return
    row = {
        "test": report.nodeid,
        "target": TARGET,
        "outcome": report.outcome,
        "seconds": round(time.monotonic() - _started["at"], 2),
        "instructions": sum(one.result.counters.get("instructions", 0) for one in SESSION.launches),
        "found": sorted({f"{one.level} {one.code}: {one.message}" for one in SESSION.diagnostics}),
        "problem": report.longreprtext[-2000:] if report.failed else "",
    }
    with Path(os.environ["ROWS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")

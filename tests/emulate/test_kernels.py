"""Kernels that people write, run by the emulator, against NumPy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.emulate.kernels import CASES, Case, execute

IDS = [case.name for case in CASES]


def test_names_are_unique() -> None:
    assert len(set(IDS)) == len(IDS)


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("path", sorted({case.path for case in CASES}), ids=lambda path: path.stem)
def test_every_file_is_legal(path) -> None:
    found = ptxlab.check(ptxlab.load(path))
    assert [diagnostic for diagnostic in found if diagnostic.level == "error"] == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_every_case_starts_wrong(case: Case) -> None:
    """Before the launch the arrays are not yet what is expected, or the case would pass without running."""
    run = case.make(np.random.default_rng(0))
    if run.fails:
        assert run.checks == []
        return
    wrong = []
    for check in run.checks:
        try:
            check("")
        except AssertionError:
            wrong.append(check)
    assert wrong


def _runs() -> Iterator[Any]:
    """Each case in the usual order, and preempted; what does not synchronize is preempted in its first build alone."""
    preempted = set()
    for case in CASES:
        yield pytest.param(case, 0, id=f"{case.name}-0")
        is_new = bool(case.synchronizes) or case.make not in preempted
        preempted.add(case.make)
        yield pytest.param(case, 1, id=f"{case.name}-1", marks=() if is_new else pytest.mark.bulk)


@pytest.mark.bulk(one_in=11)
@pytest.mark.parametrize(("case", "seed"), [*_runs()])
def test_kernel(case: Case, seed: int) -> None:
    fails = case.make(np.random.default_rng(seed)).fails
    if not fails:
        execute(case, random=seed, device="cpu", seed=seed)
        return
    with pytest.raises(ptxlab.KernelError) as caught:
        execute(case, random=seed, device="cpu", seed=seed)
    assert fails in str(caught.value)

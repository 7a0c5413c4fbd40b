"""Which combinations `tune` finds right, wrong and impossible, and who assembles them."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlab import gpu
from ptxlab.author import f32, kernel, pointer, ptx, u32
from ptxlab.kernels import vector_addition
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div
from ptxlab.measure import tune
from ptxlab.report import PtxError
from tests.tools import needs_nvdisasm


@kernel
def add(a: pointer[f32], b: pointer[f32], c: pointer[f32], n: u32, *, EACH: int, STEP: int) -> None:  # noqa: N803
    """Some elements a thread, a step apart."""
    first = ptx.ctaid.x * (EACH * ptx.ntid.x) + ptx.tid.x
    for number in range(EACH):
        i = first + number * STEP
        with ptx.when(i < n):
            c[i] = a[i] + b[i]


def make(each: int, step: int) -> Callable[..., Launch]:
    if each > 4:
        raise UnsuitedError(f"{each} are too many for a thread")

    def variant(a: Any, b: Any, c: Any) -> Launch:
        return Launch(add.specialize(EACH=each, STEP=step), ceil_div(len(c), 128 * each), 128, [a, b, c, len(c)])

    return variant


@pytest.fixture(params=["processes", *(pytest.param(name, marks=pytest.mark.bulk) for name in ("threads", "Dask"))])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield pool
    elif request.param == "processes":
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            yield pool
    else:
        distributed = pytest.importorskip("distributed")
        with (
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
            ) as local,
            distributed.Client(local) as client,
        ):
            yield client.get_executor()


@pytest.mark.filterwarnings("default")  # Dask's own
@pytest.mark.skipif(gpu.absence() is None, reason="where there is a GPU, it decides")
def test_right_and_wrong_are_distinguished(executor: Executor) -> None:
    reported: list[str] = []
    found = tune(
        make, {"each": [1, 3, 8], "step": [128]}, vector_addition.entry, executor=executor, progress=reported.append
    )
    assert [(trial.parameters["each"], trial.is_right) for trial in found.trials] == [(8, False), (1, True), (3, True)]
    assert found.trials[0].problem == "8 are too many for a thread"
    assert all(trial.registers for trial in found.trials[1:])
    assert reported == ["assembled 1 of 2", "assembled 2 of 2", "checked 1 of 2", "checked 2 of 2"]


@pytest.mark.skipif(gpu.absence() is None, reason="where there is a GPU, it decides")
@needs_nvdisasm
def test_without_a_gpu_the_estimate_ranks_and_says_so() -> None:
    found = tune(make, {"each": [1, 2], "step": [128]}, vector_addition.entry, {"n": 1 << 16})
    assert found.by == "estimate"
    assert not any(trial.samples for trial in found.trials)
    assert found.best.estimated == min(trial.estimated for trial in found.trials if trial.estimated is not None)
    assert str(found).startswith("2 combinations, not timed: estimated for an H200\n")


@pytest.mark.skipif(gpu.absence() is None, reason="where there is a GPU, it decides")
def test_a_wrong_combination_is_out_and_says_why() -> None:
    found = tune(make, {"each": [2], "step": [64, 128]}, vector_addition.entry)  # 64: half of the elements, twice
    wrong, right = found.trials
    assert not wrong.is_right
    assert "`c` is wrong" in wrong.problem or "data-race" in wrong.problem
    assert found.best == right


def test_what_is_kept_is_not_tried_again(tmp_path: Path) -> None:
    kept = tmp_path / "add.json"
    size = {"n": 5000}
    first = tune(make, {"each": [1, 2], "step": [128]}, vector_addition.entry, size, keep=kept)
    reported: list[str] = []
    second = tune(
        make, {"each": [1, 2, 4], "step": [128]}, vector_addition.entry, size, keep=kept, progress=reported.append
    )
    assert second.trials[:2] == first.trials
    assert "assembled 1 of 1" in reported
    assert second.best.is_right


@pytest.mark.skipif(gpu.absence() is None, reason="where there is a GPU, it decides")
def test_what_was_found_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    def interrupt(text: str) -> None:
        if text == "checked 1 of 2":
            raise KeyboardInterrupt

    kept = tmp_path / "add.json"
    with pytest.raises(KeyboardInterrupt):
        tune(make, {"each": [1, 2], "step": [128]}, vector_addition.entry, keep=kept, progress=interrupt)
    reported: list[str] = []
    found = tune(make, {"each": [1, 2], "step": [128]}, vector_addition.entry, keep=kept, progress=reported.append)
    assert reported == ["assembled 1 of 1", "checked 1 of 1"]
    assert [trial.is_right for trial in found.trials] == [True, True]


@pytest.mark.skipif(gpu.absence() is None, reason="where there is a GPU, it decides")
def test_a_combination_that_cannot_be_written_is_out_and_says_why() -> None:
    def broken(each: int) -> Callable[..., Launch]:
        @kernel
        def k(x: pointer[f32]) -> None:
            ptx.fma["rx"].f32(x[0], x[0], x[0])

        return make(each, 128) if each == 1 else lambda a, b, c: Launch(k, 1, 1, [a])

    wrong, right = tune(broken, {"each": [1, 2]}, vector_addition.entry).trials
    assert (right.is_right, wrong.is_right) == (True, False)
    assert wrong.problem.startswith("error[illegal-modifier]: `fma` takes no modifier `.rx` here")


def test_a_file_keeps_what_other_calls_found(tmp_path: Path) -> None:
    size = {"n": 5000}
    kept = str(tmp_path / "folder" / "add.json")
    first = tune(make, {"each": np.array([1]), "step": [128]}, vector_addition.entry, size, keep=kept)
    second = tune(make, {"each": [2], "step": [128]}, vector_addition.entry, size, keep=kept)
    assert [trial.parameters["each"] for trial in second.trials] == [2]
    reported: list[str] = []
    third = tune(
        make, {"each": [1, 2], "step": [128]}, vector_addition.entry, size, keep=kept, progress=reported.append
    )
    assert third.trials == first.trials + second.trials
    assert not any(text.startswith("assembled") for text in reported)
    assert [path.name for path in Path(kept).parent.iterdir()] == ["add.json"]


@pytest.mark.parametrize(
    "text", ['{"size": {"n', "[1, 2]", '{"size": {}, "machine": {}, "trials": [{"parameter": 1}]}']
)
def test_a_damaged_file_is_refused_and_stays(text: str, tmp_path: Path) -> None:
    kept = tmp_path / "add.json"
    kept.write_text(text)
    with pytest.raises(PtxError, match="holds no results of `tune`"):
        tune(make, {"each": [1], "step": [128]}, vector_addition.entry, keep=kept)
    assert kept.read_text() == text


def test_results_of_another_size_are_not_lost(tmp_path: Path) -> None:
    kept = tmp_path / "add.json"
    tune(make, {"each": [1], "step": [128]}, vector_addition.entry, {"n": 5000}, keep=kept)
    with pytest.raises(PtxError, match=r'another size: \{"n": 5000\}, and this is \{"n": 6000\}'):
        tune(make, {"each": [1], "step": [128]}, vector_addition.entry, {"n": 6000}, keep=kept)


def test_a_file_that_cannot_be_written_is_reported_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reported: list[str] = []
    with pytest.raises(OSError, match="file"):
        tune(
            make, {"each": [1], "step": [128]}, vector_addition.entry, keep=tmp_path / "file" / "add.json",
            progress=reported.append,
        )  # fmt: skip
    assert reported == []


def test_nothing_right_is_an_error_that_lists_the_reasons() -> None:
    found = tune(make, {"each": [5, 6], "step": [1]}, vector_addition.entry, {"n": 5000})
    with pytest.raises(UnsuitedError, match="no combination is right: 5 are too many for a thread; 6 are"):
        _ = found.best


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_on_a_gpu_the_fastest_is_the_best() -> None:
    pytest.importorskip("torch")
    found = tune(make, {"each": [2, 4], "step": [64, 128]}, vector_addition.entry, {"n": 1 << 22}, rounds=3)
    assert [trial.is_right for trial in found.trials] == [False, True, False, True]
    assert found.best.seconds == min(trial.seconds for trial in found.trials if trial.seconds is not None)

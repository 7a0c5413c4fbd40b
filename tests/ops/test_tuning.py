"""`tune` and `PTXLAB_TUNE`: the fastest variants are found and kept; the test says how long each takes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlab import gpu
from ptxlab.kernels import export_table, gated_matmul, import_table, matmul, tune
from ptxlab.kernels.parts import choices
from ptxlab.kernels.parts.choices import Choice, watched
from ptxlab.kernels.wgmma_dual_gemm import GATED
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import PRODUCTS
from ptxlab.kernels.wgmma_grouped_gemm.choice import choose as choose_grouped
from ptxlab.measure import UnsuitedError
from ptxlab.ops import tuning
from ptxlab.report import KernelError

HERE = {"gpu": "NVIDIA H200", "driver": "580.1", "version": "1"}


@dataclass(frozen=True)
class Variant:
    width: int
    keep: tuple[str, str] = ("", "")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder without answers, on a machine with an H200."""
    monkeypatch.setenv("PTXLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(choices, "machine", lambda: HERE)
    monkeypatch.setattr(choices, "_answers", None)
    return tmp_path


def forget(monkeypatch: pytest.MonkeyPatch, **about: str) -> None:
    """As another process does, perhaps on another machine."""
    monkeypatch.setattr(choices, "_answers", None)
    monkeypatch.setattr(choices, "machine", lambda: {**HERE, **about})


def choice_of(*widths: int) -> Choice:
    """Chooses the first."""
    variants = [Variant(width, ("", "evict_first")) for width in widths]
    return Choice("test", lambda extent: variants[0], lambda extent: variants)


def measure(choice: Choice, extent: int, seconds: dict[int, float]) -> None:
    """Measure variants that take so long, each by its width; one without a time cannot run."""

    def make() -> Callable[[], int]:
        width = choice(extent).width
        if width not in seconds:
            raise UnsuitedError("no memory")
        return lambda: width

    tuning.measure([(choice, (extent,))], make, lambda start: seconds[start()])


def test_the_fastest_variant_is_chosen_from_then_on_and_in_other_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = choice_of(8, 16, 32, 64)
    measure(choice, 100, {8: 4e-6, 16: 3e-6, 64: 3.5e-6})
    assert choice(100) == Variant(16, ("", "evict_first"))
    assert choice(101).width == 8
    assert capsys.readouterr().err == (
        "ptxlab tune: test: the fastest of 3 variants takes 3.0 us, what is chosen otherwise 4.0 us\n"
    )
    forget(monkeypatch)
    assert choice(100) == Variant(16, ("", "evict_first"))
    for other in ({"gpu": "NVIDIA H100"}, {"driver": "590.1"}, {"version": "2"}):
        forget(monkeypatch, **other)
        assert choice(100).width == 8


def test_what_is_not_clearly_faster_replaces_nothing() -> None:
    choice = choice_of(8, 16)
    measure(choice, 100, {8: 4e-6, 16: 3.98e-6})
    assert choice(100).width == 8


def test_a_choice_that_cannot_run_is_an_error() -> None:
    with pytest.raises(UnsuitedError, match="no memory"):
        measure(choice_of(8, 16), 100, {16: 1e-6})


def test_it_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = choice_of(8, 16)
    for slower, expected in ((8, 16), (16, 8)):
        measure(choice, 100, {8: 1e-6, 16: 1e-6} | {slower: 2e-6})
        forget(monkeypatch)
        assert choice(100).width == expected


def test_a_damaged_file_costs_no_more_than_the_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = choice_of(8, 16)
    measure(choice, 100, {8: 2e-6, 16: 1e-6})
    path = folder / choices.FOLDER / choices.FILE
    text = path.read_text()
    path.write_text(f"{{\n[]\n{text}{text[:40]}")
    forget(monkeypatch)
    assert choice(100).width == 16
    path.write_text(text.replace('"width"', '"breadth"'))  # as another version had it
    forget(monkeypatch)
    assert choice(100).width == 8


def test_a_table_is_shipped_to_the_same_gpus(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice, table = choice_of(8, 16), tmp_path / "h200.jsonl"
    measure(choice, 100, {8: 2e-6, 16: 1e-6})
    assert export_table(table) == 1
    (folder / choices.FOLDER / choices.FILE).unlink()
    forget(monkeypatch, driver="590.1")
    assert choice(100).width == 8
    assert import_table(table) == 1
    assert choice(100).width == 16
    forget(monkeypatch, driver="590.1")
    assert choice(100).width == 16
    forget(monkeypatch, gpu="NVIDIA H100")
    with pytest.raises(ValueError, match=r"h200.jsonl` has nothing that was measured on NVIDIA H100 with ptxlab 1: "):
        import_table(table)


def test_the_variable_asks_for_what_was_never_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = choice_of(8, 16)
    asked = [(choice, (100,))]
    for value, expected in (("", False), ("0", False), ("1", True)):
        monkeypatch.setenv("PTXLAB_TUNE", value)
        assert tuning.is_wanted(asked) is expected
    measure(choice, 100, {8: 2e-6, 16: 1e-6})
    assert not tuning.is_wanted(asked)
    assert tuning.is_wanted([*asked, (choice, (101,))])


@pytest.mark.skipif(bool(gpu.devices()), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    a = np.ones((8, 16), np.float16)
    with pytest.raises(KernelError, match="there is no GPU to run on"):
        tune(matmul, a, a.T)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (matmul, [(8, 16), (16, 8)]),
        (gated_matmul, [(8, 16), (16, 8), (16, 8)]),
    ],
)
def test_arrays_of_the_host_are_refused(function: Any, arrays: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "absence", lambda: None)
    given = [np.ones(shape, np.float16) for shape in arrays]
    with pytest.raises(ValueError, match=f"`tune` measures `{function.__name__}` on a GPU, and these arrays are in"):
        tune(function, *given)
    assert np.all(np.asarray(matmul(*given[:2])) == 16)  # and runs on the emulator as before


@pytest.mark.parametrize(
    ("choice", "given"),
    [
        (PRODUCTS, (Problem(300, 18944, 3584), False, False)),
        (PRODUCTS, (Problem(300, 4096, 3584, size=1), True, False)),
        (GATED, (Problem(300, 4096, 3584, gated=True),)),
        (choose_grouped, (8, 4096, 2048, 2048)),
    ],
)
def test_functions_have_variants_to_measure(choice: Choice, given: Any) -> None:
    with watched() as asked:
        chosen = choice(*given)
    assert asked == [(choice, given)]
    found = [*choice.candidates(*given)]
    assert len({chosen, *found}) > 3
    assert all(choices.restored(chosen, choices.brief(one)) == one for one in found)


def test_a_large_residual_comes_through_the_ring_of_what_is_chosen() -> None:
    for extents in ((6808, 10128, 104), (300, 18944, 3584), (4096, 4096, 4096)):
        problem = Problem(*extents)
        chosen = PRODUCTS(problem, True, False)
        assert chosen.takes_residuals(problem.layout(chosen))

"""What a measurement decides: order, ratios, what is wrong, and what is kept; most of it without a GPU."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlab import gpu, kernels
from ptxlab.kernels import vector_addition
from ptxlab.measure import Contender, Host, Record, Sized, Work, WrongAnswerError, check, measure
from ptxlab.measure.checking import expect
from ptxlab.measure.fingerprints import Answers
from ptxlab.measure.interleaving import MOST, take_turns, until_steady
from ptxlab.measure.table import as_markdown

WORK = Work(flops=2e12, bytes=1e9, rate="f32")


def record() -> Record:
    contenders = [
        Contender("ours", "variant", [0.2, 0.4, 0.3], WORK, 1e-7, 1e-8),
        Contender("library", "library", [0.1, 0.2, 0.6], WORK, 1e-7, 1e-8),
        Contender("copy", "ceiling", [1e-3, 1e-3, 1e-3], Work(0, 4e9, "f32")),
        Contender("f32 product", "ceiling", [0.1, 0.1, 0.1], Work(4e12, 0, "f32")),
        Contender("odd", "variant", [], WORK, note="takes even sizes only"),
    ]
    machine = {"gpu": "NVIDIA H200", "driver": "580.1", "ptxas": "13.0", "torch": "2.9"}
    return Record("sgemm", "product", "library", "2026-01-02", "abc", machine, [Sized({"n": 8}, WORK, contenders)])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_every_contender_has_every_position_and_comes_after_every_other(count: int) -> None:
    names = "abcdef"[:count]
    seen: list[str] = []
    timers = {name: lambda name=name: seen.append(name) or 1.0 for name in names}
    samples = take_turns(timers, 2 * count)
    rounds = [seen[start : start + count] for start in range(0, len(seen), count)]
    assert {name: len(values) for name, values in samples.items()} == dict.fromkeys(names, 2 * count)
    places = Counter((name, place) for turn in rounds for place, name in enumerate(turn))
    assert places == dict.fromkeys(product(names, range(count)), 2)
    assert Counter(pair for turn in rounds for pair in pairwise(turn)) == dict.fromkeys(permutations(names, 2), 2)


def test_contenders_whose_times_differ_much_take_more_turns() -> None:
    seen: list[str] = []

    def timers(spread: float) -> dict[str, Any]:
        return {name: lambda name=name: seen.append(name) or 1 + spread * (len(seen) % 5) for name in "ab"}

    assert len(until_steady(timers(0.001), 4)["a"]) == 4
    seen.clear()
    assert {len(times) for times in until_steady(timers(0.1), 4).values()} == {4 * MOST}
    assert "".join(seen) == "abbabaab" * MOST


def test_a_ratio_compares_within_rounds() -> None:
    sized = record().sizes[0]
    assert sized.ratio("ours", "library") == pytest.approx(0.5)  # of 0.5, 0.5 and 2


def test_the_nearer_ceiling_counts() -> None:
    sized = record().sizes[0]
    assert sized.of_ceiling(sized["ours"]) == pytest.approx((2 / 0.3) / 40)


def test_a_record_reads_back_as_it_was_written(tmp_path: Path) -> None:
    record().write(tmp_path / "kept" / "sgemm.json")
    assert Record.read(tmp_path / "kept" / "sgemm.json") == record()


def test_text_and_markdown_have_a_row_per_contender() -> None:
    text = str(record()).splitlines()
    assert text[0] == "product, on an NVIDIA H200"
    assert [line.split("  ")[0] for line in text[4:8]] == ["ours", "library", "(copy)", "(f32 product)"]
    assert text[8] == "odd: takes even sizes only"
    assert as_markdown(record()).count("\n| ") == 5


@pytest.mark.parametrize("spoil", [np.nan, 1.001])
def test_a_wrong_answer_is_reported_with_its_place(spoil: float) -> None:
    entry = kernels.entry("vector_addition")
    arrays = entry.arrays(Host(0), n=100)
    expected = expect(np, entry, arrays)
    arrays["c"][:] = expected["c"]
    assert check(np, entry, {"n": 100}, arrays, expected, "ours").relative < 1e-7
    arrays["c"][40] *= spoil
    with pytest.raises(WrongAnswerError, match=r"ours: `c` is wrong: .*; element \(40,\) is"):
        check(np, entry, {"n": 100}, arrays, expected, "ours")


def test_an_answer_that_was_never_written_is_wrong() -> None:
    entry = kernels.entry("vector_addition")
    arrays = entry.arrays(Host(0), n=100)
    with pytest.raises(WrongAnswerError, match="instead of"):
        check(np, entry, {"n": 100}, arrays, expect(np, entry, arrays), "no contender")


class Tensor(np.ndarray):
    """As much of a tensor as answers need."""

    def clone(self) -> "Tensor":
        return self.copy()


def answers_of(written: list[float]) -> Answers:
    """A contender that is right when it is checked, and writes these numbers when it is timed."""
    arrays = {"c": np.zeros(3000, np.float32).view(Tensor)}
    answers = Answers(np, "ours", [arrays], ["c"], np.ones(1))
    for value in [1.0, *written]:
        answers.spoil(1)
        assert np.isnan(arrays["c"]).all()
        answers.keep(0, lambda value=value: arrays["c"].fill(value))()
        answers.take(1) if answers.checked else answers.keep_checked()
    return answers


def test_answers_of_timed_calls_are_compared_with_the_checked_one() -> None:
    assert answers_of([1.0, 1.0]).compare(0) == (2, 2)
    assert answers_of([1.0, 1.0001]).compare(1e-3) == (2, 1)  # other bits, as near as is allowed
    for wrong in (np.nan, 1.1):
        with pytest.raises(WrongAnswerError, match="ours: `c` was right when it was checked, and not when timed"):
            answers_of([1.0, wrong]).compare(1e-3)
        with pytest.raises(WrongAnswerError, match="not when timed"):
            answers_of([wrong, 1.0]).compare(1e-3)  # also where another contender wrote the right answer afterwards


def test_what_a_library_returns_is_compared_too() -> None:
    answers = Answers(np, "ours", [{"c": np.zeros(3).view(Tensor)}], ["c"], np.ones(1))
    answers.keep(0, lambda: {"c": np.ones(3).view(Tensor)})()
    answers.keep_checked()
    answers.keep(0, lambda: {"c": np.full(3, 2.0).view(Tensor)})()
    answers.take(1)
    with pytest.raises(WrongAnswerError, match="not when timed"):
        answers.compare(1e-3)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
def test_a_call_that_writes_nothing_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("ptxlab.measure.session._SHORT", 1.0)  # where others use the GPU, too, nothing is short

    def once(torch: Any, a: Any, b: Any, c: Any) -> Any:
        def run() -> None:
            if not torch.cuda.is_current_stream_capturing():  # short runs are timed as a graph, which is then empty
                torch.add(a, b, out=c)

        return run

    lazy = replace(vector_addition.entry, libraries={"once": once})
    with pytest.raises(WrongAnswerError, match="once: `c` was right when it was checked, and not when timed"):
        measure("sum", lazy, [{"n": 1000}], rounds=3)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_what_a_library_returns_is_its_answer() -> None:
    pytest.importorskip("torch")
    entry = vector_addition.entry
    right = replace(entry, libraries={"sum": lambda torch, a, b, c: lambda: {"c": a + b}})
    record = measure("sum", right, [{"n": 1000}], rounds=3)
    samples, hot = record.sizes[0]["sum"].samples, record.sizes[0]["sum"].hot
    assert len(hot) == 3
    assert len(samples) in (3, 6, 9, 12)  # more where times differ much, as where others use the GPU, too
    assert record.sizes[0]["sum"].same == record.sizes[0]["sum"].compared > 3
    wrong = replace(entry, libraries={"difference": lambda torch, a, b, c: lambda: {"c": a - b}})
    with pytest.raises(WrongAnswerError, match="difference: `c` is wrong"):
        measure("sum", wrong, [{"n": 1000}], rounds=3)

"""The program that compares the emulator with a GPU, tried with the emulator on both sides."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.table import forms
from tests.gpu import agreement
from tests.gpu.agreement import Question, examine, is_examined
from tests.gpu.values import draw, floats, integers, member_masks
from tests.isa.cases import all_operands
from tests.isa.kernels import registers


def question(syntax: str, **more: int) -> Question:
    number = next(number for number, form in enumerate(forms()) if form.syntax == syntax)
    return Question(**{"number": number, "values": 1000, "tiles": 4, "most": 3, "seed": 0, "other": "cpu"} | more)


@pytest.mark.parametrize("syntax", ["szext.mode.type d, a, b", "rcp.rnd{.ftz}.f32 d, a", "prmt.b32{.mode} d, a, b, c"])
def test_a_form_agrees_with_itself(syntax: str) -> None:
    found = examine(question(syntax))
    assert found.values >= 1000
    assert (found.mismatches, found.problems) == (0, [])


def test_a_difference_is_counted_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = ptxlab.ir.Function.launch

    def wrong(self, *given, **how):
        result = launch(self, *given, **how)
        if not how.get("workers"):  # the side that replaces the GPU
            results = how["args"][1][0, :, 0]
            results[np.isfinite(results.astype(np.uint32).view(np.float32)).argmax()] ^= 1  # a NaN has no distance
        return result

    monkeypatch.setattr(ptxlab.ir.Function, "launch", wrong)
    found = examine(question("ex2.approx{.ftz}.f32 d, a"))
    assert (found.mismatches, found.largest_ulps, found.approximate) == (1, 1, True)
    assert " emulated, " in found.shown[0]
    assert "(1 of 512)" in found.shown[0]


def test_a_part_is_merged_into_the_evidence(tmp_path: Path) -> None:
    def write(merge: bool, *tallies: agreement.Tally) -> Any:
        options = Namespace(values=9, tiles=1, most=1, seed=0, only="", commit="abc", merge=merge, output=output)
        agreement.write(options, tallies, 1.0)
        return json.loads(output.read_text(encoding="utf-8"))

    output = tmp_path / "evidence.json"
    first = agreement.Tally("abs d, a", "integer", "abs.s32", 1, 9, 2)
    other = agreement.Tally("ex2.approx d, a", "half", "ex2.approx.f16", 1, 9, 5, approximate=True, shown=["a", "b"])
    found = write(False, first, other, other)
    assert (found["values"], found["mismatches"]) == (27, 2)
    found = write(True, agreement.Tally("abs d, a", "integer", "abs.s32", 1, 100))
    assert (found["values"], found["mismatches"], len(found["merged"])) == (118, 0, 1)
    assert [(row["chapter"], row["values"]) for row in found["forms"]] == [("half", 9), ("half", 9), ("integer", 100)]
    assert [row.get("shown") for row in found["forms"]] == [["a", "b"], ["a", "b"], None]


def test_most_forms_are_examined() -> None:
    chapters = {form.chapter for form in forms() if is_examined(form)}
    assert chapters == set(agreement.CHAPTERS)
    assert sum(map(is_examined, forms())) >= 360


def test_values_reach_the_edges() -> None:
    rng = np.random.default_rng(0)
    found = integers(rng, 32, 10_000)
    assert {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF} <= set(found.tolist())
    assert int(found.max()) < 1 << 32
    singles = floats(rng, ptxlab.numbers.F32, 10_000)
    numbers = singles.astype(np.uint32).view(np.float32)
    assert np.isnan(numbers).any()
    assert np.isinf(numbers).any()
    assert ((numbers != 0) & (np.abs(numbers) < 2.0**-126)).any()
    masks = member_masks(rng, 320)
    lanes = np.arange(320, dtype=np.uint64) % np.uint64(32)
    assert (masks >> lanes & np.uint64(1)).all(), "every lane is among those it names"


def test_operands_stay_within_their_limits() -> None:
    form = next(form for form in forms() if form.syntax == "bfe.type d, a, b, c")
    group = agreement.make_group(form, next(iter(form.spellings())), 0)
    assert [one.name for one in registers(group, "read")] == ["a", "b", "c"]
    for one in all_operands(form, group.first.m):
        if one.name in ("b", "c"):
            low, _ = draw(np.random.default_rng(0), one, group.first.m, "integer", "bfe", 1000)
            assert int(low.max()) == 255

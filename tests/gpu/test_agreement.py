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
        if not how.get("workers"):  # the side that stands for the GPU

"""Functions of NumPy and torch as references, and what of them has no rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.equal.kernels import MOVED, PLAIN, STORE, rows

SAME = {
    "methods of torch": lambda x: x.softmax(dim=-1),
    "steps of torch": lambda x: (x - x.amax(dim=1, keepdim=True)).exp() / (x - x.amax(1, True)).exp().sum(1, True),
    "by columns": lambda x: x.t().softmax(dim=0).t(),
}


@pytest.mark.parametrize("name", SAME)
def test_functions_of_torch_need_no_torch(name: str) -> None:
    assert ptxlab.equal(rows(PLAIN), SAME[name]).level == "same-function"


@pytest.mark.parametrize("reference", [lambda x: x.softmax(dim=0), lambda x: x.exp() / x.exp().sum()])
def test_another_axis_is_different(reference: Callable[[Any], Any]) -> None:
    assert ptxlab.equal(rows(PLAIN), reference).level == "different"


def test_functions_of_torch_itself() -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    assert ptxlab.equal(rows(PLAIN), lambda x: torch.softmax(x, dim=-1)).level == "same-function"
    assert ptxlab.equal(rows(PLAIN), lambda x: functional.softmax(x, dim=0)).level == "different"
    assert ptxlab.equal(rows(PLAIN), lambda x: torch.ones(6) * functional.softmax(x, -1)).level == "same-function"
    with pytest.raises(TypeError, match=r"`torch\.sort` of an input has no rule"):
        ptxlab.equal(rows(PLAIN), lambda x: torch.sort(x))


def test_what_would_change_a_reduction_is_not_passed_over() -> None:
    with pytest.raises(TypeError, match="`where` of a reduction of an input has no rule"):
        ptxlab.equal(rows(PLAIN), lambda x: x.sum(-1, keepdims=True, where=[True, False, True]))
    with pytest.raises(AttributeError, match="`argsort` of an input has no rule"):
        ptxlab.equal(rows(PLAIN), lambda x: x.argsort())


@pytest.mark.parametrize(("half", "ddof"), [("0f3E800000", 0), ("0f3F000000", 1)])
def test_variances_divide_by_what_they_say(half: str, ddof: int) -> None:
    body = f"""ld.global.f32 %f2, [%rd1+4];
    sub.f32 %f1, %f1, %f2;
    mul.f32 %f1, %f1, %f1;
    mul.f32 %f1, %f1, {half};
    {STORE}"""
    kernel = ptxlab.parse(MOVED.replace(STORE, body).replace("%f<2>", "%f<3>"), name="move.ptx")["move"]
    arrays = [np.ones(2, np.float32), np.zeros(1, np.float32)]
    found = [ptxlab.equal(kernel, variance, arrays, block=1).level for variance in
             (lambda x: np.var(x, ddof=0), lambda x: np.var(x, ddof=1))]  # fmt: skip
    assert [level == "same-function" for level in found] == [ddof == 0, ddof == 1]

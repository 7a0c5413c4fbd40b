"""Calls of functions that launch kernels: what is kept of a first call, and what a later one does with it."""

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ptxlab import kernels
from ptxlab.ops import calls, operators
from ptxlab.ops.callees import Argument, CalledKernel, calls_of
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.matrices import Matrix
from ptxlab.ops.operators import Gradient, Operator
from tests.ops.fake_torch import Tensor, be_torch


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The addresses that launches were given, without a GPU and without torch."""
    found: list[list[int]] = []

    class Ready:
        def __init__(self, gpu: int, launches: Any, workspace: Any) -> None:
            self.gpu, self.launches = gpu, launches

        def start(self, addresses: list[int], stream: int) -> None:
            for _, changing, _ in self.launches:
                found.append([addresses[number] for _, number in changing])

    monkeypatch.setattr(calls, "Ready", Ready)
    monkeypatch.setattr(operators, "_known", {})
    be_torch(monkeypatch)
    return found


def matrix(one: Tensor) -> Matrix:
    return Matrix(one.address, one.shape, one.stride(), "f32", 0, one)


def operator(name: str = "doubling", gradient: Gradient | None = None) -> Operator:
    found = Operator(name, "(Tensor x) -> Tensor", lambda x: x, lambda x: x, gradient)
    found.is_recording = sys.modules["torch"].is_grad_enabled  # as `define` does
    return found


class Doubling:
    """A function of one array, whose result has twice as many elements; it counts how often it is prepared."""

    def __init__(self, gradient: Gradient | None = None) -> None:
        self.prepared = 0
        self.calls = Calls(self.prepare, operator(gradient=gradient))

    def prepare(self, read: Sequence[Any], written: Sequence[Any], how: Any) -> Call:
        self.prepared += 1
        if written[0] is not None and written[0].address == read[0].address:
            raise ValueError("`out` overlaps `x`")
        made = read[0].new_empty((2 * read[0].shape[0],)) if written[0] is None else written[0]
        scratch = [16, 32] if how == "in two steps" else []
        launch: Any = SimpleNamespace()
        steps = [BoundLaunch(launch, [(0, 0), (1, 1)])] + (
            [BoundLaunch(launch, [(5, 3), (6, 2), (0, 0)])] if scratch else []
        )
        return Call([made], steps, [matrix(read[0]), matrix(made)], scratch=scratch)


def test_a_call_is_prepared_once_for_each_form_and_option(started: list[list[int]]) -> None:
    function = Doubling()
    for address in (0x100, 0x200):
        (made,) = function.calls.compute([Tensor(address, 8)])
        assert made.shape == (16,)
        assert started[-1] == [address, made.address]
    assert function.prepared == 1
    function.calls([Tensor(0x104, 8)])  # of another alignment
    function.calls([Tensor(0x100, 9)])
    function.calls([Tensor(0x100, 8)], [None], "other")
    assert function.prepared == 4


def test_steps_share_memory_that_each_call_has_anew(started: list[list[int]]) -> None:
    function = Doubling()
    seen = set()
    for _ in range(3):
        (made,) = function.calls.compute([Tensor(0x100, 8)], [None], "in two steps")
        assert started[-2] == [0x100, made.address]
        second, first, read = started[-1]
        assert (second - first, read) == (16, 0x100)
        seen.add(first)
    assert function.prepared == 1
    assert len(seen) == 3


def test_a_result_that_is_given_over_what_is_read_is_prepared_again_and_refused(started: list[list[int]]) -> None:
    function = Doubling()
    out = Tensor(0x100, 16)
    assert function.calls.compute([Tensor(0x200, 8)], [out])[0] is out
    assert function.calls.compute([Tensor(0x140, 8)], [out])[0] is out  # begins where the result ends
    assert function.prepared == 1
    function.calls([Tensor(0x130, 8)], [out])
    assert function.prepared == 2
    with pytest.raises(ValueError, match="`out` overlaps `x`"):
        function.calls([Tensor(0x100, 8)], [out])


def test_what_needs_a_gradient_is_for_the_operator_or_refused(started: list[list[int]]) -> None:
    given = [Tensor(0x100, 8, requires_grad=True)]
    torch: Any = sys.modules["torch"]
    plain, differentiable = Doubling(), Doubling(Gradient(lambda ctx, grad: grad, lambda ctx, inputs, output: None))
    for is_ready in (False, True):
        with pytest.raises(ValueError, match="`doubling` has no gradient: call it under"):
            plain.calls(given)
        assert differentiable.calls(given) is None
        with pytest.raises(ValueError, match="a result in `out` has no gradient: leave it out"):
            differentiable.calls(given, [Tensor(0x1000, 16)])
        assert len(started) == 4 * is_ready
        torch.is_recording = False
        for function in (plain, differentiable):
            assert function.calls(given) is not None
            assert function.calls(given, [Tensor(0x1000, 16)]) is not None
        torch.is_recording = True


def test_a_declared_function_may_write_in_place_what_it_reads_there(started: list[list[int]]) -> None:
    declared = CalledKernel(
        {"x": Argument(("f32",), 0)},
        {"out": Argument(("f32",), 1, in_place="x")},
        lambda x, eps: None,
        lambda x, eps: [(x.shape, x.type)],
        lambda x, out, eps: SimpleNamespace(),  # type: ignore[arg-type,return-value]
    )
    function = calls_of(declared, operator())
    for x, out in ((0x100, 0x200), (0x300, 0x400), (0x500, 0x500), (0x600, 0x600)):
        function([Tensor(x, 8)], [Tensor(out, 8)], (1.0,))
        assert started[-1] == [x, out]
    assert len(function.kept) == 1
    with pytest.raises(ValueError, match="`out` overlaps `x`: what is written would be read"):
        function([Tensor(0x700, 8)], [Tensor(0x710, 8)], (1.0,))


def test_a_mean_is_made_by_launches_alone(started: list[list[int]]) -> None:
    """A graph that is being recorded takes nothing from the host: the tensors here cannot be assigned to."""
    x, targets = Tensor(0x1000, 4, 8), Tensor(0x2000, 4, dtype="torch.int64")
    for _ in range(2):
        mean = kernels.cross_entropy(x, targets)
    rows, total = started[-2:]
    assert mean.shape == ()
    assert (rows[:2], total[1:3]) == ([x.address, targets.address], [targets.address, mean.address])

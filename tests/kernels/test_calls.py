"""Calls of functions that launch kernels: what is kept of a first call, and what a later one does with it."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ptxlab.kernels.functions import calls
from ptxlab.kernels.functions.callees import Argument, Callee
from ptxlab.kernels.functions.calls import Call, Calls
from ptxlab.kernels.functions.matrices import Matrix, dense


class Tensor:
    """What calls ask of a tensor on a GPU."""

    is_cuda = True
    device = "cuda:0"
    made = 0x10_000

    def __init__(self, address: int, *shape: int, dtype: str = "torch.float32") -> None:
        self.address, self.shape, self.dtype = address, shape, dtype

    def stride(self) -> tuple[int, ...]:
        return dense(self.shape)

    def data_ptr(self) -> int:
        return self.address

    def element_size(self) -> int:
        return 4

    def get_device(self) -> int:
        return 0

    def new_empty(self, shape: tuple[int, ...], dtype: str | None = None) -> "Tensor":
        Tensor.made += 0x1000
        return Tensor(Tensor.made, *shape, dtype=dtype or self.dtype)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The addresses that launches were given, without a GPU."""
    found: list[list[int]] = []

    class Ready:
        def __init__(self, launch: Any, gpu: int, changing: Any, bytes: Sequence[int], written: int, _: Any) -> None:
            self.gpu, self.bytes = gpu, bytes

        def start(self, addresses: list[int], stream: int) -> None:
            found.append(addresses)

    monkeypatch.setattr(calls, "Ready", Ready)
    monkeypatch.setattr(calls, "stream_of", lambda array, gpu: 0)
    return found


def matrix(one: Tensor) -> Matrix:
    return Matrix(one.address, one.shape, one.stride(), "f32", 0, one)


class Doubling:
    """A function of one array, whose result has twice as many elements; it counts how often it is prepared."""

    def __init__(self) -> None:
        self.prepared = 0
        self.calls = Calls(self.prepare)

    def prepare(self, read: Sequence[Any], written: Sequence[Any], how: Any) -> Call:
        self.prepared += 1
        if written[0] is not None and written[0].address == read[0].address:
            raise ValueError("`out` overlaps `x`")
        made = read[0].new_empty((2 * read[0].shape[0],)) if written[0] is None else written[0]
        arrays = [matrix(read[0]), matrix(made)]
        return Call([made], SimpleNamespace(), arrays, [0, 1], is_kept=how != "copied")  # type: ignore[arg-type]


def test_a_call_is_prepared_once_for_each_form_and_option(started: list[list[int]]) -> None:
    function = Doubling()
    for address in (0x100, 0x200):
        (made,) = function.calls([Tensor(address, 8)])
        assert made.shape == (16,)
        assert started[-1] == [address, made.address]
    assert function.prepared == 1
    function.calls([Tensor(0x104, 8)])  # of another alignment
    function.calls([Tensor(0x100, 9)])
    function.calls([Tensor(0x100, 8)], [None], "other")
    assert function.prepared == 4
    for _ in range(2):
        function.calls([Tensor(0x100, 8)], [None], "copied")
    assert function.prepared == 6  # what reads a copy is not kept


def test_a_result_that_is_given_over_what_is_read_is_prepared_again_and_refused(started: list[list[int]]) -> None:
    function = Doubling()
    out = Tensor(0x100, 16)
    assert function.calls([Tensor(0x200, 8)], [out])[0] is out
    assert function.calls([Tensor(0x140, 8)], [out])[0] is out  # begins where the result ends
    assert function.prepared == 1
    function.calls([Tensor(0x130, 8)], [out])
    assert function.prepared == 2
    with pytest.raises(ValueError, match="`out` overlaps `x`"):
        function.calls([Tensor(0x100, 8)], [out])


def test_a_declared_function_may_write_in_place_what_it_reads_there(started: list[list[int]]) -> None:
    arguments = {"x": Argument(("f32",)), "out": Argument(("f32",), is_written=True, in_place="x")}
    function = Callee(arguments, lambda *given, **how: SimpleNamespace(), lambda *given, **how: None)  # type: ignore
    for x, out in ((0x100, 0x200), (0x300, 0x400), (0x500, 0x500), (0x600, 0x600)):
        function.start([Tensor(x, 8), Tensor(out, 8)], eps=1.0)
        assert started[-1] == [x, out]
    assert len(function.kept) == 2
    with pytest.raises(ValueError, match="`out` overlaps `x`: what is written would be read"):
        function.start([Tensor(0x700, 8), Tensor(0x710, 8)], eps=1.0)

"""Tensors on a GPU as functions see them, and as much of torch as they call; without either."""

import sys
from collections.abc import Iterator
from math import prod
from types import SimpleNamespace
from typing import Any

import pytest

from ptxlab.ops import calls, matrices
from ptxlab.ops.matrices import dense
from ptxlab.ops.ready import Workspace


class Tensor:
    """What calls ask of a tensor on a GPU."""

    is_cuda = True
    device: Any = "cuda:0"
    made = 0x10_000

    def __init__(self, address: int, *shape: int, dtype: str = "torch.float32", requires_grad: bool = False) -> None:
        self.address, self.shape, self.dtype, self.requires_grad = address, shape, dtype, requires_grad

    @property
    def T(self) -> "Tensor":  # noqa: N802
        return self  # it is asked for its numbers only where they are copied

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


class Zeros(Tensor):
    """A tensor of bytes that are 0."""

    @property
    def nbytes(self) -> int:
        return prod(self.shape)

    def reshape(self, *shape: int) -> "Zeros":
        return Zeros(self.address, *shape, dtype=self.dtype)

    def __getitem__(self, at: Any) -> int:
        return 0

    def __iter__(self) -> Iterator[Tensor]:
        rows, columns = self.shape
        return (Zeros(self.address + columns * row, columns, dtype=self.dtype) for row in range(rows))


class Torch(SimpleNamespace):
    """What calls ask of torch."""

    uint8, float32, bfloat16 = "torch.uint8", "torch.float32", "torch.bfloat16"
    is_recording = True
    cuda = SimpleNamespace(is_current_stream_capturing=lambda: False)
    _C = SimpleNamespace()

    def is_grad_enabled(self) -> bool:
        return self.is_recording

    def zeros(self, length: int, dtype: str, device: Any) -> Tensor:
        return Zeros(Tensor(0).new_empty((length,)).address, length, dtype=dtype)

    def empty_like(self, like: Tensor) -> Tensor:
        return like.new_empty(like.shape)

    def empty_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, device: Any) -> Tensor:
        assert strides == dense(shape)
        return Tensor(0, dtype=dtype).new_empty(shape)


def be_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the place of torch: its stream is 0, it has no operators, and its memory is not a GPU's: keep none of it."""
    for name in ("kept", "recorded", "spare"):
        monkeypatch.setattr(Workspace, name, {})
    monkeypatch.setattr(calls, "stream_of", lambda array, gpu: 0)
    monkeypatch.setattr(matrices, "streams_of_torch", lambda: lambda gpu: 0)
    monkeypatch.setattr(calls, "has_no_memory", lambda tensor: False)
    monkeypatch.setattr(calls, "register", lambda: True)
    monkeypatch.setattr(calls, "describe_tensors", lambda: None)
    monkeypatch.setitem(sys.modules, "torch", Torch())

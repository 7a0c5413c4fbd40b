"""Functions of `ptxlab.kernels` on tensors of other devices and other GPUs: what is refused, where work starts."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import ptxlab
from ptxlab import kernels
from tests.gpu.driver_of_python import Driver
from tests.ops.fake_torch import Tensor, be_torch


class OnHost(Tensor):
    is_cuda = False
    device: Any = SimpleNamespace(type="mps")

    def get_device(self) -> int:
        return -1


class OnSecond(Tensor):
    device = "cuda:1"

    def get_device(self) -> int:
        return 1


def half(address: int, *shape: int, kind: type[Tensor] = Tensor) -> Tensor:
    return kind(address, *shape, dtype="torch.bfloat16")


def test_arrays_on_different_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    be_torch(monkeypatch)
    x, w = half(0x1000, 8, 64), half(0x2000, 64, kind=OnSecond)
    calls: list[Callable[[], Any]] = [
        lambda: kernels.rms_norm(x, w),
        lambda: kernels.layer_norm(x, half(0x3000, 64), w),
        lambda: kernels.softmax(x, out=half(0x3000, 8, 64, kind=OnSecond)),
        lambda: kernels.matmul(x, half(0x3000, 64, 8, kind=OnSecond)),
        lambda: kernels.gated_matmul(x, half(0x3000, 64, 8), half(0x4000, 64, 8, kind=OnSecond)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"` is on GPU 1, and `[ax]` on GPU 0"):
            call()
    with pytest.raises(ValueError, match="only CUDA and the CPU are supported"):
        kernels.softmax(half(0x1000, 8, 64, kind=OnHost))


def test_arrays_on_the_second_of_two_gpus(fake: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    be_torch(monkeypatch)
    asked: list[int] = []
    monkeypatch.setattr(Driver, "_cuDeviceGetCount", lambda self: (2,))

    def get(self: Driver, number: int) -> tuple[int]:
        asked.append(number)
        return (number,)

    monkeypatch.setattr(Driver, "_cuDeviceGet", get, raising=False)
    monkeypatch.setattr(Driver, "_cuPointerGetAttribute", lambda self, name, address: (1,), raising=False)
    x, out = half(0x1000, 8, 64, kind=OnSecond), half(0x2000, 8, 64, kind=OnSecond)
    fake.kernel = None
    fake.parameters = 4
    for _ in range(2):
        kernels.softmax(x, out=out)
    assert set(asked) == {1}
    assert len(fake.configs) == 2


def test_a_gpu_that_is_not_of_hopper(fake: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    be_torch(monkeypatch)
    monkeypatch.setattr(Driver, "_cuDeviceGetAttribute", lambda self, name, device: (8 if "MAJOR" in name else 0,))
    a, q = half(0x1000, 64, 64), half(0x1000000, 1, 2, 128, 64)
    calls: list[Callable[[], Any]] = [lambda: kernels.matmul(a, a), lambda: kernels.attention(q, q, q)]
    for call in calls:
        for _ in range(2):
            with pytest.raises(ptxlab.PtxError) as raised:
                call()
            assert raised.value.diagnostics[0].code == "wrong-target"

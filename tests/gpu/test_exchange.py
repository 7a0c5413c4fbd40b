"""The forms of tensors as machine code finds them: what differs in them, and what is left to Python; without torch."""

import ctypes
import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxlab.gpu.exchange import Describe, describing

CUDA = 2  # DLPack's number of such devices
FIELDS = struct.Struct("<QiiiBBHQQQ")  # of `DLTensor`


class Tensor:
    """A tensor; its description has pointers to extents and strides, which are here."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], device: int = 0) -> None:
        self.extents = np.array([*shape, *strides], np.int64)
        first, size = self.extents.ctypes.data, 8 * len(shape)
        self.description = FIELDS.pack(address, CUDA, device, len(shape), 4, 16, 1, first, first + size, 0)


class Parameter(Tensor):
    pass


class Other(Tensor):
    pass


def find(given: Any, found: int) -> int:
    if given.extents is None:
        return -1
    ctypes.memmove(found, given.description, FIELDS.size)
    return 0


@pytest.fixture(scope="module")
def describe() -> Describe:
    function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(find)
    table = (ctypes.c_uint64 * 6)(1 | 3 << 32, 0, 0, 0, 0, ctypes.cast(function, ctypes.c_void_p).value or 0)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = make(ctypes.addressof(table), b"dlpack_exchange_api", None)
    Tensor.__dlpack_c_exchange_api__ = capsule  # type: ignore[attr-defined]
    Tensor.keeps = function, table  # type: ignore[attr-defined]
    found = describing(SimpleNamespace(Tensor=Tensor, nn=SimpleNamespace(Parameter=Parameter)))
    assert found is not None
    return found


def forms(describe: Describe, *tensors: Any) -> Any:
    addresses: list[int] = []
    return describe([*tensors], addresses), addresses


def test_equal_forms_are_equal_and_others_are_not(describe: Describe) -> None:
    one = Tensor(0x1000, (4, 8), (8, 1))
    key, addresses = forms(describe, one, None, Parameter(0x2000, (8,), (1,)))
    assert addresses == [0x1000, 0, 0x2000]
    assert forms(describe, Tensor(0x3000, (4, 8), (8, 1)), None, Tensor(0x4010, (8,), (1,))) == (
        key,
        [0x3000, 0, 0x4010],
    )
    others = [
        Tensor(0x1008, (4, 8), (8, 1)),
        Tensor(0x1000, (4, 8), (1, 4)),
        Tensor(0x1000, (8, 4), (8, 1)),
        Tensor(0x1000, (4, 8), (8, 1), device=1),
        Tensor(0x1000, (4, 8, 1), (8, 1, 1)),
        Tensor(0x1000, (), ()),
        None,
    ]
    found = {forms(describe, each)[0] for each in (one, *others)}
    assert len(found) == len(others) + 1
    assert all(found)


def test_what_is_left_to_python(describe: Describe) -> None:
    one = Tensor(0x1000, (4,), (1,))
    many = Tensor(0x1000, (1,) * 9, (1,) * 9)
    none = Tensor(0x1000, (4,), (1,))
    none.extents = None  # type: ignore[assignment]
    for given in ("text", np.zeros(3), Other(0x1000, (4,), (1,)), many, none):
        assert forms(describe, one, given)[0] == 0
    assert forms(describe, *[one] * 200)[0] == 0


def test_a_version_without_the_table() -> None:
    assert describing(SimpleNamespace(Tensor=object)) is None

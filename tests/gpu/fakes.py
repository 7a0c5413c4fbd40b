"""Fakes of what a GPU's libraries hand over: arrays, and a launch of the kernel that the Python driver runs."""

import ctypes

import numpy as np

import ptxlab
from ptxlab.device.result import Result
from tests.gpu import programs


def saxpy(places: list[int], config: object) -> None:
    """What the kernel of that name does, by hand."""
    x, y = (ctypes.c_uint64.from_address(place).value for place in places[:2])
    factor = ctypes.c_float.from_address(places[2]).value
    count = ctypes.c_uint32.from_address(places[3]).value
    given, changed = ((ctypes.c_float * count).from_address(at) for at in (x, y))
    for index in range(count):
        changed[index] += factor * given[index]


def launch(x: object, y: object, count: int = 8, **how: object) -> Result:
    module = ptxlab.parse(programs.SAXPY, name="saxpy.ptx")
    return module["saxpy"].launch(1, 32, [x, y, 2.0, count], **{"device": "cuda"} | how)


def ramp() -> np.ndarray:
    return np.arange(8, dtype=np.float32)


class OnGpu:
    """An array of a library that has the CUDA array interface."""

    def __init__(self, array: np.ndarray, **more: object) -> None:
        self.array = array
        interface = array.__array_interface__
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": "<f4", "data": interface["data"], "version": 3, **more
        }  # fmt: skip


class Tensor:
    """As much of a tensor of torch as is asked for."""

    def __init__(self, array: np.ndarray, is_cuda: bool) -> None:
        self.array, self.is_cuda, self.shape = array, is_cuda, array.shape
        self.device = type("Device", (), {"index": 0, "type": "cuda" if is_cuda else "cpu"})()

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def get_device(self) -> int:
        return 0 if self.is_cuda else -1

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

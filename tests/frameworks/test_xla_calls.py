"""Python functions that XLA calls: with as much of JAX and XLA as that takes, and with JAX where it is installed."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxlab.frameworks import xla_abi as abi
from ptxlab.frameworks import xla_calls
from ptxlab.gpu import driver
from tests.gpu.driver_of_python import Driver


class Xla:
    """What calls a handler as XLA does."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}
        self.errors: list[tuple[str, int]] = []

        self.create_error = abi.HANDLER(self.note_error)
        self.api = abi.Api()
        self.api.version.major, self.api.version.minor = 0, 3
        self.api.create_error = ctypes.cast(self.create_error, ctypes.c_void_p)

    def note_error(self, address: int) -> int:
        given = abi.Error.from_address(address)
        self.errors.append((given.message.decode(), given.code))
        return 0

    def register(self, name: str, handler: Any, platform: str) -> None:
        self.handlers[platform] = abi.HANDLER(handler.value)
        metadata = abi.Metadata(ctypes.sizeof(abi.Metadata))
        metadata.version.minor = -1
        extension = abi.MetadataExtension(ctypes.sizeof(abi.MetadataExtension), 1, None, ctypes.pointer(metadata))
        frame = abi.Frame()
        frame.api, frame.extensions = ctypes.pointer(self.api), ctypes.addressof(extension)
        assert self.handlers[platform](ctypes.addressof(frame)) is None
        assert (metadata.version.major, metadata.version.minor, metadata.traits) == (0, 3, 0)

    def call(self, results: Any, arrays: tuple[Any, ...], function: Any) -> Any:
        made = [np.zeros(one.shape, one.dtype) for one in results]
        kinds = {name: number for number, name in abi.TYPES.items()}
        kept: list[Any] = []

        def values(given: Any) -> abi.Values:
            buffers = []
            for one in given:
                extents = (ctypes.c_int64 * one.ndim)(*one.shape)
                buffers.append(abi.Buffer(kinds[one.dtype.name], one.ctypes.data, one.ndim, extents))
                kept.append(extents)
            addresses = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
            kept.extend([buffers, addresses])
            return abi.Values(len(buffers), None, addresses)

        scalar = abi.Scalar(5, ctypes.pointer(ctypes.c_int64(int(function))))
        attributes = abi.Attributes(1, None, None, (ctypes.c_void_p * 1)(ctypes.addressof(scalar)))
        frame = abi.Frame(ctypes.pointer(self.api), None, abi.EXECUTE, values(arrays), values(made), attributes)
        self.handlers["cpu"](ctypes.addressof(frame))
        return made


@pytest.fixture
def xla(monkeypatch: pytest.MonkeyPatch) -> Iterator[Xla]:
    made, module = Xla(), ModuleType("jax")
    module.__version__ = "0.10.2"  # type: ignore[attr-defined]
    module.ffi = SimpleNamespace(  # type: ignore[attr-defined]
        pycapsule=lambda pointer: pointer,
        register_ffi_target=made.register,
        ffi_call=lambda target, results, vmap_method: lambda *arrays, function: made.call(results, arrays, function),
    )
    monkeypatch.setitem(sys.modules, "jax", module)
    xla_calls._registered.cache_clear()
    yield made
    xla_calls._registered.cache_clear()


def test_a_function_is_given_the_memory_of_arguments_and_results(xla: Xla) -> None:
    def add(x: Any, y: Any, out: Any, more: Any, times: int) -> None:
        out[...] = times * x + y
        more[...] = x.sum()

    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    out, more = xla_calls.operation(add, [x, np.zeros((), np.int32)], [("times", 3)])(x, y)
    np.testing.assert_array_equal(out, 3 * x + 1)
    assert (more.shape, int(more)) == ((), 15)
    assert sorted(xla.handlers) == ["CUDA", "cpu"]
    assert not xla.errors


def test_a_type_of_ml_dtypes_and_an_array_without_elements(xla: Xla) -> None:
    import ml_dtypes

    def double(x: Any, y: Any) -> None:
        y[...] = 2 * x

    for given in (np.arange(4).astype(ml_dtypes.bfloat16), np.zeros((0, 3), np.float16)):
        (found,) = xla_calls.operation(double, [given])(given)
        assert found.dtype == given.dtype
        np.testing.assert_array_equal(found, 2 * given)


@pytest.mark.parametrize(
    ("problem", "code"), [(ValueError("`x` is odd"), abi.INVALID_ARGUMENT), (KeyError("inside"), abi.INTERNAL)]
)
def test_what_is_raised_is_an_error_of_xla(xla: Xla, problem: Exception, code: int) -> None:
    def fail(x: Any, y: Any) -> None:
        raise problem

    x = np.zeros(1, np.float32)
    xla_calls.operation(fail, [x])(x)
    ((message, found),) = xla.errors
    assert found == code
    assert str(problem) in message


def test_elements_of_an_array_on_a_gpu_are_set_in_the_order_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, asked = Driver(), []
    gpu.cuMemcpyDtoDAsync = lambda *given: asked.append(given) or (gpu.CUresult.CUDA_SUCCESS, 0)  # type: ignore
    monkeypatch.setattr(driver, "_open", lambda: gpu)
    monkeypatch.setattr(driver, "_contexts", {})
    call: Any = SimpleNamespace(gpu=0, stream=7)
    x, out = (xla_calls.XlaArray(address, (4, 8), np.float32, call) for address in (0x1000, 0x2000))
    out[...] = x
    out[1] = x[2]
    assert asked == [(0x2000, 0x1000, 128, 7), (0x2020, 0x1040, 32, 7)]
    with pytest.raises(ValueError, match=r"an array of \(4, 8\) is not copied to one of \(8,\)"):
        out[0] = x
    with pytest.raises(ValueError, match="the array has gaps"):
        out.T[0] = x.T[0]
    with pytest.raises(TypeError, match="takes the elements of another such array, not 1"):
        out[...] = 1


def test_arrays_of_a_gpu_are_addresses_with_extents() -> None:
    call: Any = SimpleNamespace(gpu=1, stream=7)
    array = xla_calls.XlaArray(0x1000, (2, 3, 4), np.float16, call)
    assert (array.stride(), array.size, array.nbytes, array.get_device()) == ((12, 4, 1), 24, 48, 1)
    assert (array[1].data_ptr(), array[1].T.shape, array[1].T.stride()) == (0x1000 + 24, (4, 3), (1, 4))
    assert array.reshape(-1, 4).shape == (6, 4)
    interface = array.__cuda_array_interface__
    assert (interface["shape"], interface["data"], interface["stream"]) == ((48,), (0x1000, False), 7)
    with pytest.raises(ValueError, match="can't have the extents"):
        array[0].T.reshape(12)


def test_an_array_of_a_gpu_is_filled_on_the_stream_of_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(xla_calls, "current", lambda gpu: nullcontext())
    monkeypatch.setattr(xla_calls, "call", lambda *given: asked.append(given))
    call: Any = SimpleNamespace(gpu=1, stream=7)
    xla_calls.XlaArray(0x1000, (2, 3), np.float16, call).fill(1.0)
    xla_calls.XlaArray(0x2000, (), np.float32, call).fill(-np.inf)
    xla_calls.XlaArray(0x2000, (0, 4), np.float32, call).fill(1.0)
    assert asked == [("cuMemsetD16Async", 0x1000, 0x3C00, 6, 7), ("cuMemsetD32Async", 0x2000, 0xFF800000, 1, 7)]

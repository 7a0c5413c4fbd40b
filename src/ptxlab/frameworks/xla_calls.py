"""Python functions that XLA calls, by its foreign function interface: arrays as they are, on the stream of XLA.

`operation(function, results, options)` is what `jax.ffi.ffi_call` calls as a function of arrays; JAX then has it under
`jit`. When XLA executes it, the function is called with an array for each argument and each result, in that memory:
arrays of NumPy on the CPU, and of a GPU `XlaArray`, whose `stream` is the one that XLA has ordered this call on. One
handler for each platform is registered with XLA, and an attribute of the call says which function is meant.

Nothing is compiled for that: `xla_abi.py` has XLA's structures, and the handlers are Python functions.
"""

from __future__ import annotations

import ctypes
import math
import traceback
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy

from ptxlab.frameworks.packages import package
from ptxlab.frameworks.xla_abi import (
    EXECUTE,
    HANDLER,
    INTERNAL,
    INVALID_ARGUMENT,
    MAJOR,
    TYPES,
    Allocation,
    Buffer,
    Error,
    ErrorText,
    Frame,
    Free,
    MetadataExtension,
    Scalar,
    Stream,
)
from ptxlab.gpu.arrays import require_dense
from ptxlab.gpu.driver import bindings, call, current
from ptxlab.report import KernelError

LEAST = (0, 5)
TARGET = "ptxlab"
ALIGNMENT = 16  # the most that XLA takes an order for; what it gives is at multiples of 256


class XlaArray:
    """An array of XLA in the memory of a GPU, while a call by XLA lasts; it has the methods of a tensor that say where.

    Strides of `stride()` are in elements.
    """

    is_cuda, requires_grad = True, False

    def __init__(self, address: int, shape: Sequence[int], dtype: Any, of: XlaCall, strides: Any = None) -> None:
        self.address, self.shape, self.dtype, self.call = address, tuple(shape), numpy.dtype(dtype), of
        self.itemsize, self.size, self.ndim = self.dtype.itemsize, math.prod(shape), len(shape)
        self.nbytes = self.size * self.itemsize
        self._strides = dense(self.shape) if strides is None else tuple(strides)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.address

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return self._strides

    def get_device(self) -> int:
        """The number of the GPU."""
        return self.call.gpu

    @property
    def device(self) -> str:
        """The GPU by its name."""
        return f"cuda:{self.call.gpu}"

    def new_empty(self, shape: Sequence[int], dtype: Any = None) -> XlaArray:
        """A result of this call that has these extents and this type, or memory for the time of this call."""
        return self.call.empty(tuple(shape), numpy.dtype(self.dtype if dtype is None else dtype))

    def fill(self, value: float) -> None:
        """Make every element this number, in the order of XLA's stream; the array is without gaps."""
        pattern = int.from_bytes(numpy.full(1, value, self.dtype).tobytes(), "little")
        if self.size:
            with current(self.call.gpu):
                call(f"cuMemsetD{8 * self.itemsize}Async", self.address, pattern, self.size, self.call.stream)

    @property
    def T(self) -> XlaArray:  # noqa: N802 - as NumPy calls it
        """Dimensions in the other order, in the same memory."""
        return XlaArray(self.address, self.shape[::-1], self.dtype, self.call, self._strides[::-1])

    def swapaxes(self, one: int, other: int) -> XlaArray:
        """Two dimensions exchanged, in the same memory."""
        shape, strides = list(self.shape), list(self._strides)
        for parts in (shape, strides):
            parts[one], parts[other] = parts[other], parts[one]
        return XlaArray(self.address, shape, self.dtype, self.call, strides)

    def __getitem__(self, number: int) -> XlaArray:
        address = self.address + number * self._strides[0] * self.itemsize
        return XlaArray(address, self.shape[1:], self.dtype, self.call, self._strides[1:])

    def __setitem__(self, where: Any, value: object) -> None:
        """Copy another array of this call, in the order of XLA's stream; `...` is all of this one."""
        if not isinstance(value, XlaArray):
            raise TypeError(f"an array of XLA on a GPU takes the elements of another such array, not {value!r:.60}")
        copy(value, self if where is Ellipsis else self[where])

    def reshape(self, *shape: object) -> XlaArray:
        """The same memory with other extents; one of them may be -1."""
        wanted = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if -1 in wanted:
            known = math.prod(extent for extent in wanted if extent != -1)
            wanted[wanted.index(-1)] = self.size // known if known else 0
        if math.prod(wanted) != self.size or self._strides != dense(self.shape):
            raise ValueError(f"an array of {self.shape} can't have the extents {tuple(wanted)}")
        return XlaArray(self.address, wanted, self.dtype, self.call)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """As bytes, because the interface has no bf16. A reader on another stream waits for that of XLA."""
        data = (self.address if self.size else 0, False)
        extent = 1 + sum((n - 1) * step for n, step in zip(self.shape, self._strides, strict=True)) if self.size else 0
        shape = (extent * self.itemsize,)
        return {"version": 3, "shape": shape, "typestr": "|u1", "data": data, "stream": self.call.stream or 1}


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps, in elements."""
    return tuple(math.prod(shape[number + 1 :]) for number in range(len(shape)))


class XlaCall:
    """A call by XLA on a GPU while it lasts: its stream, its GPU, and memory that is freed after it."""

    def __init__(self, frame: Any) -> None:
        self._api, self._context = frame.api.contents, frame.context
        self._allocated: list[tuple[int, int]] = []
        self._results: list[XlaArray] = []
        wanted = Stream(self._context)
        _ask(self._api.get_stream, wanted)
        self.stream = int(wanted.stream or 0)
        self.gpu = 0
        arguments, results = (_arrays(values, self) for values in (frame.arguments, frame.results))
        self.given = [*arguments, *results]
        somewhere = next((one.address for one in self.given if one.address), 0)
        if somewhere:
            ordinal = bindings().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            self.gpu = int(call("cuPointerGetAttribute", ordinal, somewhere))

    def give(self, results: Sequence[XlaArray]) -> None:
        """Let new arrays be these results, where they have the same extents and type."""
        self._results = list(results)

    def empty(self, shape: tuple[int, ...], dtype: object) -> XlaArray:
        """A new array."""
        for number, one in enumerate(self._results):
            if one.shape == shape and one.dtype == dtype:
                return self._results.pop(number)
        found = XlaArray(0, shape, dtype, self)
        if found.nbytes:
            wanted = Allocation(self._context, found.nbytes, ALIGNMENT)
            problem = _ask(self._api.allocate, wanted)
            if problem or not wanted.data:
                raise MemoryError(f"XLA has no {found.nbytes} bytes of memory: {self._text(problem)}")
            found.address = int(wanted.data)
            self._allocated.append((found.address, found.nbytes))
        return found

    def _text(self, problem: int | None) -> str:
        """What XLA says of an error, which is gone then."""
        if not problem:
            return "it gave none"
        asked = ErrorText(problem)
        _ask(self._api.describe_error, asked)
        text = (asked.message or b"").decode()
        _ask(self._api.destroy_error, ErrorText(problem))
        return text

    def zeros(self, bytes: int) -> XlaArray:
        """Bytes that are 0 now, for all streams, and stay allocated when this call is over."""
        with current(self.gpu):
            address = int(call("cuMemAlloc", bytes))
            call("cuMemsetD8", address, 0, bytes)
            call("cuStreamSynchronize", 0)
        return XlaArray(address, (bytes,), "uint8", self)

    def close(self) -> None:
        """Give memory back: kernels on the stream still have it, because XLA reuses it in the order of the stream."""
        for address, bytes in self._allocated:
            _ask(self._api.free, Free(self._context, bytes, address))


def copy(source: Any, target: Any) -> None:
    """Make a result what an array is, if it is not its memory already; on a GPU in the order of XLA's stream."""
    if isinstance(target, numpy.ndarray):
        if source is not target:
            target[...] = source
    elif source.address != target.address:
        if source.shape != target.shape or source.stride() != target.stride():
            raise ValueError(
                f"an array of {source.shape} is not copied to one of {target.shape}: forms must be the same"
            )
        require_dense(target.shape, target.stride())
        with current(target.get_device()):
            call("cuMemcpyDtoDAsync", target.address, source.address, target.nbytes, target.call.stream)


def _arrays(values: Any, of: XlaCall | None) -> list[Any]:
    """Arguments or results of a call: on the CPU without an `XlaCall`, as arrays of NumPy."""
    found: list[Any] = []
    for number in range(values.count):
        buffer = Buffer.from_address(values.values[number])
        if buffer.type not in TYPES:
            raise TypeError(f"XLA's type number {buffer.type} is not supported")
        shape, dtype = tuple(buffer.extents[: buffer.rank]), _dtype(TYPES[buffer.type])
        if of is not None:
            found.append(XlaArray(int(buffer.data or 0), shape, dtype, of))
        else:
            size = math.prod(shape) * dtype.itemsize
            data: Any = (ctypes.c_uint8 * size).from_address(buffer.data) if size else bytearray()
            found.append(numpy.frombuffer(data, dtype).reshape(shape))
    return found


current_call: ContextVar[XlaCall | None] = ContextVar("current_call", default=None)
"""The call by XLA on a GPU that this thread is in."""


def call_of_xla() -> XlaCall:
    """That call."""
    found = current_call.get()
    assert found is not None
    return found


_functions: list[Callable[..., None]] = []
_numbers: dict[Hashable, int] = {}


def operation(
    function: Callable[..., None], results: object, options: Sequence[tuple[str, object]] = (), vmap: str = "sequential"
) -> Callable[..., object]:
    """What calls `function(*arguments, *results, **options)` when XLA executes it: a function of arrays of JAX.

    `results` are `jax.ShapeDtypeStruct`, one or several; `vmap` is what `ffi_call` takes as `vmap_method`.
    """
    jax = _registered()
    key = function, tuple(options)
    number = _numbers.get(key)
    if number is None:
        chosen = dict(options)
        _functions.append(lambda *arrays: function(*arrays, **chosen))
        number = _numbers[key] = len(_functions) - 1
    made = jax.ffi.ffi_call(TARGET, results, vmap_method=vmap)
    return lambda *arrays: made(*arrays, function=numpy.int64(number))


@cache
def _registered() -> Any:
    """JAX, once the handlers are registered with it."""
    jax = package("jax", "jax", "an operator of JAX", LEAST)
    for platform, handler in (("cpu", _on_cpu), ("CUDA", _on_gpu)):
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(ctypes.cast(handler, ctypes.c_void_p)), platform)
    return jax


def _handle(address: int, on_gpu: bool) -> int | None:
    """What XLA calls: with a structure that asks for the version, or to execute something."""
    frame = Frame.from_address(address)
    if frame.extensions:
        metadata = MetadataExtension.from_address(frame.extensions).metadata.contents
        version = frame.api.contents.version
        # Of another first number the structures may differ: XLA refuses a handler whose number is not its own.
        metadata.version.major, metadata.version.minor = MAJOR, version.minor if version.major == MAJOR else 0
        metadata.traits = 0
        return None
    if frame.stage != EXECUTE:
        return None
    code = INTERNAL
    try:
        _execute(frame, on_gpu)
    except (TypeError, ValueError) as problem:
        message, code = f"{type(problem).__name__}: {problem}", INVALID_ARGUMENT
    except KernelError as problem:
        message = f"KernelError: {problem}"
    except BaseException:
        message = traceback.format_exc()  # nothing can be raised through XLA, which raises its own error of this text
    else:
        return None
    made = Error(message.encode(), code)
    return _ask(frame.api.contents.create_error, made)


def _execute(frame: Frame, on_gpu: bool) -> None:
    function = _functions[Scalar.from_address(frame.attributes.values[0]).value[0]]
    if not on_gpu:
        function(*_arrays(frame.arguments, None), *_arrays(frame.results, None))
        return
    here = XlaCall(frame)
    token = current_call.set(here)
    try:
        function(*here.given)
    finally:
        current_call.reset(token)
        here.close()


_on_cpu = HANDLER(lambda address: _handle(address, False))
_on_gpu = HANDLER(lambda address: _handle(address, True))


def _ask(function: int, arguments: Any) -> int | None:
    """Call a function of the interface; what it returns is an error, or None."""
    found: int | None = HANDLER(function)(ctypes.addressof(arguments))
    return found


@cache
def _dtype(name: str) -> Any:
    import ml_dtypes

    return numpy.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else numpy.dtype(name)

"""Calls of cuBLAS and cuRAND, by NumPy; `runtime/libraries.c` is the other side."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ptxlab.programs.messages import MessageReader, Writer

Array = NDArray[Any]
View = Callable[[int, int], Array]
"""The bytes of device memory at an address."""

# `cudaDataType`, as far as NumPy computes with it.
_TYPES: dict[int, numpy.dtype[Any]] = {
    0: numpy.dtype("f4"), 1: numpy.dtype("f8"), 2: numpy.dtype("f2"), 4: numpy.dtype("c8"), 5: numpy.dtype("c16"),
    12: numpy.dtype("u4"), 14: numpy.dtype(ml_dtypes.bfloat16),
}  # fmt: skip


class BadCallError(Exception):
    """What is wrong with the arguments of a call."""


def _type(number: int) -> numpy.dtype[Any]:
    if number not in _TYPES:
        raise BadCallError(f"elements of `cudaDataType` {number} are not computed by ptxlab")
    return _TYPES[number]


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


# cuBLAS.


def call_blas(given: MessageReader, view: View, _: object) -> Writer:
    """A call of cuBLAS."""
    kind = given.text()
    if kind == "gemm":
        _gemm(given, view)
        return Writer()
    return _VECTOR_CALLS[kind](*_vectors(given, view))


def _scalar(given: MessageReader) -> Any:
    type = _type(given.number())
    return numpy.frombuffer(given.take(type.itemsize), type)[0]


def _vectors(given: MessageReader, view: View) -> tuple[object, Array, Array]:
    """The scalar, `x` and `y`, where a call has them."""
    alpha = _scalar(given) if given.number() else None
    x = _vector(given, view)
    return alpha, x, _vector(given, view) if given.number() else x


def _vector(given: MessageReader, view: View) -> Array:
    type, count, address, step = _type(given.number()), given.number(), given.number(), _signed(given.number())
    if count == 0:
        return numpy.zeros(0, type)
    elements = view(address, (1 + (count - 1) * abs(step)) * type.itemsize).view(type)
    found = as_strided(elements, (count,), (abs(step) * type.itemsize,))
    return found[::-1] if step < 0 else found


def _axpy(alpha: object, x: Array, y: Array) -> Writer:
    y += alpha * x
    return Writer()


def _scal(alpha: object, x: Array, _: Array) -> Writer:
    x *= alpha
    return Writer()


def _copy(_: object, x: Array, y: Array) -> Writer:
    y[:] = x
    return Writer()


def _swap(_: object, x: Array, y: Array) -> Writer:
    x[:], y[:] = y.copy(), x.copy()
    return Writer()


def _result(value: object, like: Array) -> Writer:
    return Writer().raw(numpy.asarray(value).astype(like.dtype).tobytes())


def _index(of: Callable[[Array], Any]) -> Callable[[Any, Array, Array], Writer]:
    """The position of an element, from 1; 0 of no elements."""
    return lambda _, x, __: Writer().raw(struct.pack("<i", int(of(numpy.abs(x))) + 1 if x.size else 0))


_VECTOR_CALLS: Mapping[str, Callable[[Any, Array, Array], Writer]] = {
    "axpy": _axpy,
    "scal": _scal,
    "copy": _copy,
    "swap": _swap,
    "dot": lambda _, x, y: _result(numpy.dot(x.astype("f8"), y.astype("f8")), x),
    "nrm2": lambda _, x, __: _result(numpy.linalg.norm(x.astype("f8")), x),
    "asum": lambda _, x, __: _result(numpy.abs(x.astype("f8")).sum(), x),
    "amax": _index(numpy.argmax),
    "amin": _index(numpy.argmin),
}


def _gemm(given: MessageReader, view: View) -> None:
    """`C = alpha * op(A) @ op(B) + beta * C`, of each matrix of a batch."""
    operations = given.number(), given.number()
    m, n, k = given.number(), given.number(), given.number()
    alpha, beta = _scalar(given), _scalar(given)
    shapes = [(k, m) if operations[0] else (m, k), (n, k) if operations[1] else (k, n), (m, n)]
    described = [[given.number() for _ in range(4)] for _ in range(3)]
    count, are_pointers = given.number(), given.number()
    if not m or not n:
        return
    wide = numpy.result_type("f4", *(_type(one[0]) for one in described if _type(one[0]).kind in "fc"))
    for number in range(count):
        matrices = []
        for name, shape, (kind, at, step, batch) in zip("ABC", shapes, described, strict=True):
            type = _type(kind)
            if step < shape[0]:
                raise BadCallError(f"the leading dimension of {name} is {step}, less than its {shape[0]} rows")
            address = at + number * _signed(batch) * type.itemsize
            if are_pointers:
                address = int(view(at + 8 * number, 8).view("u8")[0])
            matrices.append(_matrix(view, address, type, shape, step) if k or name == "C" else numpy.zeros(shape, type))
        a, b = (_operate(one.astype(wide), how) for one, how in zip(matrices[:2], operations, strict=True))
        result = wide.type(alpha) * (a @ b)
        if beta != 0:
            result += wide.type(beta) * matrices[2].astype(wide)
        matrices[2][:] = result.astype(matrices[2].dtype)


def _matrix(view: View, address: int, type: numpy.dtype[Any], shape: tuple[int, int], step: int) -> Array:
    rows, columns = shape
    elements = view(address, (step * (columns - 1) + rows) * type.itemsize).view(type)
    return as_strided(elements, shape, (type.itemsize, step * type.itemsize))


def _operate(matrix: Array, how: int) -> Array:
    return matrix if how == 0 else matrix.T if how == 1 else matrix.conj().T


# cuRAND.


def call_random(given: MessageReader, view: View, generators: list[numpy.random.Generator]) -> Writer:
    """A call of cuRAND; the numbers are NumPy's."""
    kind = given.text()
    if kind == "create":
        generators.append(numpy.random.default_rng(0))
        return Writer().number(len(generators) - 1)
    number = given.number()
    if kind == "seed":
        generators[number] = numpy.random.default_rng(given.number())
        return Writer()
    if kind == "offset":
        generators[number].bit_generator.advance(given.number())  # type: ignore[attr-defined]
        return Writer()
    type, address, count = _type(given.number()), given.number(), given.number()
    first, second = struct.unpack("<dd", given.take(16))
    made = _DISTRIBUTIONS[kind](generators[number], count, first, second).astype(type)
    if not address:
        return Writer().raw(made.tobytes())
    view(address, made.nbytes).view(type)[:] = made
    return Writer()


_DISTRIBUTIONS: Mapping[str, Callable[[numpy.random.Generator, int, float, float], Array]] = {
    "uniform": lambda generator, count, _, __: 1 - generator.random(count, numpy.float32),  # 0 excluded, 1 included
    "normal": lambda generator, count, mean, deviation: generator.normal(mean, deviation, count),
    "lognormal": lambda generator, count, mean, deviation: generator.lognormal(mean, deviation, count),
    "bits": lambda generator, count, _, __: generator.integers(0, 1 << 32, count, numpy.uint32),
    "poisson": lambda generator, count, mean, _: generator.poisson(mean, count),
}

CALLS: Mapping[str, Callable[[MessageReader, View, list[numpy.random.Generator]], Writer]] = {
    "cublas": call_blas,
    "curand": call_random,
}

"""A function of NumPy or torch as one side: it runs once on arrays of expressions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal import torch_functions
from ptxlab.equal.codes import of_nodes
from ptxlab.equal.constants import bits_of, floats_of
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.equal.sides import Inputs, Kernels, NamedArray


class Expression:
    """The side of a function."""

    side = 1
    assumed: tuple[int, ...] = ()

    def __init__(self, function: Callable[..., object], inputs: Inputs, other: Kernels) -> None:
        self.function = function
        self.inputs = inputs
        self.arrays = other.arrays
        self.other = other
        self.memory = {array.key: inputs.codes(array).copy() for array in other.arrays}
        self.sizes = other.sizes
        self.returned: list[str] = []

    def record(self) -> None:
        """There is nothing to record."""

    def replay(self) -> None:
        """Run the function on expressions, and have its results be what the arrays hold."""
        by_name = {array.name: array for array in self.arrays}
        wanted = inspect.signature(self.function).parameters
        takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in wanted.values())
        given = {name: self._symbols(array) for name, array in by_name.items() if takes_all or name in wanted}
        scalars = {
            parameter.title: value
            for launch in self.other.launches
            for parameter, value in zip(launch.function.parameters, launch.args, strict=False)
            if isinstance(value, (int, float)) and parameter.title in wanted
        }
        nodes = self.inputs.nodes
        nodes.set_origin(None)
        formats = {array.format for array in self.arrays if array.format}
        nodes.precision = "f64" if formats == {"f64"} else "f32"
        found = self.function(**given, **{name: value for name, value in scalars.items() if name not in given})
        if not isinstance(found, dict):
            written = [array.name for array in self.arrays
                       if not np.array_equal(self.other.memory[array.key], self.inputs.codes(array))]  # fmt: skip
            if len(written) != 1:
                raise ValueError(f"equal: the kernel writes {', '.join(written) or 'nothing'}: return arrays by name")
            found = {written[0]: found}
        for name, values in found.items():
            if name not in by_name:
                raise ValueError(f"equal: the function returns `{name}`, which the kernel does not have")
            self._store(by_name[name], values)
        self.returned = list(found)

    def _symbols(self, array: NamedArray) -> Any:
        if array.key not in self.inputs.ids:
            return array.data
        return Symbols(self.inputs.nodes, self.inputs.ids[array.key].reshape(array.data.shape))

    def _store(self, array: NamedArray, values: Any) -> None:
        ids = Symbols.of(self.inputs.nodes, values).ids
        if ids.size != array.data.size:
            raise ValueError(f"equal: `{array.name}` has shape {array.data.shape}, the function returns {ids.shape}")
        nodes = self.inputs.nodes
        width = array.data.itemsize
        operation = nodes.operation("real", "copy", array.format, width)
        self.memory[array.key][:] = of_nodes(nodes.add(operation, ids.ravel()), width).ravel()

    def title(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", "the function")

    def line(self, launch: int, instruction: int) -> tuple[int, str, str]:
        """A function has no lines."""
        return 0, "", ""


class Symbols(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of expressions, which NumPy's functions take."""

    __array_priority__ = 1000

    def __init__(self, nodes: Nodes, ids: Ids) -> None:
        self.nodes, self.ids = nodes, ids

    @classmethod
    def of(cls, nodes: Nodes, value: object) -> Symbols:
        """Any array or number as one of expressions."""
        if isinstance(value, Symbols):
            return value
        numbers = np.asarray(value, np.float64)
        unique, back = np.unique(bits_of(numbers.ravel(), nodes.precision), return_inverse=True)
        width = 8 if nodes.precision == "f64" else 4
        return cls(nodes, nodes.constants(unique, nodes.precision, width)[back].reshape(numbers.shape))

    # What arrays have.

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ids.shape

    @property
    def ndim(self) -> int:
        return self.ids.ndim

    @property
    def size(self) -> int:
        return self.ids.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def T(self) -> Symbols:  # noqa: N802
        return Symbols(self.nodes, self.ids.T)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, key: Any) -> Symbols:
        return Symbols(self.nodes, self.ids[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.ids = self.ids.copy()
        self.ids[key] = Symbols.of(self.nodes, value).ids

    def astype(self, *_: object, **__: object) -> Symbols:
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Methods that only move elements are those of the nodes; others are as torch has them."""
        if name in _MOVES or name in ("copy", "flatten"):
            return lambda *how, **named: Symbols(self.nodes, getattr(self.ids, name)(*how, **named))
        if name in torch_functions.FUNCTIONS:
            return partial(torch_functions.FUNCTIONS[name], self)
        raise AttributeError(f"equal: `{name}` of an input has no rule")

    def sum(self, axis: Any = None, keepdims: bool = False, **named: Any) -> Symbols:
        return self._reduce("add", *_axes(axis, keepdims, named))

    def prod(self, axis: object = None, keepdims: bool = False, **named: object) -> Symbols:
        return self._reduce("mul", *_axes(axis, keepdims, named))

    def max(self, axis: object = None, keepdims: bool = False, **named: object) -> Symbols:
        return self._reduce("max", *_axes(axis, keepdims, named))

    def min(self, axis: object = None, keepdims: bool = False, **named: object) -> Symbols:
        return self._reduce("min", *_axes(axis, keepdims, named))

    def mean(self, axis: object = None, keepdims: bool = False, **named: object) -> Symbols:
        total = self._reduce("add", *_axes(axis, keepdims, named))
        return _apply(self.nodes, "div", total, Symbols.of(self.nodes, self.size // max(total.size, 1)))

    def var(self, axis: object = None, keepdims: bool = False, ddof: int = 0, **named: object) -> Symbols:
        axis, keepdims = _axes(axis, keepdims, named)
        rest = _apply(self.nodes, "sub", self, self.mean(axis, True))
        total = _apply(self.nodes, "mul", rest, rest).sum(axis, keepdims)
        count = self.size // max(total.size, 1) - ddof
        return _apply(self.nodes, "div", total, Symbols.of(self.nodes, count))

    def cumsum(self, axis: int | None = None) -> Symbols:
        if axis is None:
            return Symbols(self.nodes, self.ids.ravel()).cumsum(0)
        found = np.moveaxis(self.ids, axis, 0).copy()
        for at in range(1, len(found)):
            found[at] = _apply(self.nodes, "add", *(Symbols(self.nodes, found[one]) for one in (at - 1, at))).ids
        return Symbols(self.nodes, np.moveaxis(found, 0, axis))

    def __array__(self, *_: object, **__: object) -> npt.NDArray[Any]:
        raise TypeError("equal: the function asks for the values of an input")

    # What NumPy does with them.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        name = ufunc.__name__
        if method == "reduce" and name in _REDUCED:
            return Symbols.of(self.nodes, inputs[0])._reduce(
                _REDUCED[name], how.get("axis", 0), how.get("keepdims", False)
            )
        if method != "__call__":
            return NotImplemented
        if name == "matmul":
            return _matmul(self.nodes, *inputs)
        given = [Symbols.of(self.nodes, one) for one in inputs]
        if name in _MADE:
            return _MADE[name](*given)
        if name not in _WORDS:
            raise TypeError(f"equal: `numpy.{name}` of an input has no rule")
        return _apply(self.nodes, _WORDS[name], *given)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](self.nodes, *args, **kwargs)
        if name in _MOVES:
            return Symbols(self.nodes, function(Symbols.of(self.nodes, args[0]).ids, *args[1:], **kwargs))
        if name in ("sum", "prod", "mean", "var", "cumsum", "amax", "max", "amin", "min"):
            method = {"amax": "max", "amin": "min"}.get(name, name)
            return getattr(Symbols.of(self.nodes, args[0]), method)(*args[1:], **kwargs)
        raise TypeError(f"equal: `numpy.{name}` of an input has no rule")

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
        return torch_functions.call(function, args, named or {})

    def _reduce(self, word: str, axis: object, keepdims: bool) -> Symbols:
        axes = tuple(range(self.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(one % self.ndim for one in axes)
        kept = [one for one in range(self.ndim) if one not in axes]
        ids = self.ids.transpose(*kept, *axes).reshape(*(self.shape[one] for one in kept), -1)
        while ids.shape[-1] > 1:  # by halves
            half = ids.shape[-1] // 2
            found = _apply(
                self.nodes, word, Symbols(self.nodes, ids[..., :half]), Symbols(self.nodes, ids[..., half : 2 * half])
            )
            ids = np.concatenate([found.ids, ids[..., 2 * half :]], axis=-1)
        shape = [1 if one in axes else size for one, size in enumerate(self.shape)] if keepdims else ids.shape[:-1]
        return Symbols(self.nodes, ids.reshape(shape))


def _axes(axis: object, keepdims: bool, named: dict[str, Any]) -> tuple[Any, bool]:
    """What a sum or the like is over, as NumPy says it or torch; what else would change it is refused."""
    axis, keepdims = named.pop("dim", axis), named.pop("keepdim", keepdims)
    unknown = [name for name in named if name not in ("dtype", "out")]
    if unknown:
        raise TypeError(f"equal: `{unknown[0]}` of a reduction of an input has no rule")
    return axis, keepdims


def _apply(nodes: Nodes, word: str, *given: Symbols) -> Symbols:
    ids = np.broadcast_arrays(*(one.ids for one in given))
    shape = ids[0].shape
    operation = nodes.operation("real", word, "pred" if word in ("<", "<=", "==") else "f64", 8)
    return Symbols(nodes, nodes.add(operation, *(np.ascontiguousarray(one).ravel() for one in ids)).reshape(shape))


def _matmul(nodes: Nodes, a: object, b: object) -> Symbols:
    one, other = Symbols.of(nodes, a).ids, Symbols.of(nodes, b).ids
    vector = one.ndim == 1, other.ndim == 1
    one, other = (one[None] if vector[0] else one), (other[:, None] if vector[1] else other)
    lead = np.broadcast_shapes(one.shape[:-2], other.shape[:-2])
    one = np.broadcast_to(one, (*lead, *one.shape[-2:])).reshape(-1, *one.shape[-2:])
    other = np.broadcast_to(other, (*lead, *other.shape[-2:])).reshape(-1, *other.shape[-2:]).swapaxes(1, 2)
    from ptxlab.equal.collectives import product_nodes

    found = product_nodes(nodes, "real", "f64", one, np.ascontiguousarray(other), None)
    found = found.reshape(*lead, *found.shape[1:])
    found = found[..., 0, :] if vector[0] else found
    return Symbols(nodes, found[..., 0] if vector[1] else found)


def _exp(x: Symbols) -> Symbols:
    return _apply(x.nodes, "exp2", _apply(x.nodes, "mul", x, Symbols.of(x.nodes, math.log2(math.e))))


def _log(x: Symbols) -> Symbols:
    return _apply(x.nodes, "mul", _apply(x.nodes, "log2", x), Symbols.of(x.nodes, np.log(2.0)))


def _select(nodes: Nodes, condition: Any, yes: Any, no: Any) -> Symbols:
    if not isinstance(condition, Symbols):
        a, b = Symbols.of(nodes, yes).ids, Symbols.of(nodes, no).ids
        return Symbols(nodes, np.where(condition, a, b))
    given = [one if isinstance(one, Symbols) else Symbols.of(nodes, one) for one in (condition, yes, no)]
    return _apply(nodes, "select", *given)


def _power(x: Symbols, y: Any) -> Symbols:
    exponent = y
    if isinstance(y, Symbols):
        kinds = {x.nodes.kind(int(one)).kind for one in y.ids.ravel()[:1]}
        if kinds != {"constant"} or y.ids.size != 1:
            raise TypeError("equal: a power of an input that is not a whole number has no rule")
        exponent = float(floats_of(x.nodes.operands[0, y.ids.ravel()].view(np.uint64), x.nodes.precision)[0])
    if exponent == 0.5:
        return _apply(x.nodes, "sqrt", x)
    if exponent == -0.5:
        return _apply(x.nodes, "inverse_root", x)
    found = x
    for _ in range(abs(int(exponent)) - 1):
        found = _apply(x.nodes, "mul", found, x)
    return _apply(x.nodes, "reciprocal", found) if exponent < 0 else found


_WORDS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "sqrt": "sqrt",
    "exp2": "exp2", "log2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "maximum": "max", "minimum": "min",
    "fmax": "max", "fmin": "min", "less": "<", "less_equal": "<=", "equal": "==", "reciprocal": "reciprocal",
}  # fmt: skip
_REDUCED = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}
_MADE: dict[str, Callable[..., Any]] = {
    "exp": _exp, "log": _log, "negative": lambda x: 0.0 - x, "square": lambda x: x * x, "power": _power,
    "float_power": _power, "absolute": lambda x: _apply(x.nodes, "abs", x), "positive": lambda x: x,
    "greater": lambda x, y: y < x, "greater_equal": lambda x, y: y <= x,
}  # fmt: skip


def _einsum(nodes: Nodes, subscripts: str, a: object, b: object) -> Symbols:
    """Two operands, one product: rows that are summed over go last."""
    left, _, out = subscripts.replace(" ", "").partition("->")
    first, second = left.split(",")
    one, other = Symbols.of(nodes, a).ids, Symbols.of(nodes, b).ids
    sizes = dict(zip(first + second, one.shape + other.shape, strict=True))
    summed = [letter for letter in first if letter in second and letter not in out]
    shared = [letter for letter in first if letter in second and letter in out]
    own, theirs = [x for x in first if x not in second], [x for x in second if x not in first]

    def arranged(ids: Ids, letters: str, order: list[str]) -> Ids:
        return ids.transpose([letters.index(x) for x in order])

    def product(letters: list[str]) -> int:
        return int(np.prod([sizes[x] for x in letters], dtype=np.int64))

    a3 = arranged(one, first, shared + own + summed).reshape(product(shared), product(own), product(summed))
    b3 = arranged(other, second, shared + theirs + summed).reshape(product(shared), product(theirs), product(summed))
    from ptxlab.equal.collectives import product_nodes

    found = product_nodes(nodes, "real", "f64", np.ascontiguousarray(a3), np.ascontiguousarray(b3), None)
    letters = shared + own + theirs
    found = found.reshape([sizes[x] for x in letters])
    return Symbols(nodes, found.transpose([letters.index(x) for x in out]))


_MOVES = ("transpose", "swapaxes", "moveaxis", "reshape", "broadcast_to", "repeat", "expand_dims", "squeeze", "ravel",
          "roll", "flip", "tile", "take", "diagonal")  # fmt: skip
"""Functions that only move elements."""
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _select,
    "clip": lambda nodes, x, *how, **named: torch_functions.FUNCTIONS["clamp"](x, *how, **named),
    "std": lambda nodes, x, *how, **named: np.sqrt(x.var(*how, **named)),
    "einsum": _einsum,
    "matmul": _matmul,
    "dot": _matmul,
    "concatenate": lambda nodes, parts, axis=0: Symbols(
        nodes, np.concatenate([Symbols.of(nodes, one).ids for one in parts], axis)
    ),
    "stack": lambda nodes, parts, axis=0: Symbols(nodes, np.stack([Symbols.of(nodes, one).ids for one in parts], axis)),
    "pad": lambda nodes, x, width, **_: Symbols(
        nodes, np.pad(x.ids, width, constant_values=int(Symbols.of(nodes, 0.0).ids))
    ),
    "zeros_like": lambda nodes, x, *_, **__: Symbols.of(nodes, np.zeros(x.shape)),
    "empty_like": lambda nodes, x, *_, **__: Symbols.of(nodes, np.zeros(x.shape)),
    "ones_like": lambda nodes, x, *_, **__: np.ones(x.shape),
}


def unpack(packed: Any, type: str = "e2m1") -> Any:
    """The numbers of 4 bits that bytes hold, the lower half first: for functions that are compared with kernels.

    >>> unpack(np.array([[0x21, 0xF0]], np.uint8)).tolist()
    [[0.5, 1.0, 0.0, -6.0]]
    """
    if isinstance(packed, Symbols):
        from ptxlab.equal.multiplicands import parts_of_bytes

        bit = np.broadcast_to(np.array([0, 4]), (*packed.shape, 2))
        ids = np.repeat(packed.ids[..., None], 2, -1)
        found = parts_of_bytes(packed.nodes, ids, bit, 4, type)
        return Symbols(packed.nodes, found.reshape(*packed.shape[:-1], -1))
    halves = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    return floats_of(halves.astype(np.uint64).ravel(), type).reshape(halves.shape)

"""Extensions in C++ (`load_inline`): host functions are translated to Python, and their kernels launched by ptxlab.

A host function of such an extension declares numbers, makes tensors, and launches kernels; nothing of it is compiled
for this machine. What the translation does not know raises `InlineError` with the line of the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any
from warnings import catch_warnings

from ptxlab.toolchain import cuda
from ptxlab.toolchain.tools import can_find
from ptxlab.verify.host_code import REAL, WHOLE, InlineError, constants, functions


def _cast(type: str, value: object) -> Any:
    """A number as a type has it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value) if type in WHOLE else float(value) if type in REAL else value
    return value


def _divided(a: Any, b: Any) -> Any:
    """`/` of C++: whole numbers are cut off towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a / b


class _Dim3(SimpleNamespace):
    """`dim3`"""

    def __init__(self, x: int = 1, y: int = 1, z: int = 1) -> None:
        super().__init__(x=int(x), y=int(y), z=int(z))


class _Sizes(list[int]):
    """A shape as C++ has it."""

    size, push_back = list[int].__len__, list[int].append

    def vec(self) -> _Sizes:
        return _Sizes(self)


class _Tensor:
    """A tensor as C++ has it."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def size(self, axis: int) -> int:
        return int(self.own.shape[axis])

    def sizes(self) -> _Sizes:
        return _Sizes(self.own.shape)

    def data_ptr(self) -> Any:
        return self.own

    def options(self) -> _Options:
        return _Options(self.own.dtype)

    dtype = scalar_type = type = device = options
    to = cuda = lambda self, *_: self

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.own, name)
        return (lambda *given: _wrapped(found(*map(_plain, given)))) if callable(found) else found


class _Options:
    """`torch::TensorOptions`, and each part of them: the type of elements, where it is said, on the GPU."""

    def __init__(self, type: Any = None) -> None:
        self.type = type

    def dtype(self, given: _Options) -> _Options:
        return _Options(given.type)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self


class _Library:
    """`torch::`, with what makes memory: `library` is torch."""

    def __init__(self, library: Any) -> None:
        self._own = library

    def __getattr__(self, name: str) -> Any:
        if name.startswith("k"):  # kInt64, kLong, kFloat32, kCUDA
            return _Options(getattr(self._own, name[1:].lower(), None))
        if name in ("TensorOptions", "device", "dtype"):
            return lambda *given: given[0] if given and isinstance(given[0], _Options) else _Options()
        function = getattr(self._own, name)

        def call(*given: Any) -> Any:
            said = [one.type for one in given if isinstance(one, _Options) and one.type is not None]
            plain = [_plain(one) for one in given if not isinstance(one, _Options)]
            return _wrapped(function(*plain, **({"dtype": said[0]} if said else {})))

        return call


def _wrapped(value: object) -> Any:
    return _Tensor(value) if hasattr(value, "__array_interface__") or hasattr(value, "untyped_storage") else value


def _plain(value: object) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.own if isinstance(value, _Tensor) else value


def _made(type: str, given: Sequence[Any]) -> Any:
    return _Dim3(*given) if type == "dim3" else _cast(type, given[0]) if given else None


_NAMES: dict[str, Any] = {
    "_cast": _cast, "_div": _divided, "_made": _made, "INFINITY": math.inf, "FLT_MAX": 3.4028234663852886e38,
    "std": SimpleNamespace(min=min, max=max, ceil=math.ceil, sqrt=math.sqrt), "ceil": math.ceil, "sqrt": math.sqrt,
    "sqrtf": math.sqrt, "min": min, "max": max, "floor": math.floor, "dim3": _Dim3, "pow": pow,
}  # fmt: skip


class Extension(SimpleNamespace):
    """The host functions of an extension, by name: they launch its kernels."""

    def __init__(self, source: str, library: Any, target: str, options: Sequence[str] = ()) -> None:
        super().__init__()
        self._source, self._target, self._modules = source, target, dict[str, Any]()
        self._options = [one for one in options if one.startswith(("-D", "-std", "--use_fast_math", "-use_fast_math"))]
        names = {**_NAMES, "_launch": self._launch, "torch": _Library(library), "at": _Library(library)}
        for name, value in constants(source):
            names[name] = eval(value, names)
        for name, text in functions(source):
            exec(text, names)
            setattr(self, name, partial(self._call, names[name]))

    @staticmethod
    def _call(function: Callable[..., object], *given: object) -> Any:
        """A host function with tensors of Python; names that it has in C++ alone are not known."""
        try:
            return _plain(function(*map(_wrapped, given)))
        except (AttributeError, NameError, TypeError) as unknown:
            raise InlineError(f"{function.__name__}: {unknown}") from unknown

    def _launch(self, name: str, template: str, shape: Sequence[Any], args: Sequence[Any]) -> None:
        """Launch a kernel of the source."""
        entry = f"{name}<{template}>".replace("scalar_t", "float") if template else name
        if entry not in self._modules:
            if not can_find("nvrtc"):  # nvcc would compile the host's part, too, with the headers of torch
                raise InlineError(
                    "its kernels are compiled by NVRTC, which is not installed: `ptxlab[toolchain]` has it"
                )
            with catch_warnings(action="ignore"):
                self._modules[entry] = cuda(self._source, self._target, self._options, name="inline.cu",
                                            instantiate=[entry] if template else [])  # fmt: skip
        grid, block = ((one.x, one.y, one.z) if isinstance(one, _Dim3) else int(one) for one in shape[:2])
        shared = int(shape[2]) if len(shape) > 2 else 0
        self._modules[entry][entry].launch(grid, block, list(args), shared=shared)


def loader(library: Any, target: str) -> Callable[..., Extension]:
    """What takes the place of `torch.utils.cpp_extension.load_inline`."""

    def load_inline(name: str, cpp_sources: Any, cuda_sources: Any = (), functions: Any = None,
                    extra_cuda_cflags: Sequence[str] | None = None, **_: Any) -> Extension:  # fmt: skip
        both = [[one] if isinstance(one, str) else list(one or ()) for one in (cuda_sources, cpp_sources)]
        defined = [*both[0], *(one for one in both[1] if "{" in one)]  # the rest is declarations
        return Extension("\n".join(defined), library, target, extra_cuda_cflags or ())

    return load_inline

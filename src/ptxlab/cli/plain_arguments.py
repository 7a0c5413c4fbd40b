"""Arguments that are one value: `2.0`, `f32=2.0`, `f16[64,64]=random`, `u32[256]=@counts.npy`, `bytes=00ff`.

`Argument.make` gives what a launch takes: an array, or the bytes of a number. `arguments.py` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, isinf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.files import name_of
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from numpy import dtype
    from numpy.typing import NDArray

    from ptxlab.ir import Variable

# The types of NumPy and of ml_dtypes, by what PTX calls them.
_NUMPY = {
    "f16": "float16", "f32": "float32", "f64": "float64",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"b{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
NUMBER = "a number"  # of the type that the parameter has
TYPES = (*_NUMPY, *_ML_DTYPES)
_FLOATS = ("f16", "f32", "f64", *_ML_DTYPES)
_NPY = b"\x93NUMPY"  # how a file that `numpy.save` wrote starts

Seed = Sequence[int]
Known = dict[str, Any]  # the arrays that arguments before have named
_RANDOM = re.compile(r"random(?::(?P<low>[^:]+):(?P<high>[^:]+))?")


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of an option; `shape` is None for a number, and empty where a file says it.

    `name` is that by which later arguments may mean the same array.
    """

    text: str
    type: str
    shape: tuple[int, ...] | None
    value: str
    option: str = "--arg"
    name: str = ""

    @property
    def parts(self) -> tuple[Argument, ...]:
        """The arguments that each make one leaf of what this one makes."""
        return (self,)

    def make(self, seed: Seed, known: Known | None = None) -> Any:
        """The array, or the bytes of the number; `random` is the same for the same seed."""
        import numpy

        if self.type == NUMBER:
            return self._number()
        if self.type == "bytes":
            return self._bytes()
        kind = type_of(self.type)
        if self.shape is None:
            return bytes(numpy.array(self._numbers([self.value])[0], dtype=kind).tobytes())
        made = self._array(kind, seed)
        if known is not None:
            known[self.name] = known[""] = made  # without a name, it is the last
        return made

    def _number(self) -> int | float:
        try:
            return float(self.value) if _is_float(self.value) else int(self.value, 0)
        except ValueError:
            raise self.problem(f"`{self.value}` is not a number") from None

    def _array(self, kind: dtype[Any], seed: Seed) -> NDArray[Any]:
        assert self.shape is not None
        if self.value.startswith("@"):
            return self._load(kind)
        count = prod(self.shape)
        try:
            return self._fill(kind, count, seed).reshape(self.shape)
        except MemoryError:
            raise self.problem(f"{count * kind.itemsize:,} bytes are more than there is memory for") from None

    def make_typed(self, seed: Seed) -> Any:
        """The same, with a number as an array of one, which knows its type."""
        import numpy

        made = self.make(seed)
        is_number = self.shape is None and self.type in TYPES
        return numpy.frombuffer(made, type_of(self.type)) if is_number and isinstance(made, bytes) else made

    def _fill(self, kind: dtype[Any], count: int, seed: Seed) -> NDArray[Any]:
        import numpy

        if random := _RANDOM.fullmatch(self.value):
            return self._random(kind, count, seed, random["low"], random["high"])
        match self.value:
            case "zeros":
                return numpy.zeros(count, kind)
            case "ones":
                return numpy.ones(count, kind)
            case "arange":
                return numpy.arange(count).astype(kind)
        values = self._numbers(self.value.split(","))
        if len(values) not in (1, count):
            raise self.problem(f"{len(values)} values for {count} elements")
        return numpy.array(values * count if len(values) == 1 else values, dtype=kind)

    def _random(self, kind: dtype[Any], count: int, seed: Seed, low: str | None, high: str | None) -> NDArray[Any]:
        """Floats from -1 to 1, integers of the whole range, or both from `low` to `high`, which is not reached."""
        import numpy

        generator = numpy.random.default_rng(seed)
        if kind.kind in "iu":
            limits = numpy.iinfo(kind)
            first, end = int(limits.min), int(limits.max) + 1
            if low is not None and high is not None:
                first, end = self._range(low, high)
            return generator.integers(first, end - 1, count, dtype=kind, endpoint=True)
        least, most = (-1.0, 1.0) if low is None or high is None else self._range(low, high)
        if not isfinite(most - least):
            raise self.problem("from the first to the last is more than a double can hold")
        return generator.uniform(least, most, count).astype(kind)

    def _range(self, low: str, high: str) -> tuple[Any, Any]:
        least, most = self._numbers([low, high])
        if not least < most:
            raise self.problem(f"the range {low}:{high} is empty: the first number must be below the second")
        return least, most

    def _numbers(self, texts: Sequence[str]) -> list[Any]:
        """Numbers that the type can hold."""
        if self.type in _FLOATS:
            return [self._float(text) for text in texts]
        found = []
        bits = int(self.type[1:])
        for text in texts:
            try:
                number = int(text.strip(), 0)
            except ValueError:
                raise self.problem(self._not_a_number(text, "an integer")) from None
            low = -(1 << (bits - 1)) if self.type[0] == "s" else 0
            high = (1 << (bits - 1 if self.type[0] == "s" else bits)) - 1
            if not low <= number <= high:
                raise self.problem(f"{number} does not fit `{self.type}` ({low} to {high})")
            found.append(number)
        return found

    def _float(self, text: str) -> float:
        import numpy

        try:
            number = float(text)
        except ValueError:
            raise self.problem(self._not_a_number(text, "a number")) from None
        with numpy.errstate(over="ignore"):
            held = float(numpy.array(number).astype(type_of(self.type)))
        meant = isfinite(number) or text.strip(" +-").isalpha()  # `inf` and `nan`, not 1e999
        if not meant or isfinite(number) != isfinite(held) or isinf(number) != isinf(held):
            raise self.problem(f"{text.strip()} does not fit `{self.type}`")
        return number

    def _not_a_number(self, text: str, what: str) -> str:
        """What to say of a word that is not a number, where an array could be filled by one."""
        words = "" if self.shape is None else ", nor zeros, ones, arange, random, random:LOW:HIGH or @FILE"
        return f"`{text}` is not {what}{words}"

    def _load(self, kind: dtype[Any]) -> NDArray[Any]:
        import numpy

        path = Path(self.value[1:])
        try:
            with path.open("rb") as file:
                is_raw = path.suffix not in (".npy", ".npz") and file.read(len(_NPY)) != _NPY
            loaded = numpy.fromfile(path, numpy.uint8) if is_raw else numpy.load(path, allow_pickle=False)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise self.problem(f"`{name_of(path)}` can't be read: {reason.lower()}") from None
        except (ValueError, EOFError):
            raise self.problem(f"`{name_of(path)}` is not a file of numbers that `numpy.save` wrote") from None
        if is_raw:
            return self._raw(loaded, kind)
        if not isinstance(loaded, numpy.ndarray):
            raise self.problem(f"`{name_of(path)}` holds several arrays")
        if loaded.dtype.kind == "V" and loaded.dtype.itemsize == kind.itemsize:
            loaded = loaded.view(kind)  # NumPy does not know the names of these types
        if loaded.dtype != kind:
            raise self.problem(f"`{name_of(path)}` holds {loaded.dtype}, not {kind}")
        if self.shape and loaded.shape != self.shape:
            raise self.problem(f"`{name_of(path)}` has the shape {spell_shape(loaded.shape)}")
        return numpy.ascontiguousarray(loaded)

    def _raw(self, loaded: NDArray[Any], kind: dtype[Any]) -> NDArray[Any]:
        """The bytes of a file as elements of the type."""
        name, shape = name_of(Path(self.value[1:])), self.shape or (loaded.size // kind.itemsize,)
        expected = prod(shape) * kind.itemsize
        if loaded.size != expected:
            wanted = f"{self.type}{spell_shape(self.shape)} has {expected:,}" if self.shape else "not whole elements"
            raise self.problem(f"`{name}` has {loaded.size:,} bytes, {wanted}")
        return loaded.view(kind).reshape(shape)

    def _bytes(self) -> bytes:
        try:
            return Path(self.value[1:]).read_bytes() if self.value.startswith("@") else bytes.fromhex(self.value)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise self.problem(f"`{self.value[1:]}` can't be read: {reason.lower()}") from None
        except ValueError:
            raise self.problem("bytes are pairs of hexadecimal digits, such as `01ff`, or @FILE") from None

    def problem(self, text: str) -> click.BadParameter:
        """A usage error about this argument."""
        return click.BadParameter(f"`{self.text}`: {text}", param_hint=self.option)

    def for_parameter(self, parameter: Variable) -> Argument:
        """It with the type of the parameter, if it has none; one of another kind is refused: its bits mean others."""
        wanted = parameter.type
        if self.type == NUMBER:
            if parameter.dimensions:
                raise self.problem(f"the parameter `{parameter.title}` is a structure: write `({self.value}, …)`")
            if wanted.name not in TYPES or wanted.kind == "b":
                raise self.problem(f"the parameter `{parameter.title}` is `.{wanted.name}`: write the type, `u32=…`")
            return replace(self, type=wanted.name)
        if self.shape is not None or self.type not in TYPES or parameter.dimensions:
            return self
        kind = "f" if self.type in _FLOATS else self.type[0]
        same = "b" in (kind, wanted.kind) or (kind == "f") == (wanted.kind == "f")
        if not same or type_of(self.type).itemsize * 8 != wanted.width:
            raise self.problem(f"the parameter `{parameter.title}` is `.{wanted.name}`")
        return self


def type_of(name: str) -> dtype[Any]:
    """The type of NumPy, or of ml_dtypes, that PTX calls `name`."""
    import numpy

    if name in _NUMPY:
        return numpy.dtype(_NUMPY[name])
    import ml_dtypes

    found: dtype[Any] = numpy.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return found


def _is_float(text: str) -> bool:
    """Whether a number is written with a point or an exponent."""
    return "x" not in text.lower() and any(sign in text.lower() for sign in ".e")


def spell_shape(shape: Sequence[int]) -> str:
    """`[64,64]`"""
    return f"[{','.join(map(str, shape))}]"

"""Arguments of a kernel on the command line: `f32=2.0`, `f16[64,64]=random`, `u32[256]=@counts.npy`, `(64, 64, 8)`.

`parse_argument` reads one, `Argument.make` gives what a launch takes: an array, the bytes of a number, a tuple. What a
variable is set to is written in the same way, after its name: `parse_setting` reads it.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, isinf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptxlab.cli.files import name_of

if TYPE_CHECKING:
    from numpy import dtype, ndarray

    from ptxlab.ir import Function, Variable

# The types of NumPy and of ml_dtypes, by what PTX calls them.
_NUMPY = {
    "f16": "float16", "f32": "float32", "f64": "float64",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"b{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_ML_DTYPES = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
STRUCTURE = "a structure"
NUMBER = "a number"  # of the type that the parameter has
TYPES = (*_NUMPY, *_ML_DTYPES)
_FLOATS = ("f16", "f32", "f64", *_ML_DTYPES)

Seed = Sequence[int]
_ARGUMENT = re.compile(r"(?P<type>\w+)(?:(?P<shape>\[[^\]]*\])?=(?P<value>.*)|(?P<zeros>\[[^\]]*\]))", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)")
_RANDOM = re.compile(r"random(?::(?P<low>[^:]+):(?P<high>[^:]+))?")


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of an option; `shape` is None for a number, and empty where a file says it."""

    text: str
    type: str
    shape: tuple[int, ...] | None
    value: str
    option: str = "--arg"

    def make(self, seed: Seed) -> ndarray[Any, Any] | bytes | tuple[Any, ...]:
        """The array, the bytes of the number, or a structure's numbers; `random` is the same for the same seed."""
        import numpy

        if self.type in (STRUCTURE, NUMBER):
            return _numbers_of(self.value)
        if self.type == "bytes":
            return self._bytes()
        kind = type_of(self.type)
        if self.shape is None:
            return bytes(numpy.array(self._numbers([self.value])[0], dtype=kind).tobytes())
        if self.value.startswith("@"):
            return self._load(kind)
        count = prod(self.shape)
        try:
            return self._fill(kind, count, seed).reshape(self.shape)
        except MemoryError:
            raise self.problem(f"{count * kind.itemsize:,} bytes are more than there is memory for") from None

    def make_typed(self, seed: Seed) -> ndarray[Any, Any] | bytes | tuple[Any, ...]:
        """The same, with a number as an array of one, which knows its type."""
        import numpy

        made = self.make(seed)
        is_number = self.shape is None and self.type in TYPES
        return numpy.frombuffer(made, type_of(self.type)) if is_number and isinstance(made, bytes) else made

    def _fill(self, kind: dtype[Any], count: int, seed: Seed) -> ndarray[Any, Any]:
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

    def _random(self, kind: dtype[Any], count: int, seed: Seed, low: str | None, high: str | None) -> ndarray[Any, Any]:
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
        words = "" if self.shape is None else ", nor zeros, ones, arange, random, random:LOW:HIGH or @FILE.npy"
        return f"`{text}` is not {what}{words}"

    def _load(self, kind: dtype[Any]) -> ndarray[Any, Any]:
        import numpy

        path = Path(self.value[1:])
        try:
            loaded = numpy.load(path, allow_pickle=False)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise self.problem(f"`{name_of(path)}` can't be read: {reason.lower()}") from None
        except (ValueError, EOFError):
            raise self.problem(f"`{name_of(path)}` is not a file of numbers that `numpy.save` wrote") from None
        if not isinstance(loaded, numpy.ndarray):
            raise self.problem(f"`{name_of(path)}` holds several arrays")
        if loaded.dtype.kind == "V" and loaded.dtype.itemsize == kind.itemsize:
            loaded = loaded.view(kind)  # NumPy does not know the names of these types
        if loaded.dtype != kind:
            raise self.problem(f"`{name_of(path)}` holds {loaded.dtype}, not {kind}")
        if self.shape and loaded.shape != self.shape:
            raise self.problem(f"`{name_of(path)}` has the shape {spell_shape(loaded.shape)}")
        return numpy.ascontiguousarray(loaded)

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
            if wanted.name not in TYPES or wanted.kind == "b" or parameter.dimensions:
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


def parse_argument(text: str, option: str = "--arg") -> Argument:
    """`f16[64,64]=random` as an argument, `f16[64,64]` as one of zeros; what is wrong with it is a usage error."""
    found = _ARGUMENT.fullmatch(text)
    if text.startswith(("(", "{")):
        return _parse_structure(text, option)
    if found is None and option == "--arg" and _NUMBER.fullmatch(text):
        return Argument(text, NUMBER, None, text, option)
    if found is None:
        raise click.BadParameter(f"`{text}` is not like `2.0`, `f32=2.0` or `f32[1024]=random`", param_hint=option)
    type, shape = found["type"], found["shape"] or found["zeros"]
    value = "zeros" if found["zeros"] else found["value"]
    if type not in TYPES and not (type == "bytes" and shape is None):
        raise click.BadParameter(
            f"`{text}`: there is no type `{type}`, but {', '.join((*TYPES, 'bytes'))}", param_hint=option
        )
    if shape is None:
        return Argument(text, type, None, value, option)
    extents = [extent.strip() for extent in shape[1:-1].split(",")]
    if extents == [""] and value.startswith("@"):
        return Argument(text, type, (), value, option)
    if not all(re.fullmatch(r"[0-9]{1,15}", extent) for extent in extents) or prod(map(int, extents)) >= 1 << 59:
        raise click.BadParameter(f"`{text}`: `{shape}` is not a shape such as `[64,64]`", param_hint=option)
    return Argument(text, type, tuple(map(int, extents)), value, option)


def arguments_for(kernel: Function, given: Sequence[Argument]) -> list[Argument]:
    """The arguments as the parameters of a kernel take them; a launch refuses those without one."""
    known = [one.for_parameter(parameter) for one, parameter in zip(given, kernel.parameters, strict=False)]
    return [*known, *given[len(known) :]]


def _parse_structure(text: str, option: str) -> Argument:
    """`(256, 128, 64)`, the numbers of a structure, or `()`."""
    try:
        _numbers_of(text)
    except (ValueError, SyntaxError):
        raise click.BadParameter(
            f"`{text}`: a structure is given by its numbers, `(256, 128, 0.5)`, or its bytes, `bytes=0100…` or "
            "`bytes=@FILE`; a tuple with arrays is for Python's `launch`",
            param_hint=option,
        ) from None
    return Argument(text, STRUCTURE, None, text, option)


def _numbers_of(text: str) -> tuple[Any, ...]:
    """The numbers of a structure, nested as they are."""
    found = literal_eval(text.strip())
    found = found if isinstance(found, tuple) else (found,)
    inner = list(found)
    while inner:
        one = inner.pop()
        if isinstance(one, tuple):
            inner += one
        elif type(one) not in (int, float):
            raise ValueError
    return found


def parse_setting(text: str) -> tuple[str, Argument]:
    """`filter=f32[5]=1,2,3,4,5` as the name of a variable and its value."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"`{text}` is not like `filter=f32[5]=1,2,3,4,5`", param_hint="--set")
    return name, parse_argument(value, "--set")


def spell_shape(shape: Sequence[int]) -> str:
    """`[64,64]`"""
    return f"[{','.join(map(str, shape))}]"

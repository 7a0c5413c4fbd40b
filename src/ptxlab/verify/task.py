"""What is to be computed: a reference, the schemas of its arguments, and how exact the answer must be.

    task = Task(
        "softmax",
        lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
        sizes={"rows": Size(1, 40), "columns": Size(1, 600)},
        arguments=[Array("x", "f32", "rows, columns"), Array("y", "f32", "rows, columns", role="out"),
                   Scalar("rows"), Scalar("columns")],
        shapes=[{"rows": 4, "columns": 128}],
    )

The sizes that a submission knows are `shapes`; those that it does not know are drawn from `sizes` by the task's seed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from pathlib import Path
from runpy import run_path
from traceback import extract_tb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ptxlab.device.array_types import DTYPES
from ptxlab.measure.data import poison
from ptxlab.values import Json
from ptxlab.verify.formulas import evaluate, split

Sizes = dict[str, int]
Values = npt.NDArray[Any]
Role = Literal["in", "out", "inout"]

# Bits of the significand, the hidden one left out: how fine a type is.
DIGITS = {"e2m1": 1, "e3m2": 2, "e5m2": 2, "e2m3": 3, "e4m3": 3, "bf16": 7, "f16": 10, "tf32": 10, "f32": 23, "f64": 52}
KINDS = ("normal", "large", "of many magnitudes", "spikes", "of one sign", "ties", "cancelling", "tiny")


class TaskError(ValueError):
    """A task that cannot be used; its text says why."""


@dataclass(frozen=True)
class Size:
    """The values that a size may have: from `least` to `most`, multiples of `step`."""

    least: int
    most: int
    step: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most or self.least % self.step or self.most % self.step:
            raise TaskError(f"{self}: expected 0 < least <= most, both multiples of the step")

    def draw(self, random: np.random.Generator) -> int:
        """One of them; small ones as often as large ones."""
        low, high = np.log(self.least), np.log(self.most + self.step)
        found = int(np.exp(random.uniform(low, high))) // self.step * self.step
        return min(max(found, self.least), self.most)


@dataclass(frozen=True)
class Array:
    """An array among the arguments."""

    name: str
    type: str
    """As PTX has it: f32, bf16, e4m3, u8, …"""
    shape: str | Callable[[Mapping[str, int]], tuple[int, ...]]
    """Formulas of the sizes, `rows, columns // 2`, or a function of them."""
    role: Role = "in"
    values: str | Callable[[np.random.Generator, tuple[int, ...]], Any] = "normal"
    """What inputs are drawn from: `normal`, `uniform LOW HIGH`, `integers LOW HIGH` (without HIGH), or a function."""
    strides: str | Callable[[Mapping[str, int]], tuple[int, ...]] | None = None
    """In elements, as the shape: `columns + 8, 1`; by default rows are after each other."""
    alignment: int = 256
    """In bytes: a kernel may not rely on more."""

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape at these sizes."""
        if callable(self.shape):
            return self.shape(sizes)
        return tuple(evaluate(one, sizes) for one in split(self.shape))

    def steps(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The strides at these sizes, in elements."""
        shape = self.extents(sizes)
        if self.strides is None:
            return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
        if callable(self.strides):
            return self.strides(sizes)
        return tuple(evaluate(one, sizes) for one in split(self.strides))

    def length(self, sizes: Mapping[str, int]) -> int:
        """Elements from the first to the last, with the gaps."""
        pairs = zip(self.extents(sizes), self.steps(sizes), strict=True)
        return 1 + sum((extent - 1) * step for extent, step in pairs)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return self.type in DIGITS


@dataclass(frozen=True)
class Scalar:
    """A number among the arguments; by default the size of the same name."""

    name: str
    type: str = "u32"
    value: str | float = ""
    """A formula of the sizes, or a number."""

    def number(self, sizes: Mapping[str, int]) -> int | float:
        """Its value at these sizes."""
        return self.value if isinstance(self.value, float) else evaluate(str(self.value or self.name), sizes)


@dataclass(frozen=True)
class Task:
    """A problem, and what an answer must be like."""

    name: str
    reference: Callable[..., Any]
    """Takes arrays (float64, or int64 for integers), scalars and sizes by their names, as many as it names; returns the
    output, or outputs by name. Functions of NumPy are also compared as expressions."""
    sizes: Mapping[str, Size]
    arguments: Sequence[Array | Scalar]
    shapes: Sequence[Mapping[str, int]] = ()
    """Sizes that submissions may know."""
    timed: Sequence[Mapping[str, int]] = ()
    """Sizes whose time is estimated; by default the largest one that ran. They may be too large for the emulator."""
    tolerance: float | None = None
    """An element may differ by this times the sum of its own size and the root mean square of the output; 0 requires
    equality. By default eight units in the last place of the outputs' type, 0 for integers."""
    precision: str | None = None
    """The type that operands may be rounded to; by default the narrowest of the arguments."""
    accumulate: str = "f32"
    """The type that sums must have, unless the arguments are all wider or narrower."""
    targets: Sequence[str] = ()
    """What the submission must assemble for; by default its own target."""
    launch: str = ""
    """How a file without a `// launch:` line is launched: `grid=rows block=128`."""
    seed: int = 0
    hidden: int = 5
    """How many sizes are drawn."""
    seeds: int = 6
    """Schedules by which one of them runs."""
    work: Callable[..., Any] | None = None
    """`ptxlab.measure.Work` of a size: operations and bytes."""
    slow: float = 0.1
    """Less than this part of what the GPU can do at best is slow, for `ptxlab grade`."""
    library: str = "numpy"
    """What the reference is written with: `numpy` or `torch`."""
    is_reference_exact: bool = True
    """Whether the reference computes in float64; one that does not is not compared as an expression."""
    python: str = "launch"
    """What a submission in Python defines: `launch`, `custom_kernel` or `ModelNew`."""
    title: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [one.name for one in self.arguments]
        if len({*names}) < len(names):
            raise TaskError(f"{self.name}: two arguments have one name: {', '.join(names)}")
        if not any(array.role != "in" for array in self.arrays):
            raise TaskError(f"{self.name}: no argument has the role `out`")
        wrong = [array.type for array in self.arrays if array.type not in DTYPES]
        if wrong:
            raise TaskError(f"{self.name}: there is no type {wrong[0]}: expected one of {', '.join(DTYPES)}")

    @property
    def arrays(self) -> list[Array]:
        """The arrays among the arguments."""
        return [one for one in self.arguments if isinstance(one, Array)]

    @property
    def outputs(self) -> list[Array]:
        """The arrays that a submission writes."""
        return [one for one in self.arrays if one.role != "in"]

    @property
    def narrowest(self) -> str:
        """The type that operands may be rounded to."""
        types = [array.type for array in self.arrays if array.is_float]
        packed = any(array.type == "u8" for array in self.arrays)  # may hold numbers of any format
        return self.precision or ("e2m1" if packed or not types else min(types, key=lambda one: DIGITS[one]))

    def allowed(self, array: Array) -> float:
        """The tolerance for an output."""
        if self.tolerance is not None:
            return self.tolerance
        return 2.0 ** (2 - DIGITS[array.type]) if array.is_float else 0.0

    def draw_sizes(self) -> list[Sizes]:
        """Sizes that a submission does not know: the least, the largest, and random ones."""
        random = np.random.default_rng([self.seed, 0x51])
        found = [{name: size.least for name, size in self.sizes.items()}]
        if (largest := {name: size.most for name, size in self.sizes.items()}) not in found:
            found.append(largest)
        for _ in range(50 * self.hidden):
            drawn = {name: size.draw(random) for name, size in self.sizes.items()}
            if drawn not in found and drawn not in self.shapes:
                found.append(drawn)
            if len(found) >= self.hidden:
                break
        return found[: self.hidden]

    def draw(self, sizes: Sizes, seed: Sequence[int], kind: str = "normal") -> Data:
        """The arguments at a size, with inputs drawn by a seed and space for outputs."""
        random = np.random.default_rng(list(seed))
        arrays = {}
        for array in self.arrays:
            made = Buffer.empty(array, sizes)
            if array.role != "out":
                made.view[...] = _drawn(array, random, made.view.shape, kind)
            arrays[array.name] = made
        scalars = {one.name: one.number(sizes) for one in self.arguments if isinstance(one, Scalar)}
        return Data(sizes, arrays, scalars)

    def expected(self, data: Data, type: Any = np.float64) -> dict[str, Values]:
        """What the outputs must hold, by the reference, computed in float64 or in another type."""
        given: Json = {**data.sizes, **data.scalars}
        for array in self.arrays:
            if array.role != "out":
                values = data.arrays[array.name].view
                given[array.name] = values.astype(type if array.is_float else np.int64)
        if self.library == "torch":
            torch = import_module("torch")

            given = {name: torch.from_numpy(one) if isinstance(one, np.ndarray) else one for name, one in given.items()}
        with np.errstate(all="ignore"):
            found = self.reference(**named_by(self.reference, given))
        found = found if isinstance(found, dict) else {self.outputs[0].name: found}
        missing = [array.name for array in self.outputs if array.name not in found]
        if missing:
            raise TaskError(f"{self.name}: the reference does not return `{missing[0]}`")
        shapes = {array.name: array.extents(data.sizes) for array in self.outputs}
        return {name: np.broadcast_to(np.asarray(one), shapes[name]) for name, one in found.items() if name in shapes}


def named_by(function: Callable[..., object], given: Mapping[str, object]) -> Json:
    """Those arguments that a function names."""
    wanted = inspect.signature(function).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in wanted):
        return dict(given)
    names = [one.name for one in wanted if one.default is inspect.Parameter.empty or one.name in given]
    unknown = [name for name in names if name not in given]
    if unknown:
        raise TaskError(f"there is no argument or size `{unknown[0]}`: expected one of {', '.join(given)}")
    return {name: given[name] for name in names}


@dataclass(frozen=True)
class Buffer:
    """The memory of an array: all bytes, with gaps between rows and what is before it, and a view of its elements."""

    memory: npt.NDArray[np.uint8]
    offset: int
    """Bytes before the first element, for an address that is not aligned to more than the task says."""
    flat: Values
    view: Values

    @classmethod
    def empty(cls, array: Array, sizes: Sizes) -> Buffer:
        """Space for an array, filled with what no kernel writes by chance."""
        dtype = np.dtype(DTYPES[array.type])
        offset = array.alignment if array.alignment < 256 else 0
        memory = np.empty(offset + array.length(sizes) * dtype.itemsize, np.uint8)
        flat = memory[offset:].view(dtype)
        poison(np, flat)
        memory[:offset] = 0xA5
        steps = [step * dtype.itemsize for step in array.steps(sizes)]
        return cls(memory, offset, flat, np.lib.stride_tricks.as_strided(flat, array.extents(sizes), steps))

    def elements(self) -> npt.NDArray[np.bool_]:
        """Which bytes of the memory belong to elements, not to gaps."""
        marks = np.zeros(len(self.memory), bool)
        own = marks[self.offset :].reshape(-1, self.flat.itemsize)
        steps = [step // self.flat.itemsize for step in self.view.strides]
        at = sum((np.arange(extent) * step).reshape(-1, *[1] * (self.view.ndim - axis - 1))
                 for axis, (extent, step) in enumerate(zip(self.view.shape, steps, strict=True)))  # fmt: skip
        own[np.asarray(at).ravel()] = True
        return marks


@dataclass(frozen=True)
class Data:
    """The arguments of a call."""

    sizes: Sizes
    arrays: Mapping[str, Buffer]
    scalars: Mapping[str, int | float]


def _drawn(array: Array, random: np.random.Generator, shape: tuple[int, ...], kind: str) -> Any:
    """Values of an input."""
    if callable(array.values):
        return array.values(random, shape)
    word, *bounds = array.values.split()
    if word == "integers":
        return random.integers(int(bounds[0]), int(bounds[1]), shape)
    if word == "uniform":
        return random.uniform(float(bounds[0]), float(bounds[1]), shape)
    if word != "normal":
        raise TaskError(f"{array.name}: values={array.values!r}: expected normal, uniform or integers")
    normal = random.standard_normal(shape)
    size = prod(shape)
    if kind == "large":
        return normal * 30.0
    if kind == "of many magnitudes":
        return normal * np.exp2(random.integers(-8, 9, shape))
    if kind == "spikes":  # the last element of each row, and one more, matter most
        normal[..., -1] = 40.0 + random.random(normal[..., -1].shape)
        normal.reshape(-1)[random.integers(size)] = -50.0
        return normal
    if kind == "of one sign":
        return np.abs(normal) + 0.5
    if kind == "ties":
        return random.integers(-2, 3, shape)
    if kind == "cancelling":
        signs = np.where(np.arange(size) % 2, 1.0, -1.0).reshape(shape)
        return signs * (100 + normal)
    return normal * 2.0**-20 if kind == "tiny" else normal


def _run(path: str) -> Json:
    """The names that a file defines; what is wrong with it is said with its line."""
    try:
        return run_path(path)
    except SyntaxError as wrong:
        where = f", line {wrong.lineno}" if wrong.lineno else ""
        raise TaskError(f"`{path}`{where}: {wrong.msg}") from wrong
    except UnicodeDecodeError as wrong:
        raise TaskError(f"`{path}` is not a file of Python") from wrong
    except TaskError:
        raise
    except Exception as wrong:
        lines = [frame.lineno for frame in extract_tb(wrong.__traceback__) if frame.filename == path]
        where = f", line {lines[-1]}" if lines else ""
        raise TaskError(f"`{path}`{where}: {type(wrong).__name__}: {wrong}") from wrong


def load_task(path: str | Path) -> Task:
    """The task that a file defines as `task = Task(...)`, or a problem of KernelBench or GPU MODE.

    The file is run, and must be trusted.
    """
    names = {} if Path(path).is_dir() else _run(str(path))
    found = names.get("task")
    if isinstance(found, Task):
        return found
    if Path(path).is_dir() or {"Model", "get_inputs"} <= names.keys():
        from ptxlab.verify.foreign import foreign_task

        return foreign_task(path)
    raise TaskError(f"`{path}` has no `task = Task(...)`")

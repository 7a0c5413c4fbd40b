"""Problems of others as tasks: a file of KernelBench (`Model`, `get_inputs`), a folder of GPU MODE (`task.yml`).

Their own Python draws inputs and computes the reference, by torch on this machine; `"cuda"` is the host's memory.
Submissions define `ModelNew` or `custom_kernel`; what these return is the output.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from math import gcd
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ptxlab.device.array_types import DTYPES
from ptxlab.frameworks.arrays import Arrays
from ptxlab.frameworks.torch_as_cpu import torch_as_cpu
from ptxlab.verify.task import Array, Buffer, Data, Size, Sizes, Task, TaskError, Values

_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "e4m3",
          "float8_e5m2": "e5m2", "int8": "s8", "uint8": "u8", "int32": "s32", "int64": "s64", "bool": "u8",
          "float4_e2m1fn_x2": "u8"}  # fmt: skip
LARGEST = 96  # of a size that is drawn
MOST_ELEMENTS = 1 << 17  # of all inputs
SEED = 7  # of weights, which a submission has, too


def torch() -> Any:
    """The package; `TaskError` if it is not installed."""
    try:
        return import_module("torch")
    except ModuleNotFoundError:
        raise TaskError("the problem is written with torch, which is not installed") from None


def leaves(data: object) -> list[Any]:
    """The tensors in nested lists, tuples and dictionaries, in order."""
    if hasattr(data, "untyped_storage"):
        return [data]
    values = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else ()
    return [one for value in values for one in leaves(value)]


def rebuilt(data: object, tensors: Iterator[object]) -> Any:
    """The same structure with other tensors."""
    if hasattr(data, "untyped_storage"):
        return next(tensors)
    if isinstance(data, dict):
        return {key: rebuilt(value, tensors) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)([rebuilt(value, tensors) for value in data])
    return data


def type_of_tensor(tensor: Any) -> str:
    """The type of its elements, as PTX has it; two numbers of four bits are a byte."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _TYPES:
        raise TaskError(f"tensors of {name} are not supported")
    return _TYPES[name]


def as_array(tensor: Any) -> Values:
    """A tensor's elements, in its own memory."""
    type = type_of_tensor(tensor)
    width = np.dtype(DTYPES[type]).itemsize
    raw = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[width]
    found: Values = tensor.detach().view(getattr(torch(), raw)).numpy().view(DTYPES[type])
    return found


def as_tensor(array: Values, like: Any) -> Any:
    """A tensor with an array's elements, of the type and the strides of another."""
    made = torch().empty_strided(like.shape, like.stride(), dtype=like.dtype)
    as_array(made)[...] = array
    return made


@dataclass(frozen=True)
class KernelBench:
    """`Model`, `get_inputs` and `get_init_inputs` of a file; sizes are its constants."""

    path: Path
    entry: str = "ModelNew"
    target: str = "sm_90a"

    @cached_property
    def _code(self) -> Any:
        return compile(self.path.read_text("utf-8"), str(self.path), "exec")

    def names(self, sizes: Mapping[str, int]) -> dict[str, Any]:
        """The file, run with other constants."""
        found: dict[str, Any] = {"__name__": "problem"}
        exec(self._code, found)
        found.update(sizes)  # functions read them when they are called
        return found

    def constants(self) -> dict[str, int]:
        """Whole numbers that the file names."""
        return {
            name: value for name, value in self.names({}).items() if type(value) is int and not name.startswith("_")
        }

    def sizes(self) -> tuple[dict[str, Size], list[Sizes]]:
        """The values that constants may have: smaller ones, where the reference takes them."""
        fixed = {name: Size(value, value) for name, value in self.constants().items() if value > 0}
        found, steps = dict(fixed), dict[str, int]()
        for name in [name for name, size in fixed.items() if size.most > 16]:
            values = {other: one.least for other, one in found.items()}
            for step in (1, 16, 32):
                if self._takes(values | {name: 3 * step if step > 1 else 37}):
                    steps[name] = step
                    found[name] = Size(step, min(LARGEST, fixed[name].most // step * step), step)
                    break
            else:
                continue
            if not self._takes({other: one.least for other, one in found.items()}):  # a window needs more
                found[name] = Size(min(32, found[name].most), found[name].most, steps[name])
        while self._elements(found) > MOST_ELEMENTS:  # more than the emulator runs in seconds
            name = max(found, key=lambda one: found[one].most // found[one].least)
            size = found[name]
            if size.most < 2 * size.least:
                break
            found[name] = Size(size.least, size.most // 2 // size.step * size.step, size.step)
        return (found if self._takes({name: size.least for name, size in found.items()}) else fixed), []

    def _elements(self, sizes: Mapping[str, Size]) -> int:
        """How many there are in the inputs at the largest sizes."""
        inputs = self.inputs({name: size.most for name, size in sizes.items()}, 0)
        return sum(int(one.numel()) for one in leaves(inputs))

    def _takes(self, sizes: Sizes) -> bool:
        try:
            inputs = self.inputs(sizes, 0)
            self.reference(sizes, inputs, "float32")
        except (RuntimeError, ValueError, IndexError, AssertionError, TypeError):
            return False
        return True

    def inputs(self, sizes: Sizes, seed: int) -> Any:
        """Fresh inputs."""
        torch().manual_seed(seed)
        return list(self.names(sizes)["get_inputs"]())

    def model(self, names: dict[str, Any], sizes: Sizes, entry: str) -> Any:
        """A model with the weights that the seed gives."""
        own = self.names(sizes)
        torch().manual_seed(SEED)
        return names[entry](*own["get_init_inputs"]())

    def reference(self, sizes: Sizes, inputs: Any, type: str = "float64") -> Any:
        """What `Model` gives, computed in a type."""
        dtype = getattr(torch(), type)
        model = self.model(self.names(sizes), sizes, "Model").to(dtype)
        given = [
            one.to(dtype) if hasattr(one, "is_floating_point") and one.is_floating_point() else one for one in inputs
        ]
        with torch().no_grad():
            return model(*given)

    def call(self, names: dict[str, Any], sizes: Sizes, inputs: Any) -> Any:
        """What a submission gives."""
        model = self.model(names, sizes, self.entry)
        with torch().no_grad():
            return model(*inputs)


@dataclass(frozen=True)
class GpuMode:
    """A folder with `task.yml` and `reference.py`: `generate_input`, `ref_kernel`."""

    path: Path
    entry: str = "custom_kernel"
    target: str = "sm_100a"
    loaded: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def names(self) -> dict[str, Any]:
        """What `reference.py` defines."""
        torch()  # imported before it is made to know a GPU
        if not self.loaded:
            with own_modules([self.path, self.path.parent]):
                exec(compile((self.path / "reference.py").read_text("utf-8"), "reference.py", "exec"), self.loaded)
        return self.loaded

    def specs(self, section: str) -> list[dict[str, Any]]:
        """The shapes of `tests` or `benchmarks`."""
        text = (self.path / "task.yml").read_text("utf-8")
        part = re.search(rf"^{section}:\s*\n((?:\s+-.*\n|\s*\n|\s*#.*\n)*)", text, re.MULTILINE)
        lines = re.findall(r"-\s*(\{.*\})", part[1]) if part else []
        return [ast.literal_eval(re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', line)) for line in lines]

    def sizes(self) -> tuple[dict[str, Size], list[Sizes]]:
        """Multiples of what the numbers in the tests have in common, small ones; the shapes of the benchmarks."""
        tests = [_flat(one) for one in self.specs("tests")] or [_flat(one) for one in self.specs("benchmarks")]
        if not tests:
            raise TaskError(f"{self.path / 'task.yml'} has no tests")
        first = min(tests, key=lambda one: sum(one.values()))
        same = [one for one in tests if one.keys() == first.keys()]
        found = {}
        for name in first:
            step = gcd(*(one[name] for one in same))
            least = min(one[name] for one in same)
            found[name] = Size(step, 2 * step, step) if least > 8 else Size(least, least)
        return found, [_flat(one) for one in self.specs("benchmarks")]

    def inputs(self, sizes: Sizes, seed: int) -> Any:
        """Fresh inputs."""
        generate = self.names()["generate_input"]
        with torch_as_cpu(Arrays(), self.target, True):
            return generate(**_nested(sizes), seed=seed)

    def reference(self, sizes: Sizes, inputs: object, type: str = "float64") -> Any:
        """What `ref_kernel` gives; products of NVFP4 matrices are computed here."""
        with torch_as_cpu(Arrays(), self.target, True), patch.object(torch(), "_scaled_mm", scaled_mm):
            return self.names()["ref_kernel"](inputs)

    def call(self, names: dict[str, Any], sizes: Sizes, inputs: object) -> Any:
        """What a submission gives."""
        return names[self.entry](inputs)


@contextmanager
def own_modules(folders: Sequence[Path]) -> Iterator[None]:
    """Have modules imported from folders first, and forgotten afterwards, names of tasks being alike."""
    before, paths = set(sys.modules), list(sys.path)
    sys.path[:0] = map(str, folders)
    try:
        yield
    finally:
        sys.path[:] = paths
        roots = {str(one.resolve()) for one in folders}
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and str(Path(file).resolve().parent) in roots:
                del sys.modules[name]


def _flat(spec: Mapping[str, Any]) -> Sizes:
    """A shape without its seed; lists become `m0`, `m1`, …"""
    found: Sizes = {}
    for name, value in spec.items():
        if name != "seed":
            found |= {f"{name}{at}": one for at, one in enumerate(value)} if isinstance(value, list) else {name: value}
    return found


def _nested(sizes: Mapping[str, int]) -> dict[str, Any]:
    """Back from `m0`, `m1`, … to lists."""
    found: dict[str, Any] = {}
    for name, value in sizes.items():
        stem = name.rstrip("0123456789")
        if stem != name:
            found.setdefault(stem, []).append(value)
        else:
            found[name] = value
    return found


def scaled_mm(a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any = None, out_dtype: Any = None, **_: Any) -> Any:
    """`torch._scaled_mm` of NVFP4 matrices, in float64; factors are in blocks of 128 rows and four."""
    left, right = (_decoded(one, scale) for one, scale in ((a, scale_a), (b.transpose(0, 1), scale_b)))
    return (left @ right.T).to(out_dtype or torch().float32)


def _decoded(packed: Any, factors: Any) -> Any:
    values = torch().tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch().float64)
    codes = packed.contiguous().view(torch().uint8).long()
    codes = torch().stack([codes % 16, codes // 16], -1).reshape(codes.shape[0], -1)
    numbers = values[codes % 8] * (1 - 2 * (codes // 8))
    rows, k = numbers.shape
    blocks = factors.reshape(-1, -(-k // 64), 32, 4, 4).double()
    scales = blocks.permute(0, 3, 2, 1, 4).reshape(blocks.shape[0] * 128, -1)[:rows, : k // 16]
    return (numbers.reshape(rows, -1, 16) * scales[..., None]).reshape(rows, k)


Problem = KernelBench | GpuMode


def open_problem(path: Path) -> Problem:
    """The problem of a file or a folder."""
    if path.is_dir() and (path / "task.yml").is_file():
        return GpuMode(path.resolve())
    return KernelBench(path.resolve())


@dataclass(frozen=True)
class ForeignTask(Task):
    """A task whose inputs and reference are those of a problem."""

    problem: Any = None
    outs: Mapping[str, int] = field(default_factory=dict)
    """Outputs that are among the inputs, by name: which of the tensors."""

    def draw(self, sizes: Sizes, seed: Sequence[int], kind: str = "normal") -> Data:
        """Inputs as the problem draws them; numbers of four bits in all patterns, where they are adversarial.

        Problems draw few of these: of GPU MODE's nvfp4_gemv, one of the two numbers in each byte is always 0.
        """
        random = np.random.default_rng(list(seed))
        drawn = leaves(self.problem.inputs(sizes, int(random.integers(1 << 31))))
        arrays = {array.name: Buffer.empty(array, sizes) for array in self.arrays}
        for number, tensor in enumerate(drawn):
            if number not in self.outs.values():
                view = arrays[f"t{number}"].view
                is_packed = "float4" in str(tensor.dtype) and kind != "normal"
                view[...] = random.integers(0, 256, view.shape, np.uint8) if is_packed else as_array(tensor)
        return Data(sizes, arrays, {})

    def expected(self, data: Data, type: Any = np.float64) -> dict[str, Values]:
        """What the problem's reference gives of the same inputs."""
        structure = self.problem.inputs(data.sizes, 0)
        names = [next((name for name, at in self.outs.items() if at == number), f"t{number}")
                 for number in range(len(leaves(structure)))]  # fmt: skip
        tensors = [tensor if name in self.outs else as_tensor(data.arrays[name].view, tensor)
                   for name, tensor in zip(names, leaves(structure), strict=True)]  # fmt: skip
        word = "float32" if np.dtype(type) == np.float32 else "float64"
        found = leaves(self.problem.reference(data.sizes, rebuilt(structure, iter(tensors)), word))
        return {array.name: one.double().numpy() for array, one in zip(self.outputs, found, strict=True)}


def foreign_task(path: str | Path) -> ForeignTask:
    """The task of a problem of KernelBench or GPU MODE."""
    problem = open_problem(Path(path))
    sizes, timed = problem.sizes()
    least = {name: size.least for name, size in sizes.items()}

    def described(sizes: Mapping[str, int]) -> tuple[list[Any], list[Any]]:
        inputs = problem.inputs(dict(sizes), 0)
        return leaves(inputs), leaves(problem.reference(dict(sizes), inputs))

    given, results = described(least)
    outs: dict[str, int] = {}
    for number, result in enumerate(results):
        same = [at for at, one in enumerate(given) if one.data_ptr() == result.data_ptr()]
        last = len(given) - 1
        is_space = given[last].shape == result.shape and isinstance(problem, GpuMode) and len(results) == 1
        if same or is_space:
            outs[f"out{number}"] = same[0] if same else last

    def extents(which: int, is_result: bool) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
        return lambda sizes: tuple(described(sizes)[is_result][which].shape)

    def steps(which: int) -> Callable[[Mapping[str, int]], tuple[int, ...]]:
        return lambda sizes: tuple(described(sizes)[0][which].stride())

    arguments = [Array(f"t{at}", type_of_tensor(one), extents(at, False), strides=steps(at))
                 for at, one in enumerate(given) if at not in outs.values()]  # fmt: skip
    for number, result in enumerate(results):
        name = f"out{number}"
        at = outs.get(name)
        type = "f32" if isinstance(problem, KernelBench) and result.is_floating_point() else type_of_tensor(result)
        if at is not None:
            arguments.append(Array(name, type_of_tensor(given[at]), extents(at, False), "out", strides=steps(at)))
        else:
            arguments.append(Array(name, type, extents(number, True), "out"))
    task = ForeignTask(
        Path(path).stem, lambda: None, sizes, arguments, timed=timed, tolerance=2e-3, library="torch", hidden=3,
        seeds=2, python=f"{problem.entry}:{Path(path).resolve()}", is_reference_exact=False, problem=problem, outs=outs,
        notes={"outs": outs},
    )  # fmt: skip
    return replace(task, tolerance=1e-4) if isinstance(problem, KernelBench) else task

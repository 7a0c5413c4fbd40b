"""In the process of a submission in Python: its launches are written down instead of run, and sent as JSON.

It is called twice for each size, with other data in the same arrays. What the host computes of data would differ, and
is refused: only kernels compute.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from ptxlab import author, ir
from ptxlab.device.array_types import DTYPES, type_of
from ptxlab.device.host_memory import HostPointer
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.device.structures import PointerArray
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.frameworks.arrays import Arrays
from ptxlab.frameworks.torch_as_cpu import torch_as_cpu
from ptxlab.measure.entry import Launch
from ptxlab.syntax import format
from ptxlab.values import Json
from ptxlab.verify.host_code import InlineError
from ptxlab.verify.inline import loader

WATCHED = ("builtins", "time", "math", "json", "numpy", "numpy.testing", "torch", "torch.testing", "torch.cuda",
           "torch.nn.functional", "ptxlab", "ptxlab.verify", "ptxlab.verify.judging", "ptxlab.equal")  # fmt: skip


class RefusedError(Exception):
    """Something that is not a launch of kernels; `code` names it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class CapturedMemory:
    """Memory that launches may refer to, by its addresses."""

    names: list[tuple[int, int, str]]
    """The first address, the last, and the name."""
    spaces: Json
    kept: list[Any]

    def reference(self, address: int, size: int, owner: Any, data: Callable[[], Any]) -> Json:
        """An address as the name of an array and an offset; memory that is not known is a new workspace."""
        for start, end, name in self.names:
            if start <= address < max(end, start + 1):
                return {"array": name, "offset": address - start}
        name = f"workspace{len(self.spaces)}"
        self.spaces[name] = data()
        self.names.append((address, address + size, name))
        self.kept.append(owner)  # so that its address is not given to another
        return {"array": name, "offset": 0}


class Capture:
    """The launches of one call."""

    def __init__(self, arrays: Json) -> None:
        names = [(address_of(one), address_of(one) + one.nbytes, name) for name, one in arrays.items()]
        self.memory = CapturedMemory(names, {}, [])
        self.calls: list[Json] = []

    def launch(self, kernel: ir.Function, args: Sequence[object], options: LaunchOptions) -> Result:
        """Write a launch down; this is what `kernel.launch` calls here."""
        module = kernel.module
        assert module is not None
        if options.stream is not None and _number(options.stream):
            raise RefusedError("own-stream", "a launch on a stream of its own: nothing orders it before the harness "
                               "reads the outputs")  # fmt: skip
        text = module.source.text if module.source is not None else format(module)
        self.calls.append({
            "text": text, "name": kernel.name, "entry": kernel.name, "grid": list(options.grid),
            "block": list(options.block), "shared": int(options.shared),
            "cluster": None if options.cluster is None else list(options.cluster),
            "cooperative": bool(options.cooperative), "args": [self.argument(one) for one in args],
        })  # fmt: skip
        return Result()

    def argument(self, value: object) -> Json:
        """An argument as plain values."""
        if value is None:
            return {}
        if isinstance(value, HostPointer):
            regions = value.memory.regions.values()
            region = next((one for one in regions if 0 <= value.address - one.base < max(one.size, 1)), None)
            if region is None:
                return {"scalar": value.address}
            found = self.memory.reference(region.data, region.size, region.owner, lambda: region.owner.copy())
            return {**found, "offset": found["offset"] + value.address - region.base}
        if isinstance(value, TensorMap):
            on = self.argument(value.array)
            kept = {one.name: getattr(value, one.name) for one in fields(TensorMap) if one.name != "array"}
            kept["offset"] = kept["offset"] + on["offset"]
            return {"map": kept, "on": on["array"]}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, PointerArray):
            return {"pointers": [self.argument(one) for one in value]}
        if isinstance(value, dict):
            return {"offsets": {str(key): self.argument(one) for key, one in value.items()}}
        if hasattr(value, "detach"):
            value = value.detach().numpy()
        if isinstance(value, np.ndarray) and value.ndim:
            return self.memory.reference(address_of(value), value.nbytes, value, lambda: value)
        if isinstance(value, (list, tuple)):
            return {"items": [self.argument(one) for one in value]}
        if isinstance(value, np.generic):
            return {"scalar": value.item(), "type": type_of(value)}
        if isinstance(value, (bool, int, float)):
            return {"scalar": value}
        raise RefusedError("no-launch", f"an argument of type {type(value).__name__} cannot be sent")

    def output(self, name: str, tensor: Any) -> tuple[str, Json | None]:
        """Where a tensor is that is returned; None if it is the argument for it."""
        address = int(tensor.untyped_storage().data_ptr()) + int(tensor.storage_offset()) * int(tensor.element_size())
        for start, end, own in self.memory.names:
            if start <= address < end and own == name:
                return name, None
            if start <= address < end and own not in self.memory.spaces:
                raise RefusedError("aliased-output", f"what it returns is the memory of its input `{own}`")
            if start <= address < end:
                return name, {"array": own, "offset": address - start, "strides": list(tensor.stride())}
        raise RefusedError("no-kernel", "no kernel gets the memory of what it returns: only kernels compute")

    def answer(self) -> Json:
        """All of it."""
        spaces = {}
        for name, array in self.memory.spaces.items():
            content = np.ascontiguousarray(array)
            data = base64.b64encode(content.tobytes()).decode() if content.view(np.uint8).any() else ""
            spaces[name] = {"type": type_of(content), "shape": list(content.shape), "data": data}
        return {"calls": self.calls, "workspaces": spaces}


def address_of(array: Any) -> int:
    """Where an array is."""
    return int(array.__array_interface__["data"][0])


def _number(stream: object) -> int:
    return int(stream if isinstance(stream, int) else getattr(stream, "cuda_stream", 1))


Call = Callable[[Capture], Callable[[], Json]]
"""Calls a submission; what it gives says afterwards where the outputs are."""


class LoadedSubmission:
    """The submission, loaded once."""

    def __init__(self, path: Path, convention: str) -> None:
        entry, _, problem = convention.partition(":")
        self.problem: Any = None
        if problem:
            from ptxlab.verify.foreign import open_problem

            self.problem = open_problem(Path(problem))
            sys.path[:0] = [problem, str(Path(problem).parent)]
            _follow_extensions(self.problem.target)
        self.known = _functions()
        with captured(Capture({}), self.problem):
            self.names = run_path(str(path), run_name="submission")
        found = self.names.get(entry)
        if not callable(found):
            raise RefusedError("no-kernel", f"{path.name} defines no `{entry}`")
        self.function: Callable[..., Any] = found

    def answer(self, request: dict[str, object]) -> Json:
        """The launches at some sizes; of two calls with other data, which must be alike."""
        arrays, call = self._of_problem(request) if self.problem is not None else self._of_task(request)
        answers = []
        for seed in (1, 2):
            random = np.random.default_rng(seed)
            for array in arrays.values():
                array[...] = random.integers(0, 3, array.shape).astype(array.dtype)
            capture = Capture(arrays)
            with captured(capture, self.problem):
                found = call(capture)
            answers.append({**found(), **capture.answer()})
        self._compare(*answers)
        return answers[0] | {"patched": list(_replaced(self.known))}

    def _of_task(self, request: dict[str, object]) -> tuple[Json, Call]:
        """The arrays of a task, and what calls `launch`."""
        arrays, given = _arguments(request)

        def call(capture: Capture) -> Callable[[], Json]:
            _call_launch(self.function, capture, given)
            return dict

        return arrays, call

    def _of_problem(self, request: Json) -> tuple[Json, Call]:
        """The tensors of a problem of others, and what calls a submission: the tensors that it returns are outputs."""
        from ptxlab.verify.foreign import as_array, leaves

        wanted = [one["name"] for one in request["arguments"] if one["name"].startswith("out")]
        named = {at: name for name, at in request["notes"]["outs"].items()}
        inputs = self.problem.inputs(request["sizes"], 1)
        arrays = {named.get(at, f"t{at}"): _whole(as_array(tensor)) for at, tensor in enumerate(leaves(inputs))}

        def call(capture: Capture) -> Callable[[], Json]:
            returned = leaves(self.problem.call(self.names, request["sizes"], inputs))
            if len(returned) != len(wanted):
                raise RefusedError("no-kernel", f"it returns {len(returned)} tensors, and {len(wanted)} are wanted")
            return lambda: {"outputs": dict(filter(all, map(capture.output, wanted, returned)))}

        return arrays, call

    def _compare(self, first: Json, second: Json) -> None:
        if not first["calls"]:
            raise RefusedError("no-kernel", "its Python launches no kernel: only kernels compute")
        if len(second["calls"]) < len(first["calls"]):
            raise RefusedError("cached-result", f"the first call launches {len(first['calls'])} kernels, the second "
                               f"{len(second['calls'])}: results are kept from call to call")  # fmt: skip
        if first["workspaces"] != second["workspaces"] and self.problem is not None:
            raise RefusedError("unsupported", "torch computes an argument of a kernel from the inputs, or copies them: "
                               "what torch does with inputs is not followed")  # fmt: skip
        if first["workspaces"] != second["workspaces"]:
            raise RefusedError("host-computation", "its Python computes an argument from the inputs: only kernels "
                               "compute")  # fmt: skip
        if first["calls"] != second["calls"]:
            raise RefusedError("host-computation", "its launches depend on the values of inputs")


def _arguments(request: Json) -> tuple[Json, Json]:
    """The memory of arrays, and the arguments by name: arrays in their shapes, scalars, sizes."""
    arrays, given = {}, dict(request["sizes"])
    for one in request["arguments"]:
        if "scalar" in one:
            given[one["name"]] = one["scalar"]
            continue
        flat = np.zeros(one["length"], DTYPES[one["type"]])
        arrays[one["name"]] = flat
        steps = [step * flat.itemsize for step in one["strides"]]
        given[one["name"]] = np.lib.stride_tricks.as_strided(flat, one["shape"], steps)
    return arrays, given


def _call_launch(function: Callable[..., Any], capture: Capture, given: Json) -> None:
    """`launch(x, y, rows)` launches, or returns what is to be launched."""
    from ptxlab.verify.task import named_by

    found = function(**named_by(function, given))
    for one in [found] if isinstance(found, Launch) else found or ():
        kernel = one.kernel
        args = kernel.passed_args(one.args) if isinstance(kernel, author.Kernel) else one.args
        options = LaunchOptions(one.grid, one.block, shared=one.shared, cluster=one.cluster)
        capture.launch(one.function, args, options)


def _whole(array: Any) -> Any:
    """All memory from the first element of an array to its last, as one row."""
    length = 1 + sum(
        (extent - 1) * (step // array.itemsize) for extent, step in zip(array.shape, array.strides, strict=True)
    )
    return np.lib.stride_tricks.as_strided(array, (length,), (array.itemsize,))


def _follow_extensions(target: str) -> None:
    """Have extensions in C++ launch their kernels here; those that are built from files are not followed."""
    torch = import_module("torch")
    torch.use_deterministic_algorithms(True)  # fills what `torch.empty` makes
    extensions = import_module("torch.utils.cpp_extension")

    def refuse(*_: object, **__: object) -> None:
        raise RefusedError("unsupported", "an extension of files (`load`): use `load_inline`, or submit its kernels as "
                           "a .cu file, with `// launch:` lines")  # fmt: skip

    vars(extensions).update(load=refuse, load_inline=loader(torch, target))


@contextmanager
def captured(capture: Capture, problem: Any = None) -> Iterator[None]:
    """Have launches written down, those of Triton's kernels, too; for problems of others, torch knows a GPU."""
    target = {} if problem is None else {"target": problem.target}
    if problem is not None:
        with suppress(ModuleNotFoundError):
            import_module("triton")
    keep = Arrays.address

    def kept(self: Arrays, value: object, name: str = "a tensor") -> int:
        capture.memory.kept.append(value)  # so that its memory is not given to another tensor
        return keep(self, value, name)

    door = import_module("ptxlab.launch")
    before = door.launch
    door.launch = capture.launch  # type: ignore[attr-defined]
    try:
        if "triton" in sys.modules:
            from ptxlab.frameworks.triton import emulated

            with patch.object(Arrays, "address", kept), emulated(**target):
                yield
        elif problem is not None:
            with torch_as_cpu(Arrays(), problem.target, True):
                yield
        else:
            yield
    finally:
        door.launch = before  # type: ignore[attr-defined]


def _functions() -> dict[tuple[str, str], Any]:
    """Functions that a harness may rely on, as they are."""
    modules = [(name, sys.modules[name]) for name in WATCHED if isinstance(sys.modules.get(name), ModuleType)]
    return {
        (name, key): value for name, module in modules for key, value in list(vars(module).items()) if callable(value)
    }


def _replaced(known: dict[tuple[str, str], object]) -> Iterator[str]:
    """The functions that are others now."""
    for (name, key), value in known.items():
        if vars(sys.modules[name]).get(key, value) is not value:
            yield f"`{name}.{key}`"


def _limit(memory: int, seconds: int) -> None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def serve() -> None:
    """In the new process: answer requests, a line each, until there are no more."""
    limits, convention, path = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the submission prints is not an answer
    _limit(limits["memory"], limits["seconds"])
    program: LoadedSubmission | None = None
    for line in sys.stdin:
        try:
            program = program or LoadedSubmission(path, convention)
            said = program.answer(json.loads(line))
        except RefusedError as refused:
            said = {"error": str(refused), "code": refused.code}
        except InlineError as unknown:
            said = {"error": f"an extension in C++: {unknown}", "code": "unsupported"}
        except BaseException as wrong:
            said = {"error": _problem(wrong, path), "code": "python-failed"}
        out.write(json.dumps(said) + "\n")
        out.flush()


def _problem(wrong: BaseException, path: Path) -> str:
    """What went wrong, with the line of the submission."""
    lines = [one.lineno for one in traceback.extract_tb(wrong.__traceback__) if one.filename == str(path)]
    where = f"{path.name}:{lines[-1]}: " if lines else f"{path.name}: "
    return f"{where}{type(wrong).__name__}: {wrong}"[:1500]

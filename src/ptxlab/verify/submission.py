"""What is judged: a file with kernels, and how they are launched at given sizes.

A `.ptx` or `.cu` file says it in comments; arguments are those of the task unless `args` names them:

    // launch: partial grid=ceil_div(n, 256) block=256 args=x,sums,n
    // launch: total grid=1 block=32 args=sums,y,ceil_div(n,256)
    // workspace: sums f32[ceil_div(n, 256)]

A `.py` file is run in a process of its own (`python_process`); its PTX and its launches come back, as plain values.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab import ir
from ptxlab.device.array_types import DTYPES
from ptxlab.device.host_memory import HostMemory, HostPointer
from ptxlab.device.structures import PointerArray
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.launch.contexts import context_of
from ptxlab.measure import Launch
from ptxlab.report import Diagnostic, PtxError, Source
from ptxlab.syntax import load, parse
from ptxlab.verify.formulas import FormulaError, evaluate, split
from ptxlab.verify.task import Array, Data, Scalar, Sizes, Task

LARGEST = 16 << 20  # bytes of a file, and of all tables that a submission brings along
MEMORY = 1 << 30  # bytes of workspaces
SUFFIXES = (".ptx", ".cu", ".py")
_LINE = re.compile(r"^[ \t]*//[ \t]*(launch|workspace|target):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_OPTION = re.compile(r"(\w+)=((?:\([^()]*\)|[^\s()]|(?<=,) )+)")
_WORKSPACE = re.compile(r"(\w+) +(\w+)\[(.+)\]")

Reference = dict[str, Any]
"""An argument as plain values: `{"array": "x", "offset": 0}`, `{"scalar": 3}`, `{"map": …}`, `{"items": […]}`."""


class SubmissionError(Exception):
    """A submission that cannot be judged: `code` names what is wrong with it."""

    def __init__(self, code: str, text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(text)
        self.code, self.diagnostics = code, list(diagnostics)


@dataclass(frozen=True)
class PlannedLaunch:
    """One launch, without the data."""

    module: ir.Module
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: Sequence[Reference]
    shared: int = 0
    cluster: tuple[int, ...] | None = None
    cooperative: bool = False

    @property
    def kernel(self) -> ir.Function:
        """The kernel that is launched."""
        found: ir.Function = self.module[self.entry]
        return found


@dataclass(frozen=True)
class LaunchPlan:
    """All launches at some sizes, in order, and the memory that they use beside the arguments."""

    calls: Sequence[PlannedLaunch]
    workspaces: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """What they hold before the first launch."""
    outputs: Mapping[str, Reference] = field(default_factory=dict)
    """Outputs that the submission has in memory of its own: the workspace, an offset, and strides."""

    def launches(self, data: Data) -> list[Launch]:
        """The launches with data; workspaces are new ones."""
        return self.bound(data)[0]

    def bound(self, data: Data) -> tuple[list[Launch], Callable[[], None]]:
        """The launches with data, and what brings outputs to where they are compared, after them."""
        own = {name: content.copy() for name, content in self.workspaces.items()}

        def finish() -> None:
            for name, given in self.outputs.items():
                view = data.arrays[name].view
                before, after = (_viewed(one[given["array"]], given, view) for one in (self.workspaces, own))
                # What is as `torch.empty` left it, NaN or all ones, was not written.
                width = view.dtype.itemsize
                was, now = (
                    np.ascontiguousarray(one).view(np.uint8).reshape(*view.shape, width) for one in (before, after)
                )
                blank = np.isnan(before) if view.dtype.kind in "fV" else (was == 0xFF).all(-1)
                written = (was != now).any(-1) | ~blank
                view[written] = after[written]

        return self._launches(data, own), finish

    def _launches(self, data: Data, own: Mapping[str, Any]) -> list[Launch]:
        memory = {name: buffer.flat for name, buffer in data.arrays.items()}
        memory |= own
        offsets = {name: buffer.offset for name, buffer in data.arrays.items()}
        whole = {name: buffer.memory for name, buffer in data.arrays.items()}
        return [self._launch(call, memory, whole, offsets) for call in self.calls]

    def _launch(
        self, call: PlannedLaunch, memory: dict[str, Any], whole: dict[str, Any], offsets: dict[str, int]
    ) -> Launch:
        named = list(_names(call.args))
        if any(offset or offsets.get(name, 0) for name, offset in named):
            memory = dict(memory)
            space = HostMemory()
            for name in dict.fromkeys(name for name, _ in named):
                # An address inside of an array, or one that is not aligned: as pointers, which may be any.
                place = whole.get(name, memory[name])
                memory[name] = _Placed(space, space.add(place.reshape(-1).view(np.uint8), f"`{name}`").base
                                       + offsets.get(name, 0), name)  # fmt: skip
        args = [_argument(one, memory) for one in call.args]
        return Launch(call.kernel, call.grid, call.block, args, call.shared, call.cluster)


def _viewed(memory: npt.NDArray[Any], given: Reference, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An output in memory of a submission."""
    flat = memory.reshape(-1).view(np.uint8)[int(given["offset"]) :]
    flat = flat[: len(flat) // like.itemsize * like.itemsize].view(like.dtype)
    steps = [int(one) for one in given["strides"]]
    last = sum((extent - 1) * step for extent, step in zip(like.shape, steps, strict=True))
    if min(steps, default=0) < 0 or not 0 <= last < len(flat):
        raise SubmissionError("no-kernel", "an output is not as large as that of the reference")
    return np.lib.stride_tricks.as_strided(flat, like.shape, [step * like.itemsize for step in steps])


@dataclass(frozen=True)
class _Placed:
    """An array at an address that was chosen for it."""

    space: HostMemory
    address: int
    name: str


def _names(args: Sequence[Any]) -> Iterator[tuple[str, int]]:
    """The memory that arguments refer to, with offsets; tensor maps have their own."""
    for one in args:
        if "array" in one:
            yield one["array"], int(one.get("offset", 0))
        for key in ("items", "pointers"):
            yield from _names(one.get(key, ()))
        yield from _names(list(one.get("offsets", {}).values()))


def _argument(given: Reference, memory: Mapping[str, object]) -> Any:
    """An argument of a launch."""
    if "array" in given:
        found = memory[given["array"]]
        return (
            HostPointer(found.space, found.address + int(given.get("offset", 0)), found.name)
            if isinstance(found, _Placed)
            else found
        )
    if "scalar" in given:
        dtype = given.get("type")
        return DTYPES[dtype](given["scalar"]) if dtype else given["scalar"]
    if "bytes" in given:
        return bytes.fromhex(given["bytes"])
    if "map" in given:
        array = memory[given["on"]]
        if isinstance(array, _Placed):
            raise SubmissionError("unsupported", "a tensor map beside a pointer into an array, or one of a task with "
                                  "its own alignment")  # fmt: skip
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given["map"].items()
        }
        return TensorMap(array=array, **fields)
    if "offsets" in given:
        return {int(key): _argument(one, memory) for key, one in given["offsets"].items()}
    if "pointers" in given:
        return PointerArray([_argument(one, memory) for one in given["pointers"]])
    if "items" in given:
        return tuple(_argument(one, memory) for one in given["items"])
    return None


def _check_size(spaces: Mapping[str, tuple[list[int], np.dtype[Any]]]) -> None:
    """Refuse workspaces that are too large, by their shapes and types."""
    total = sum(prod(max(one, 0) for one in shape) * dtype.itemsize for shape, dtype in spaces.values())
    if total > MEMORY or any(min(shape, default=0) < 0 for shape, _ in spaces.values()):
        raise SubmissionError("too-large", f"workspaces of {total:,} bytes; {MEMORY:,} are allowed")


class Submission:
    """A file that is judged."""

    def __init__(self, path: Path, task: Task) -> None:
        self.path, self.task = path, task
        self.modules: list[ir.Module] = []

    def plan(self, sizes: Sizes) -> LaunchPlan:
        """What it launches at these sizes."""
        raise NotImplementedError

    def restart(self) -> None:
        """Have variables of its modules as if nothing had been launched yet."""
        for module in self.modules:
            context_of(module).start_anew()

    def close(self) -> None:
        """End what was started for it."""


class FileSubmission(Submission):
    """PTX or CUDA C++, with its launches in comments."""

    def __init__(self, path: Path, task: Task) -> None:
        super().__init__(path, task)
        text = path.read_text("utf-8", "replace")
        lines = [(found[1], found[2]) for found in _LINE.finditer(text)]
        self.spaces = [self._workspace(said) for word, said in lines if word == "workspace"]
        said = [said for word, said in lines if word == "launch"] or ([task.launch] if task.launch else [])
        if not said:
            raise SubmissionError(
                "no-launch", f"{path.name} does not say how it is launched: `// launch: grid=... block=...`"
            )
        target = next((said for word, said in lines if word == "target"), None)
        self.module = self._module(path, target or next(iter(task.targets), None))
        self.modules = [self.module]
        self.lines = [self._line(one) for one in said]

    def _module(self, path: Path, target: str | None) -> ir.Module:
        if path.suffix == ".ptx":
            return load(path)
        from ptxlab.toolchain import cuda

        return cuda(path, *([target] if target else []))

    def _workspace(self, said: str) -> tuple[str, str, str]:
        found = _WORKSPACE.fullmatch(said)
        if found is None or found[2] not in DTYPES:
            raise SubmissionError("no-launch", f"`// workspace: {said}`: expected a name and `f32[4, n]`")
        return found[1], found[2], found[3]

    def _line(self, said: str) -> tuple[str, dict[str, str]]:
        """The kernel and the options of a launch."""
        options = {key: value.strip() for key, value in _OPTION.findall(said)}
        rest = _OPTION.sub("", said).split()
        unknown = options.keys() - {"grid", "block", "shared", "cluster", "args", "cooperative"}
        if unknown or "block" not in options or len(rest) > 1:
            raise SubmissionError(
                "no-launch", f"`// launch: {said}`: expected a kernel, grid=, block=, shared=, cluster= and args="
            )
        entries = list(self.module.entries)
        name = rest[0] if rest else self.task.name if self.task.name in entries else entries[0] if entries else ""
        if name not in entries:
            there = ", ".join(f"`{one}`" for one in entries) or "none"
            raise SubmissionError("no-kernel", f"{self.path.name} has no kernel `{name}`; there are: {there}")
        return name, options

    def plan(self, sizes: Sizes) -> LaunchPlan:
        try:
            spaces = {name: ([evaluate(one, sizes) for one in split(extents)], np.dtype(DTYPES[type]))
                      for name, type, extents in self.spaces}  # fmt: skip
            _check_size(spaces)
            made = {name: np.zeros(shape, dtype) for name, (shape, dtype) in spaces.items()}
            return LaunchPlan([self._call(*line, sizes, made) for line in self.lines], made)
        except FormulaError as wrong:
            raise SubmissionError("no-launch", str(wrong)) from None

    def _call(
        self, entry: str, options: Mapping[str, str], sizes: Sizes, spaces: Mapping[str, object]
    ) -> PlannedLaunch:
        def extent(key: str, default: str) -> tuple[int, ...]:
            return tuple(evaluate(one, sizes) for one in split(options.get(key, default)))

        default = ",".join(one.name for one in self.task.arguments)
        args = [self._reference(one.strip(), sizes, spaces) for one in split(options.get("args", default))]
        cluster = extent("cluster", "1") if "cluster" in options else None
        return PlannedLaunch(self.module, entry, extent("grid", "1"), extent("block", "1"), args,
                    extent("shared", "0")[0], cluster, bool(extent("cooperative", "0")[0]))  # fmt: skip

    def _reference(self, name: str, sizes: Sizes, spaces: Mapping[str, object]) -> Reference:
        known = {one.name: one for one in self.task.arguments}
        found = known.get(name)
        if isinstance(found, Array) or name in spaces:
            return {"array": name}
        if isinstance(found, Scalar):
            number = found.number(sizes)
            return {"scalar": number, "type": found.type if found.type in DTYPES else None}
        return {"scalar": evaluate(name, sizes)}


class PythonSubmission(Submission):
    """Python that launches kernels; it runs elsewhere."""

    def __init__(self, path: Path, task: Task, seconds: float, memory: float) -> None:
        super().__init__(path, task)
        from ptxlab.verify.python_process import PythonProcess

        self.process = PythonProcess(path, task.python, seconds, memory)
        self.known: dict[tuple[str, str], ir.Module] = {}
        self.patched: list[str] = []

    def plan(self, sizes: Sizes) -> LaunchPlan:
        said = self.process.ask(_request(self.task, sizes))
        self.patched = [str(one)[:200] for one in said.get("patched", ())]
        given = said["workspaces"]
        spaces = {
            str(name): ([int(n) for n in one["shape"]], np.dtype(DTYPES[one["type"]])) for name, one in given.items()
        }
        _check_size(spaces)
        made = {}
        for name, (shape, dtype) in spaces.items():
            content = base64.b64decode(given[name]["data"]) or bytes(prod(shape) * dtype.itemsize)
            made[name] = np.frombuffer(content, dtype).reshape(shape).copy()
        outputs = {str(name): one for name, one in said.get("outputs", {}).items()}
        return LaunchPlan([self._call(one) for one in said["calls"]], made, outputs)

    def _call(self, given: Mapping[str, Any]) -> PlannedLaunch:
        cluster = None if given["cluster"] is None else tuple(map(int, given["cluster"]))
        return PlannedLaunch(self._module(str(given["text"]), str(given["name"])), str(given["entry"]),
                    tuple(map(int, given["grid"])), tuple(map(int, given["block"])), given["args"],
                    int(given["shared"]), cluster, bool(given["cooperative"]))  # fmt: skip

    def _module(self, text: str, name: str) -> ir.Module:
        if (text, name) not in self.known:
            module = parse(text, name=f"{name}.ptx")
            for item in module.items:  # of the files that PTX names, only the submission itself is read
                if isinstance(item, ir.File) and Path(item.name) == self.path.resolve():
                    module.origins[item.name] = Source(self.path.name, self.path.read_text("utf-8", "replace"))
            self.known[text, name] = module
            self.modules.append(module)
        return self.known[text, name]

    def close(self) -> None:
        self.process.close()


def _request(task: Task, sizes: Sizes) -> dict[str, Any]:
    """What a submission in Python gets: shapes and types, and no data."""
    arguments: list[dict[str, Any]] = []
    for one in task.arguments:
        if isinstance(one, Array):
            arguments.append({"name": one.name, "type": one.type, "shape": one.extents(sizes), "role": one.role,
                              "strides": one.steps(sizes), "length": one.length(sizes)})  # fmt: skip
        else:
            arguments.append({"name": one.name, "scalar": one.number(sizes)})
    return {"sizes": sizes, "arguments": arguments, "notes": dict(task.notes)}


def open_submission(path: str | Path, task: Task, seconds: float, memory: float) -> Submission:
    """A submission; `SubmissionError` if it is not one."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise SubmissionError("no-kernel", f"`{path.name}`: expected a file that ends in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise SubmissionError("no-kernel", f"there is no file `{path}`")
    if path.stat().st_size > LARGEST:
        raise SubmissionError("too-large", f"{path.name} has {path.stat().st_size:,} bytes; {LARGEST:,} are allowed")
    try:
        if path.suffix == ".py":
            return PythonSubmission(path, task, seconds, memory)
        return FileSubmission(path, task)
    except PtxError as wrong:
        raise SubmissionError("not-valid", f"{path.name} is not valid", wrong.diagnostics) from None

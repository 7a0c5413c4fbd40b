"""Kernels of the CuTe DSL on the emulator: the compiled host function runs as it is, and its launches come here.

    result = ptxlab.cute.run(gemm, a, b, c, target="sm_90a")
    ptxlab.cute.run(all_reduce, arrays, result, on=node[0])  # and so on each rank of a node

The DSL compiles a function with `@cute.jit` to host code and kernels, for a GPU that need not be there. The host code
packs parameters, encodes tensor maps and launches through functions of CUDA; `cuda_calls.py` has those.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy

from ptxlab.device.host_memory import HostMemory
from ptxlab.device.multicast import Multicast
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.frameworks.adopt import from_framework
from ptxlab.frameworks.arrays import bytes_at
from ptxlab.frameworks.cuda_calls import CudaCalls
from ptxlab.frameworks.packages import package
from ptxlab.isa.targets import TARGETS
from ptxlab.node import Array, Device, Node, Stream

DEFAULT_TARGET = "sm_90a"
LEAST = (4, 2)
_CUDA = 2  # `kDLCUDA` of DLPack
_HOSTS = {"grid", "block", "shared", "cluster", "device", "cooperative", "overlap", "stream", "compile", "wait"}
OPTIONS = {field.name for field in fields(LaunchOptions)} - _HOSTS


def run(
    function: object,
    *args: object,
    target: str = DEFAULT_TARGET,
    options: str = "",
    on: Device | Stream | None = None,
    **named: object,
) -> Result:
    """Compile a function with `@cute.jit` for a target, and run it with all its launches on the emulator.

    Arguments are what the function takes: tensors by `from_dlpack`, numbers, streams (any: launches run in order).
    Tensors of torch's CPU and arrays of NumPy become tensors with a static layout. `options` go to `cute.compile`;
    `named` are the function's own, and the options of `kernel.launch`. The result is that of the last launch, with what
    was found in all of them.

    With `on`, launches are put on a GPU of a node, or on a stream of one, and run when that is synchronized. Arrays of
    the node are arguments then, and `ptxlab.Multicast(arrays)`, as an array whose address is that of all of them.

    >>> ptxlab.cute.run(add, from_dlpack(x), from_dlpack(y), from_dlpack(out))  # doctest: +SKIP
    """
    package("cutlass", "nvidia-cutlass-dsl", "`ptxlab.cute`", LEAST)
    cute = package("cutlass.cute", "nvidia-cutlass-dsl", "`ptxlab.cute`")
    if target not in map(str, TARGETS):
        raise ValueError(f"target={target!r}: there are sm_80, sm_90a, sm_100a, sm_120a, …")
    if not callable(function):
        raise TypeError(f"`run` takes a function with @cute.jit, not {function!r:.60}")
    how = {name: value for name, value in named.items() if name in OPTIONS}
    own = {name: value for name, value in named.items() if name not in how}
    if on is not None and not isinstance(on, (Device, Stream)):
        raise TypeError(f"`on` is a GPU of a node, as `node[0]`, or a stream of one, not {on!r:.60}")
    if on is not None and how:
        raise ValueError(f"`{next(iter(how))}` with `on`: it is an option of `node.synchronize`")
    node = on.node if isinstance(on, Device) else None if on is None else on.device.node
    memory = HostMemory()
    given = [_argument(one, memory, node) for one in args]
    kept = {name: _argument(one, memory, node) for name, one in own.items()}
    leaves = _leaves([*given, *kept.values()])
    with tempfile.TemporaryDirectory(prefix="ptxlab-cute-") as folder, _in_global_memory(leaves):
        flags = f"--keep-ptx --generate-line-info --gpu-arch {target} --dump-dir {folder} {options}"
        compiled = cute.compile(function, *given, options=flags, **kept)
        module = from_framework(compiled)
        calls = CudaCalls(module, memory if node is None else node.memory, how, on)
        _call(compiled, function, calls, given, kept)
    if calls.problem is not None:
        raise calls.problem
    if not calls.results:
        return Result()
    result = calls.results[-1]
    result.diagnostics[:0] = [one for other in calls.results[:-1] for one in other.diagnostics]
    return result


def _call(compiled: Any, function: object, calls: CudaCalls, args: list[object], named: dict[str, object]) -> None:
    """Run the host code with our functions of CUDA."""
    engines = import_module("cutlass._mlir.execution_engine")
    engine = engines.ExecutionEngine(compiled.ir_module, opt_level=2, shared_libs=[])
    for name in _declared(compiled.ir_module):
        if re.match(r"_?cu(da)?[A-Z]", name):
            engine.raw_register_runtime(name, ctypes.cast(calls.function(name), ctypes.c_void_p))
    library = ctypes.pointer(ctypes.c_void_p(1))
    failure, device = ctypes.pointer(ctypes.c_int32(0)), ctypes.pointer(ctypes.c_int32(0))
    for name, values in (
        ("cuda_init", [ctypes.pointer(library), failure]),
        ("cuda_load_to_device", [ctypes.pointer(library), device, failure]),
    ):
        address = engine.raw_lookup(name)
        if not address:
            raise RuntimeError(f"the compiled host code has no `{name}`: this version of the CuTe DSL is not supported")
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(_packed(values))
    if calls.problem is not None:
        return
    values, _kept = compiled.execution_args.generate_execution_args(*_at_run_time(compiled, function, args, named))
    entry = engine.lookup(compiled.function_name)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry)(_packed([*values, failure]))


def _at_run_time(
    compiled: Any, function: object, args: list[object], named: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The arguments that compiled host code takes: without those that are `Constexpr`."""
    taken = compiled.execution_args
    if not hasattr(taken, "original_signature"):  # an older version of the DSL
        return tuple(args), named
    own = [function] if next(iter(taken.original_signature.parameters), "") == "self" else []
    bound = taken.original_signature.bind(*own, *args, **named)
    bound.apply_defaults()
    return tuple(bound.arguments[name] for name in taken.signature.parameters), {}


def _packed(values: list[Any]) -> Any:
    """Pointers to arguments, as host code takes them."""
    found = (ctypes.c_void_p * len(values))()
    for number, one in enumerate(values):
        is_address = isinstance(one, (int, ctypes.c_void_p))
        found[number] = (
            (one if isinstance(one, int) else one.value) if is_address else ctypes.cast(one, ctypes.c_void_p)
        )
    return found


def _declared(module: ModuleType) -> list[str]:
    """The functions that host code calls and does not define."""
    functions = (one for one in module.body.operations if one.operation.name == "llvm.func")
    return [str(one.attributes["sym_name"]).strip('"') for one in functions if not list(one.regions[0].blocks)]


def _argument(value: object, memory: HostMemory, node: Node | None) -> Any:
    """An argument, or a list of them, with tensors for arrays."""
    if isinstance(value, (list, tuple)):
        return type(value)(_argument(one, memory, node) for one in value)
    if isinstance(value, Array):
        if value.node is not node:
            raise ValueError("an array of a node is an argument with `on`, a GPU of that node")
        node.refuse_freed(value)
        return _tensor(value.data, memory)
    if isinstance(value, Multicast):
        if node is None:
            raise ValueError("a multicast address is an argument with `on`, a GPU of a node")
        first = value.arrays[0]
        address = node.memory.multicast(tuple(one.address for one in value.arrays), first.nbytes)
        data = (ctypes.c_char * first.nbytes).from_address(address)  # which is only an address here
        return _tensor(numpy.frombuffer(data, first.dtype).reshape(first.shape), memory)
    return _tensor(value, memory)


def _leaves(values: list[Any]) -> list[Any]:
    """Arguments, with those of lists in place of the lists."""
    return [leaf for one in values for leaf in (_leaves(list(one)) if isinstance(one, (list, tuple)) else [one])]


def _tensor(value: Any, memory: HostMemory) -> Any:
    """An argument; the memory of a tensor is memory that kernels can reach."""
    if hasattr(value, "untyped_storage") or isinstance(value, numpy.ndarray):
        value = import_module("cutlass.cute.runtime").from_dlpack(value, assumed_align=16)
    if hasattr(value, "load_dltensor"):
        value.load_dltensor()
        capsule = getattr(value, "_dlpack_data", None)
        if capsule is not None and ctypes.c_int32.from_address(_device_address(capsule)).value == _CUDA:
            raise TypeError("a tensor is on a GPU: `ptxlab.cute` takes tensors of the CPU, as `.cpu()` gives")
        last = sum(
            (extent - 1) * stride for extent, stride in zip(_flat(value.shape), _flat(value.stride), strict=True)
        )
        size = ((last + 1) * value.element_type.width + 7) // 8
        memory.add(bytes_at(value.data_ptr, size), f"a tensor of {' by '.join(map(str, _flat(value.shape)))}")
    return value


@contextmanager
def _in_global_memory(values: list[object]) -> Iterator[None]:
    """Let tensors of the host's memory name a GPU as their device, for so long.

    The DSL takes others for tensors in an unknown state space, which `cp.async` cannot read.
    """
    capsules = [value._dlpack_data for value in values if hasattr(value, "_dlpack_data")]
    devices = [ctypes.c_int32.from_address(_device_address(capsule)) for capsule in capsules]
    before = [device.value for device in devices]
    for device in devices:
        device.value = _CUDA
    try:
        yield
    finally:
        for device, kind in zip(devices, before, strict=True):
            device.value = kind


def _device_address(capsule: object) -> int:
    """Where a capsule of DLPack has the kind of its device: after the address of the elements."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, b"dltensor")) + ctypes.sizeof(ctypes.c_void_p)


def _flat(extents: Any) -> list[int]:
    if isinstance(extents, (tuple, list)):
        return [one for part in extents for one in _flat(part)]
    return [int(extents)]

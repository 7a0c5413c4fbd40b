"""From a program to a kernel on a GPU: compiled by ptxas, or by the driver itself, and loaded.

ptxas makes code for the GPU that is there, whatever earlier target the module names: what an `sm_80` module computes on
an H200 is what ptxas makes of it for `sm_90`, which is what the driver would do with it too. An `sm_90a` module becomes
`sm_90a` code. A cubin file is loaded as it is. What was compiled here stays on disk, by its text, target and compiler.
A module that was loaded stays loaded until it is edited, so its variables keep their values from launch to launch; they
start as they were set, or as the PTX says.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.device.host_variables import HostVariables
from ptxlab.device.wrong_target import wrong_target
from ptxlab.gpu.driver import DriverError, bindings, broken, call, current
from ptxlab.gpu.failures import Subject, explain
from ptxlab.gpu.hardware import Gpu
from ptxlab.native.cache import cached
from ptxlab.report import Diagnostic, KernelError, PtxError, Source, error
from ptxlab.syntax import format
from ptxlab.toolchain import Tool, assemble, find_assembler
from ptxlab.toolchain.diagnosis import diagnose
from ptxlab.toolchain.header import stated_version
from ptxlab.toolchain.messages import read_messages

if TYPE_CHECKING:
    from ptxlab.gpu.prepared import Prepared

Compiler = str | Path
"""`ptxas`, `driver`, or a file that was compiled ahead."""
_LOG = 65536


class Loaded:
    """A module on a GPU; it is unloaded with this object."""

    def __init__(self, image: bytes, gpu: Gpu, log: bytearray | None = None) -> None:
        options = bindings().CUjit_option
        given: dict[Any, Any] = {}
        if log is not None:
            given = {options.CU_JIT_ERROR_LOG_BUFFER: log, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: len(log)}
        self.gpu = gpu
        self.functions: dict[str, Any] = {}
        self.static: dict[str, int] = {}
        with current(gpu.number):
            self.handle = call("cuModuleLoadDataEx", image, len(given), list(given), list(given.values()))
            context = call("cuCtxGetCurrent")
        # At the end of the process the module goes with it.
        weakref.finalize(self, _unload, bindings(), context, self.handle).atexit = False

    def function(self, name: str) -> Any:
        """The kernel of that name."""
        if name not in self.functions:
            self.functions[name] = call("cuModuleGetFunction", self.handle, name.encode())
        return self.functions[name]

    def static_shared(self, name: str) -> int:
        """The bytes of shared memory that a kernel declares itself."""
        if name not in self.static:
            kind = bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
            self.static[name] = int(call("cuFuncGetAttribute", kind, self.function(name)))
        return self.static[name]

    def write(self, name: str, data: bytes) -> None:
        """Give a variable a value; one that the compiler has left out is not read."""
        with current(self.gpu.number):
            there = self.variable(name)
            if there is not None:
                _require_size(name, len(data), there[1])
                call("cuMemcpyHtoD", there[0], data, len(data))

    def read(self, name: str, size: int) -> bytes | None:
        """What a variable holds; None where the compiler has left it out."""
        with current(self.gpu.number):
            there = self.variable(name)
            if there is None:
                return None
            _require_size(name, size, there[1])
            data = ctypes.create_string_buffer(size)
            call("cuMemcpyDtoH", ctypes.addressof(data), there[0], size)
            return data.raw

    def variable(self, name: str) -> tuple[int, int] | None:
        """Address and size of a variable of the module; None where the compiler has left it out."""
        try:
            address, size = call("cuModuleGetGlobal", self.handle, name.encode())
        except DriverError as problem:
            if problem.name == "CUDA_ERROR_NOT_FOUND":
                return None
            raise
        return int(address), int(size)


class GpuState:
    """What GPUs hold of a module: what was loaded, launches that are ready, and those that ran last.

    It outlives launches, and must not refer to the module, with which it goes.
    """

    def __init__(self, host: HostVariables) -> None:
        self.host = host
        self.loaded: dict[Any, Loaded] = {}
        """By the number of the GPU, and the compiler."""
        self.ready: dict[Any, Prepared] = {}
        self.last: dict[int, Prepared] = {}
        """By the number of the GPU."""


def _require_size(name: str, declared: int, there: int) -> None:
    """A file that was compiled ahead may be of another module."""
    if declared != there:
        message = f"`{name}` has {declared} bytes in the module, and {there} in what was loaded on the GPU"
        raise KernelError([error("bad-argument", message, None, helps=["compile the module again"])])


def _unload(driver: Any, context: object, handle: object) -> None:
    """Unload a module; an error of the driver is ignored, because nothing could handle it."""
    if broken() is None:
        driver.cuCtxPushCurrent(context)
        driver.cuModuleUnload(handle)
        driver.cuCtxPopCurrent()


def load(module: ir.Module, kernel: ir.Function, gpu: Gpu, state: GpuState, compiler: Compiler | None = None) -> Loaded:
    """The module on the GPU: as it was loaded before, or compiled and loaded now."""
    key = gpu.number, identity(compiler)
    found = state.loaded.get(key)
    if found is None:
        found = _load(module, Subject.of(module, kernel), gpu, compiler or _default_compiler())
        for name, data in state.host.all_given(module):
            found.write(name, data)
        state.loaded[key] = found
    return found


def identity(compiler: Compiler | None) -> Any:
    """What distinguishes a compiler, or a precompiled file, from another: a file that was replaced is new."""
    if compiler in (None, "ptxas", "driver"):
        return compiler
    path = Path(compiler)
    if not path.exists():
        return path, None
    state = path.stat()
    return path, state.st_mtime_ns, state.st_size, state.st_ino


def _default_compiler() -> Compiler:
    """ptxas, unless there is none: the driver always has a compiler."""
    try:
        find_assembler(None)
    except PtxError:
        return "driver"
    return "ptxas"


def _load(module: ir.Module, kernel: Subject, gpu: Gpu, compiler: Compiler) -> Loaded:
    architecture = gpu.architecture_for(module.target)
    if architecture is None:
        raise PtxError([wrong_target(module, gpu.name, gpu.target, 'run it with `device="cpu"`')])
    text = format(module)
    if compiler == "driver":
        return _load_text(module, kernel, gpu, text)
    image = compile_text(text, architecture, module.source) if compiler == "ptxas" else read_cubin(Path(compiler))
    try:
        return Loaded(image, gpu)
    except DriverError as problem:
        raise PtxError([explain(problem, kernel, gpu)]) from None


def read_cubin(path: Path) -> bytes:
    """What a file holds; that it fits the GPU, and the module, is the user's word."""
    try:
        return path.read_bytes()
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise PtxError([error("missing-file", f"`{path}` can't be read: {reason}", None)]) from None


def compile_text(text: str, architecture: str, written: Source | None, options: Sequence[str] = ()) -> bytes:
    """The cubin of a program's text; messages are about the text that its author wrote, if that has the same faults."""
    tool = find_assembler(stated_version(text))

    def make() -> bytes:
        assembly = assemble(text, architecture, written.name if written else "module.ptx", options, tool=tool)
        if assembly.cubin is not None:
            return assembly.cubin
        if written is not None:
            again = assemble(written.text, architecture, written.name, options, tool=tool)
            assembly = again if again.cubin is None else assembly
        raise PtxError(assembly.diagnostics)

    return cached("\n".join([f"cubin {tool.version} {architecture}", *options, text]), make)


def _load_text(module: ir.Module, kernel: Subject, gpu: Gpu, text: str) -> Loaded:
    """Have the driver compile the text; it keeps what it compiled itself."""
    if module.version > gpu.newest_ptx:
        raise PtxError([too_new(module, gpu)])
    log = bytearray(_LOG)
    try:
        return Loaded(text.encode("utf-8", "surrogateescape") + b"\0", gpu, log)
    except DriverError as problem:
        # The log names lines of the text that was compiled; where its author's has the same lines, of those.
        if module.source is not None:
            again = bytearray(_LOG)
            try:
                Loaded(module.source.text.encode("utf-8", "surrogateescape") + b"\0", gpu, again)
            except DriverError:
                found = read_log(again, module.source, gpu)
                raise PtxError(found or [explain(problem, kernel, gpu)]) from None
        found = read_log(log, Source("module.ptx", text), gpu)
        raise PtxError(found or [explain(problem, kernel, gpu)]) from None


def read_log(log: bytes | bytearray, source: Source, gpu: Gpu) -> list[Diagnostic]:
    """What the driver's compiler wrote, as diagnostics on the text it read."""
    text = log.split(b"\0")[0].decode("utf-8", "replace")
    tool = Tool("ptxas", Path("libcuda"), f"{gpu.cuda[0]}.{gpu.cuda[1]}", "the driver")
    return [diagnose(message, source, tool) for message in read_messages(text)]


def too_new(module: ir.Module, gpu: Gpu) -> Diagnostic:
    """A version of PTX that the driver's compiler does not know."""
    stated, newest = (f"{version[0]}.{version[1]}" for version in (module.version, gpu.newest_ptx))
    return error(
        "unsupported-version",
        f"PTX {stated} is too new for this driver, which reads up to PTX {newest} (CUDA {gpu.cuda[0]}.{gpu.cuda[1]})",
        module.span_of(module.header_spans.get("version")),
        helps=[
            'use `compile="ptxas"`: a cubin of a newer ptxas runs on this driver',
            f"write `.version {newest}` if the module needs nothing newer, or update the driver",
        ],
    )

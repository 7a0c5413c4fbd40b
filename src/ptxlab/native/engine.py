"""LLVM IR to machine code, and machine code into this process.

`compile_text` makes an object file for this machine's processor, `load` links object files with each other and with the
C library, `build` and `compiled` do both for native functions.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from . import checking
from .cache import cached
from .functions import signature
from .modes import CHECKED, DEBUG
from .types import Boolean, Float, Integer, PointerType, StructType, Type

__all__ = ["Library", "build", "cached", "compile_kept", "compile_text", "compiled", "kept_as", "load", "verify_text"]


VECTORS = 3  # the highest `speed`

# Whether JITLink links. RuntimeDyld, the other linker, aborts on aarch64 where code and constants of an object end up
# far apart; gdb knows what it links, though, and it links the objects of Windows.
_NEAR = not DEBUG and sys.platform != "win32"

# Registers instead of memory, then what that makes simple.
_FEW_PASSES = (
    "always_inliner",
    "sroa",
    "simplify_cfg",
    "instruction_combine",
    "simplify_cfg",
    "sccp",
    "aggressive_dce",
)


@cache
def _llvm() -> Any:
    """LLVM, ready for use; it takes a while to load."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def _features(speed: int) -> str:
    """What this machine's processor can do; LLVM thinks that vectors of 512 bits slow it down, which these do not."""
    features: str = _llvm().get_host_cpu_features().flatten()
    return f"{features},-prefer-256-bit" if speed == VECTORS and "+avx512f" in features else features


@cache
def has_mask_registers() -> bool:
    """Whether this machine's processor has registers for the masks of vectors."""
    return "+avx512f" in _features(0)


def _machine(speed: int) -> Any:
    """A description of this machine."""
    llvm = _llvm()
    # Machine code and what it refers to may be more than 2 GiB apart. Where JITLink makes tables of addresses, code is
    # as for a shared library; elsewhere each address has all its bits, and LLVM takes longer to select instructions.
    model = {"reloc": "pic", "codemodel": "small"} if _NEAR and platform.machine() == "x86_64" else {"jit": True}
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(speed), opt=min(speed, 2), **model
    )


class _Machines(threading.local):
    """By `speed`, for each thread: LLVM takes longer to know a processor than to compile a small kernel for it."""

    def __init__(self) -> None:
        self.known: dict[int, Any] = {}

    def get(self, speed: int) -> Any:
        if speed not in self.known:
            self.known[speed] = _machine(speed)
        return self.known[speed]


_machines = _Machines()


def compile_text(text: str, *, speed: int = 2) -> bytes:
    """An object file for this machine.

    `speed` is how much to optimize, from 0 to 3; 1 does only what pays at once, for code that is large, and 0 nothing:
    that takes time in proportion to the text. 3 is for loops that become vectors, the widest that the processor has:
    they are not unrolled before.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    machine = _machines.get(speed)
    if speed:
        _optimize(module, machine, speed)
    code: bytes = machine.emit_object(module)
    return code


def _optimize(module: Any, machine: Any, speed: int) -> None:
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=min(speed, 2))
    options.loop_vectorization = options.slp_vectorization = speed > 1
    options.loop_unrolling = speed < VECTORS
    passes = llvm.create_pass_builder(machine, options)
    if speed == 1:
        manager = llvm.create_new_module_pass_manager()
        for name in _FEW_PASSES:
            getattr(manager, f"add_{name}_pass")()
        manager.run(module, passes)
    else:
        passes.getModulePassManager().run(module, passes)


def compile_kept(text: str, *, speed: int = 2) -> bytes:
    """An object file for this machine, from the cache if this text has been there before."""
    return cached(kept_as(text, speed), lambda: compile_text(text, speed=speed))


def kept_as(text: str, speed: int) -> str:
    """The key in the cache of what is made of a text."""
    return f"{speed}\n{text}"


def verify_text(text: str) -> None:
    """Raise `RuntimeError` if LLVM refuses the text."""
    llvm = _llvm()
    llvm.parse_assembly(text, llvm.create_context()).verify()


MOST = 500  # libraries of one linker: it keeps some kilobytes of each that is unloaded, until it goes itself


class Linker:
    """ORC's LLJIT: its libraries can use each other's symbols. It goes when neither it nor they are referred to."""

    def __init__(self) -> None:
        self.jit = _llvm().create_lljit_compiler(_machine(2), use_jit_link=_NEAR)
        self.count = 0

    def next_name(self) -> str:
        self.count += 1
        return f"native.{self.count}"


_newest: list[Linker] = []


def _linker() -> Linker:
    """The linker for a library that needs no other."""
    if not _newest or _newest[0].count >= MOST:
        _newest[:] = [Linker()]
    return _newest[0]


class Library:
    """Machine code in this process. It stays as long as the library is referred to."""

    def __init__(self, linker: Linker, name: str, tracker: object, others: Sequence[Library]) -> None:
        self.linker = linker
        self.name = name
        self._others = tuple(others)
        self._addresses: dict[str, int] = {}
        self._trackers = [tracker]  # llvmlite unloads the machine code when it disposes of any of them

    @property
    def is_worn(self) -> bool:
        """Whether to load it again before more libraries are linked with it."""
        return self.linker.count >= MOST

    def address(self, symbol: str) -> int:
        """The address of a function, of this library or of one that it was linked with."""
        if symbol not in self._addresses:
            libraries = self, *self._others
            # To find out that a symbol is not in a library takes as long as to link a small one.
            found = (library._addresses.get(symbol) for library in libraries)
            address = next((address for address in found if address is not None), None)
            if address is None:
                found = (library._own_address(symbol) for library in libraries)
                address = next((address for address in found if address is not None), None)
            if address is None:
                raise KeyError(f"there is no `{symbol}` in the machine code")
            self._addresses[symbol] = address  # also of another library: to find out that it is not here takes a while
        return self._addresses[symbol]

    def _own_address(self, symbol: str) -> int | None:
        if symbol in self._addresses:
            return self._addresses[symbol]
        try:
            tracker = self.linker.jit.lookup(self.name, symbol)
        except RuntimeError as error:
            if "Symbols not found" not in str(error):
                raise
            return None
        self._trackers.append(tracker)
        self._addresses[symbol] = int(tracker[symbol])
        return self._addresses[symbol]

    def function(self, function: Callable[..., object]) -> Callable[..., Any]:
        """A native function of the library, callable from Python.

        For a pointer it takes an address, a ctypes array, a NumPy array, or a list, which it writes back into.
        """
        found = signature(function)
        types = [type for _, type in found.parameters]
        prototype = ctypes.CFUNCTYPE(_scalar(found.result), *(_scalar(type) for type in types))
        entry = prototype(self.address(found.symbol))

        def call(*arguments: object) -> Any:
            assert len(arguments) == len(types), f"`{found.symbol}` takes {len(types)} arguments"
            passed = [_argument(argument, type) for argument, type in zip(arguments, types, strict=True)]
            result = entry(*(value for value, _ in passed))
            for argument, (_, array) in zip(arguments, passed, strict=True):
                if isinstance(argument, list):
                    argument[:] = array
            return result

        call.library = self  # type: ignore[attr-defined]  # the machine code stays as long as the function does
        return call


def load(
    objects: Sequence[bytes],
    symbols: Iterable[tuple[str, int]] = (),
    libraries: Sequence[Library] = (),
    *,
    is_checked: bool = CHECKED,
    is_located: bool = True,
) -> Library:
    """Link object files with each other, with other libraries and the C library. `symbols` are addresses by name."""
    builder = _llvm().JITLibraryBuilder()
    for library in libraries:
        builder.add_jit_library(library.name)
    builder.add_current_process()
    for code in objects:
        builder.add_object_img(code)
    for symbol, address in (*symbols, *(checking.symbols() if is_checked else ())):
        builder.import_symbol(symbol, address)
    linker = libraries[0].linker if libraries else _linker()
    name = linker.next_name()
    library = Library(linker, name, builder.link(linker.jit, name), libraries)
    if DEBUG and is_located:
        from . import locating

        locating.register(library, objects)
    return library


_SCALARS: dict[str, Any] = {
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "s8": ctypes.c_int8,
    "s16": ctypes.c_int16,
    "s32": ctypes.c_int32,
    "s64": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "boolean": ctypes.c_bool,
}


def build(functions: Sequence[Callable[..., object]], *, speed: int = 2) -> Library:
    """Native functions as machine code, from the cache if they are there."""
    from .translate import emit  # a process that links cached code alone does without it

    text = emit(functions)
    return load([compile_kept(text, speed=speed)])


def compiled(function: Callable[..., object], *, speed: int = 2) -> Callable[..., Any]:
    """A native function as machine code, callable from Python: see `Library.function`."""
    return build([function], speed=speed).function(function)


def _scalar(type: Type | None) -> Any:
    if type is None:
        return None
    if isinstance(type, PointerType | StructType):
        return ctypes.c_void_p
    if type.name not in _SCALARS:
        raise TypeError(f"Python cannot pass {type} to machine code: pass it in parts, or through a pointer")
    return _SCALARS[type.name]


def _argument(value: Any, type: Type) -> tuple[Any, Any]:
    """What is passed for a Python value, and the array that holds it during the call."""
    if not isinstance(type, PointerType | StructType):
        if isinstance(type, Integer):
            assert type.holds(value), f"{value} does not fit {type}"
        return value, None
    if isinstance(value, list | tuple):
        assert isinstance(type, PointerType)
        assert isinstance(type.element, Integer | Float | Boolean)
        array = checking.share((_scalar(type.element) * len(value))(*value))
        return ctypes.addressof(array), array
    if isinstance(value, ctypes.Array | ctypes.Structure):
        return ctypes.addressof(checking.share(value)), value
    if hasattr(value, "ctypes"):
        checking.share_range(value.ctypes.data, value.nbytes)
        return value.ctypes.data, value
    return value, None

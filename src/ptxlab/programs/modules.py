"""What a program loads and launches: its modules on the emulator, with memory at the program's own addresses."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.arguments import HEAP, HEAP_STEP
from ptxlab.emulate.host.module_memory import EmulatedModule, ModuleMemory
from ptxlab.isa.gpus import GpuModel, gpu_named, gpu_of_target
from ptxlab.isa.jump import Jump
from ptxlab.launch.contexts import context_of
from ptxlab.node.nvshmem.state import FOLDER as NVSHMEM
from ptxlab.programs.linking import link
from ptxlab.report import KernelError, PtxError, error
from ptxlab.syntax import read
from ptxlab.toolchain import assemble, is_object, occupancy, parts_of
from ptxlab.toolchain.parameter_names import name_parameters
from ptxlab.toolchain.source_files import read_source
from ptxlab.toolchain.tools import can_find

DEFAULT_GPU = "H200"
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[af]?)", re.MULTILINE)
_TALKS = re.compile(r"\.(sys|volatile|mmio)\b(?!\.shared)")
_TRIGGERS = re.compile(r"\bgriddepcontrol\.launch_dependents\b")
_ASSUMED_REGISTERS = 32  # a thread, where there is no ptxas to ask


@dataclass(frozen=True)
class LoadedModule:
    """A module of the program."""

    module: ir.Module
    resources: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Registers, local and constant memory by kernel, once they were asked for."""
    _found: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Whether the text of a kernel has something."""
    _accesses: dict[str, bool] = field(default_factory=dict)
    """Whether a kernel may access memory, once it was asked for."""
    _memories: dict[int, ModuleMemory] = field(default_factory=dict)
    """Of the GPUs after the first."""

    def emulated(self, device: int = 0) -> EmulatedModule:
        """The module as a GPU has it: with variables of its own."""
        context = context_of(self.module)
        if device and device not in self._memories:
            memory = self._memories[device] = ModuleMemory(context.host)
            memory.heap.next = HEAP + device * HEAP_STEP
        return EmulatedModule(self.module, context.digest, self._memories[device] if device else context.memory)

    @property
    def allocates(self) -> bool:
        """Whether its kernels may allocate memory, which stays when they end."""
        return any(one.name == "malloc" for one in self.module.functions)

    def kernel(self, name: str) -> ir.Function | None:
        """The kernel of that name."""
        return self.module[name] if name in self.module.entries else None

    def variable(self, name: str) -> ir.Variable | None:
        """The variable of that name, if the host can reach it."""
        placed = layout.Variables(self.module, [])
        found = placed.by_name.get(name)
        return found if found is not None and id(found) in placed.global_addresses else None

    def bind(self, variable: ir.Variable, memory: ctypes.Array[ctypes.c_char], device: int) -> None:
        """Let a variable of a GPU be at this memory, which holds what it held."""
        placed = layout.Variables(self.module, [])
        held = self.emulated(device).memory
        own = placed.by_name[variable.name]
        memory.raw = held.of(placed, own).raw[: len(memory)]
        held.variables[placed.keys[id(own)]] = memory

    def talks_to_host(self, kernel: ir.Function) -> bool:
        """Whether a kernel has accesses that the host may see while it runs, by system scope or as `volatile`."""
        return self._has(kernel, _TALKS)

    def may_access_memory(self, kernel: ir.Function) -> bool:
        """Whether a kernel reads or writes more than its parameters, or calls what may."""
        if kernel.name not in self._accesses:
            self._accesses[kernel.name] = any(map(_may_access_memory, kernel.instructions()))
        return self._accesses[kernel.name]

    def starts_dependents(self, kernel: ir.Function) -> bool:
        """Whether a kernel may let the one after it start before it is complete."""
        return self._has(kernel, _TRIGGERS)

    def _has(self, kernel: ir.Function, what: re.Pattern[str]) -> bool:
        """Whether the text of a kernel, or of what it calls, has something."""
        key = kernel.name, what.pattern
        if key not in self._found:
            text = "" if self.module.source is None else self.module.source.text
            functions = layout.reachable(self.module, kernel)
            self._found[key] = any(what.search(text[one.start or 0 : one.end or 0]) for one in functions)
        return self._found[key]


def _may_access_memory(instruction: ir.Instruction) -> bool:
    if instruction.opcode.jump is Jump.CALL:
        return True
    bases = [operand.base for operand in instruction.operands if isinstance(operand, ir.Address)]
    return any(not isinstance(base, ir.VariableReference) or base.variable.state_space != "param" for base in bases)


class Modules:
    """All modules of a program, for the GPU that it sees."""

    def __init__(self, gpu: str | None, folders: Sequence[Path], name: str) -> None:
        self._gpu = None if gpu is None else gpu_named(gpu)
        self.folders, self.name = folders, name
        self.loaded: list[LoadedModule] = []
        self._read: list[LoadedModule] = []  # by an earlier run of the program, and not loaded yet by this one

    def start_anew(self) -> None:
        """Have nothing loaded, for another run of the program: what that loads again is not read and checked again."""
        self._read, self.loaded = [*self._read, *self.loaded], []

    @property
    def gpu(self) -> GpuModel:
        """The GPU that was asked for; else an H200, where it can run what was loaded."""
        if self._gpu is not None:
            return self._gpu
        default = gpu_named(DEFAULT_GPU)
        other = [one.module.target for one in self.loaded if default.architecture_for(one.module.target) is None]
        return gpu_of_target(other[0]) if other else default

    def load(self, images: Sequence[bytes], own: Collection[int] | None = None) -> int:
        """The number of a module that the program has as a fatbinary or as PTX, or as several that belong together.

        One of several PEs, which has loaded its `own`, may have one that another PE has loaded.
        """
        linked = [text for image in images if (text := self._text(image)) is not None]
        if not linked:
            helps = ["build it with PTX: `nvcc -gencode arch=compute_90,code=compute_90`"]
            message = "the program has machine code only, and the emulator needs PTX"
            raise KernelError([error("no-ptx", message, None, helps=helps)])
        name = f"{self.name}.ptx"
        text = link(linked, name)
        for number, one in enumerate(self.loaded if own is not None else ()):
            if (
                own is not None
                and number not in own
                and one.module.source is not None
                and one.module.source.text == text
            ):
                return number
        known = next(
            (one for one in self._read if one.module.source is not None and one.module.source.text == text), None
        )
        if known is not None:
            self._read.remove(known)
            context_of(known.module).start_anew()
            self.loaded.append(LoadedModule(known.module, known.resources))
            return len(self.loaded) - 1
        module, faults = read(text, name)
        self._trace(module)
        if faults:
            raise PtxError(faults)
        self.loaded.append(LoadedModule(module))
        return len(self.loaded) - 1

    def _text(self, image: bytes) -> str | None:
        """The PTX of an image for the GPU; None where it has none."""
        texts = [text for text in _texts(image) if _TARGET.search(text)]
        default = self._gpu or gpu_named(DEFAULT_GPU)
        usable = [text for text in texts if default.architecture_for(_target(text)) is not None]
        return max(usable or texts, key=lambda text: (number_of(_target(text)), _target(text)), default=None)

    def _trace(self, module: ir.Module) -> None:
        """Have findings name the lines of sources that are in the program's folders."""
        for item in module.items:
            if not isinstance(item, ir.File) or Path(item.name).is_relative_to(NVSHMEM):  # ours is not the user's
                continue
            source = read_source(item.name, self.folders)
            if source is not None:
                module.origins[item.name] = source
        name_parameters(module, {source.name: source for source in module.origins.values()}.values())

    def resources(self, number: int, name: str) -> tuple[int, int, int]:
        """Registers a thread, and bytes of local and constant memory, as ptxas says."""
        loaded = self.loaded[number]
        if not loaded.resources and can_find("ptxas") and loaded.module.source is not None:
            target = self.gpu.architecture_for(loaded.module.target)
            for one in assemble(loaded.module.source.text, target, options=["-O3"]).resources:
                bytes = one.stack or one.local
                loaded.resources[one.function] = one.registers or 0, bytes, sum(one.constant.values())
        return loaded.resources.get(name) or (_ASSUMED_REGISTERS, 0, 0)

    def blocks_per_sm(self, threads: int, registers: int, shared: int) -> int:
        """How many blocks an SM holds."""
        found = occupancy(self.gpu.target, threads, registers, shared)
        return 1 if found is None else found.blocks


def _texts(image: bytes) -> list[str]:
    """The PTX of an image: itself, or that of a fat binary, where cubins may have kept theirs."""
    if not is_object(image):
        return [image.rstrip(b"\0").decode("utf-8", "replace")]
    parts = sorted(parts_of(image), key=lambda part: part.kind != "ptx")
    texts = [(part.kind, text) for part in parts if (text := part.text) is not None]
    return [text for kind, text in texts if kind == texts[0][0]]


def _target(text: str) -> str:
    found = _TARGET.search(text)
    return found[1] if found else ""


def number_of(target: str) -> int:
    """90 of `sm_90a`."""
    return int(re.sub(r"\D", "", target) or 0)

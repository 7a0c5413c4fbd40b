"""What devices hold of a module, and what is known of it: as long as the module is, and until it is edited.

An edit is noticed at the next launch, for the price of one comparison where no program has been edited since the last
one (`ptxlab.ir.node`). Where one has, the text decides: a module whose text is another one is checked, compiled and
loaded again, and its variables are initialized again, as they were set or as the PTX says.
"""

from __future__ import annotations

import weakref
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ptxlab import gpu, ir
from ptxlab.check import check
from ptxlab.device.digest import digest_of
from ptxlab.device.host_variables import HostVariables
from ptxlab.device.layout import reachable
from ptxlab.emulate.host.module_memory import EmulatedModule, ModuleMemory
from ptxlab.ir.node import latest_edit
from ptxlab.report import Diagnostic, PtxError

if TYPE_CHECKING:
    from ptxlab.gpu import GpuState


class Context:
    """What devices hold of a module; nothing in it refers to the module, which would never go otherwise."""

    def __init__(self) -> None:
        self.host = HostVariables()
        self.digest = ""
        self.edit: object = None  # the latest edit of any program when `digest` was taken
        self.findings: list[Diagnostic] | None = None  # of `check`, once it was asked
        self.singles: dict[str, frozenset[int]] = {}  # the parameters of each kernel that point to `.f32`
        self.recording_timelines: dict[str, Any] = {}  # kernels that record timelines, by their names
        self.start_anew()

    def start_anew(self) -> None:
        """Have variables initialized again on every device, as they were set or as the PTX says."""
        self.host.ran_on = None
        self.memory = ModuleMemory(self.host)
        self._on_gpu: GpuState | None = None

    @property
    def on_gpu(self) -> GpuState:
        """What GPUs hold of the module."""
        if self._on_gpu is None:
            self._on_gpu = gpu.GpuState(self.host)
        return self._on_gpu

    def notice_edit(self, module: ir.Module) -> None:
        """Forget what was made of another text than the module's."""
        edit = latest_edit()
        digest = digest_of(module)
        if digest != self.digest:
            self.digest, self.findings, self.singles, self.recording_timelines = digest, None, {}, {}
            self.start_anew()
        self.edit = edit

    def check(self, module: ir.Module) -> list[Diagnostic]:
        """What `check` finds in the module; it is not checked again before it is edited."""
        if self.findings is None:
            self.findings = _check_once(module, self.digest)
        return self.findings

    def refuse_wrong(self, module: ir.Module, strictly: ir.Function | None = None) -> None:
        """Refuse a program with errors, or with warnings about the kernel that is run `strictly`."""
        wrong = [one for one in self.check(module) if one.level == "error"]
        if strictly is not None:
            wrong += self.warnings(module, strictly)
        if wrong:
            raise PtxError(wrong)

    def warnings(self, module: ir.Module, kernel: ir.Function) -> list[Diagnostic]:
        """What `check` warns of, but for what is in functions that the kernel does not call."""
        found = [one for one in self.check(module) if one.level == "warning"]
        if not found:
            return []
        called = reachable(module, kernel)
        others = [one for one in module.functions if one.body is not None and one not in called]
        return [one for one in found if not any(_is_in(one, module, function) for function in others)]

    def emulated(self, module: ir.Module) -> EmulatedModule:
        """The module as a launch on the emulator starts from it."""
        return EmulatedModule(module, self.digest, self.memory)


def _is_in(found: Diagnostic, module: ir.Module, function: ir.Function) -> bool:
    """Whether a finding is about a function."""
    start, end = function.start, function.end
    if start is None or end is None:
        return False
    spans = [label.span for label in found.labels if label.span.source is module.source]
    return any(start <= span.start < end for span in spans)


_MOST_CLEAN = 4096
# Programs without findings: a digest of each, and one of the text that it was read from.
_clean: dict[tuple[str, bytes], None] = {}


def _check_once(module: ir.Module, digest: str) -> list[Diagnostic]:
    """What `check` finds; a text that it found nothing in is not checked again when it is read again."""
    text = "" if module.source is None else module.source.text
    program = digest, sha256(text.encode("utf-8", "surrogateescape")).digest()
    if program in _clean:
        return []
    found = check(module)
    if not found:
        if len(_clean) == _MOST_CLEAN:
            del _clean[next(iter(_clean))]
        _clean[program] = None
    return found


_contexts: dict[int, Context] = {}  # by the identity of the module: equal programs are not the same


def context_of(module: ir.Module) -> Context:
    """What devices hold of a module as it is now."""
    context = _contexts.get(id(module))
    if context is None:
        context = _contexts[id(module)] = Context()
        weakref.finalize(module, _contexts.pop, id(module)).atexit = False
    if context.edit is not latest_edit():
        context.notice_edit(module)
    return context


def given_to(module: ir.Module) -> dict[str, bytes]:
    """The bytes that variables of a module were set to, by name."""
    context = _contexts.get(id(module))
    return {} if context is None else context.host.given


def findings_of(module: ir.Module) -> list[Diagnostic]:
    """What `check` finds in a module."""
    return list(context_of(module).check(module))


def warnings_of(kernel: ir.Function) -> list[Diagnostic]:
    """What `check` warns of in a kernel and in what it calls."""
    module = kernel.module
    assert module is not None
    return context_of(module).warnings(module, kernel)


def refuse_wrong(module: ir.Module) -> None:
    """Refuse a program with errors."""
    context_of(module).refuse_wrong(module)

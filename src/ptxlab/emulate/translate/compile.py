"""A kernel as machine code: translated once, kept on disk, loaded beside the runtime.

What is in the cache is loaded without the translator: `building.py` is imported where something has to be built.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.record import Recorded
from ptxlab.emulate.translate import effort
from ptxlab.emulate.translate.arithmetic import Arithmetic, own_arithmetic
from ptxlab.emulate.translate.preemption import NEVER
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Match
from ptxlab.isa.effects import Effects
from ptxlab.native import engine
from ptxlab.native.cache import cache_folder, claim, kept, make_claimed, sources
from ptxlab.native.children import start_detached
from ptxlab.native.modes import CHECKED

KEPT = 64  # kernels that stay linked


class Compiled:
    """A kernel that can run: its code, what that needs, and the positions of its instructions."""

    def __init__(
        self,
        module: ir.Module,
        kernel: ir.Function,
        arithmetic: Arithmetic,
        facts: dict[str, Any],
        library: engine.Library,
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.arithmetic = arithmetic
        self.functions = layout.reachable(module, kernel)
        self.variables = layout.Variables(module, self.functions)
        self.instructions = [(f, instruction) for f in self.functions for instruction in f.instructions()]
        self.facts = facts
        self.library = library

    def address(self, symbol: str) -> int:
        return int(self.library.address(symbol))

    def effects(self, number: int) -> Effects:
        """What an instruction does; nothing is known of calls."""
        match = self.matches[number]
        return Effects() if match is None else match.effects

    @cached_property
    def matches(self) -> list[Match | None]:
        """The form that each instruction is of; None of calls."""
        return [match_of(instruction) for _, instruction in self.instructions]


# Machine code depends on semantics (`isa`, `numbers`), the program (`ir`, `syntax`), what is found out about it
# (`flow`, `check`), and what translates it.
_NAMES = ("native", "numbers", "isa", "ir", "syntax", "flow", "check", "device", "emulate")
_PACKAGES = tuple(f"ptxlab.{name}" for name in _NAMES)


@cache
def sources_of_code() -> str:
    """A digest of all source that machine code is made from: a change of it makes old machine code worthless."""
    return sources(*_PACKAGES)


@cache
def runtime_code(records: bool = False) -> list[bytes]:
    """The machine code of the runtime, in two parts: what every kernel runs, and what few do.

    Launches that are recorded have one of their own, which `records`.
    """
    return _unpacked(engine.cached(_runtime_key(records), lambda: _build_runtime(records), takes_long=True))


def _runtime_key(records: bool) -> str:
    return f"runtime {records} {sources_of_code()}"


def prepare_runtime(records: bool = False, threads: int | None = None) -> None:
    """Make the runtime, which is not the kernel's fault if it takes a while.

    The first launch on a machine, if it is one of few threads, does not wait for it: what that kernel needs of the
    runtime is compiled without being optimized, while another process makes all of it for the launches that follow.
    """
    if records in _linked:
        return
    is_small = threads is not None and threads <= effort.FEW_THREADS
    if is_small and cache_folder() is not None and kept(_runtime_key(records)) is None and _has_maker(records):
        _awaited.add(records)
        return
    runtime_code(records)
    if records in _awaited:  # kernels are linked with it anew
        _awaited.remove(records)
        _hasty.clear()
        _loaded.clear()


def _has_maker(records: bool) -> bool:
    """Whether a process makes the runtime; one is started if there is none."""
    if records in _awaited:
        return True
    with claim(_runtime_key(records)) as lock:
        if lock is None:
            return True
        try:
            _makers.append(start_detached(__name__, str(int(records)), pass_fds=lock))
        except OSError:
            return False
    return True


def serve() -> None:
    """Make the runtime for others; this is another process, which has its lock from the first one."""
    records = bool(int(sys.argv[1]))
    make_claimed(_runtime_key(records), lambda: _build_runtime(records))


_awaited: set[bool] = set()  # runtimes that launches of this process do without, as long as they are being made
_makers: list[subprocess.Popen[bytes]] = []  # the processes that make them
_hasty: dict[tuple[bool, tuple[str, ...]], engine.Library] = {}  # by what kernels call


def _hasty_runtime(records: bool, calls: tuple[str, ...]) -> engine.Library:
    """What a kernel needs of the runtime, not optimized."""
    found = _hasty.get((records, calls))
    if found is None or found.is_worn:
        key = f"hasty {' '.join(calls)} {_runtime_key(records)}"
        packed = engine.cached(key, lambda: _build_hastily(records, calls))
        found = _hasty[records, calls] = engine.load(_unpacked(packed))
    return found


def _build_hastily(records: bool, calls: tuple[str, ...]) -> bytes:
    from ptxlab.emulate.translate.runtime_building import compile_hastily

    return compile_hastily(records, calls)


def _build_runtime(records: bool) -> bytes:
    from ptxlab.emulate.translate.runtime_building import compile_runtime

    return compile_runtime(records)


def _build(*arguments: Any) -> bytes:
    from ptxlab.emulate.translate.building import translate_kernel

    return translate_kernel(*arguments)


def _runtime(records: bool, calls: Sequence[str]) -> engine.Library:
    """The runtime in this process, which kernels are linked with that call these functions of it."""
    if records in _awaited:
        return _hasty_runtime(records, tuple(calls))
    found = _linked.get(records)
    if found is None or found.is_worn:
        found = _linked[records] = engine.load(runtime_code(records))
    return found


_linked: dict[bool, engine.Library] = {}


def compile_kernel(
    module: ir.Module,
    kernel: ir.Function,
    digest: str,
    checks: bool,
    profile: bool = False,
    preemption: int = NEVER,
    arithmetic: Arithmetic | None = None,
    until: float | None = None,
    record: Recorded | None = None,
    together: bool = False,
) -> Compiled:
    """The machine code of a kernel, from the cache if it has been there before; `OutOfTimeError` after `until`.

    `digest` is that of the module's text.
    """
    arithmetic = arithmetic or own_arithmetic(module)
    how = f"{checks} {arithmetic.key} {profile} {preemption} {'' if record is None else record}"
    how += " together" if together else ""
    key = f"kernel {how} {effort.HIGHEST} {kernel.name} {sources_of_code()} {digest}"
    loaded = _loaded.pop(key, None)
    if loaded is None:
        packed = engine.cached(
            key, lambda: _build(module, kernel, checks, profile, preemption, arithmetic, record, until, together)
        )
        text, *codes = _unpacked(packed)
        facts = json.loads(text)
        loaded = facts, engine.load(codes, libraries=[_runtime(record is not None, facts["calls"])])
        if CHECKED:
            from ptxlab.emulate.translate.sharing import share_tables

            share_tables(loaded[1], len(codes))
    _loaded[key] = loaded
    if len(_loaded) > KEPT:
        del _loaded[next(iter(_loaded))]
    return Compiled(module, kernel, arithmetic, *loaded)


# Kernels that were launched in this process, the latest one last: linking takes longer than many a launch.
_loaded: dict[str, tuple[dict[str, Any], engine.Library]] = {}


def _unpacked(packed: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 8], "little")
        parts.append(packed[at + 8 : at + 8 + size])
        at += 8 + size
    return parts

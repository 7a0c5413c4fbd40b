"""A kernel as machine code: translated once, kept on disk, loaded beside the runtime."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.runtime import ENTRIES, RARE, RUNTIME
from ptxlab.emulate.translate import effort
from ptxlab.emulate.translate.preemption import NEVER
from ptxlab.emulate.translate.refuse import refuse
from ptxlab.emulate.translate.sharing import share_tables
from ptxlab.emulate.translate.unit import Unit
from ptxlab.ir.shapes import match_of
from ptxlab.isa.effects import Effects
from ptxlab.native import engine
from ptxlab.native.apart import compile_at_once
from ptxlab.native.cache import Provisional, sources
from ptxlab.native.functions import signature
from ptxlab.native.translate import callees, emit, reachable

KEPT = 64  # kernels that stay linked


class Compiled:
    """A kernel that can run: its code, what that needs, and the places of its instructions."""

    def __init__(self, module: ir.Module, kernel: ir.Function, facts: dict[str, Any], library: engine.Library) -> None:
        self.module = module
        self.kernel = kernel
        self.functions = layout.reachable(module, kernel)
        self.variables = layout.Variables(module, self.functions)
        self.places = [(f, instruction) for f in self.functions for instruction in f.instructions()]
        self.facts = facts
        self.library = library

    def address(self, symbol: str) -> int:
        return int(self.library.address(symbol))

    def effects(self, number: int) -> Effects:
        """What an instruction does; nothing is known of calls."""
        match = match_of(self.places[number][1])
        return Effects() if match is None else match.effects


# Machine code depends on semantics (`isa`, `numbers`), the program (`ir`, `syntax`) and what translates it.
_PACKAGES = tuple(f"ptxlab.{name}" for name in ("native", "numbers", "isa", "ir", "syntax", "device", "emulate"))


@cache
def _sources() -> str:
    """A digest of all source that machine code is made from: a change of it makes old machine code worthless."""
    return sources(*_PACKAGES)


@cache
def runtime_code() -> list[bytes]:
    """The machine code of the runtime, in two parts: what every kernel runs, and what few do."""
    return _unpacked(engine.cached(f"runtime {_sources()}", _compile_runtime))


def _runtime() -> engine.Library:
    """The runtime in this process, which kernels are linked with."""
    if not _linked or _linked[0].is_worn:
        _linked[:] = [engine.load(runtime_code())]
    return _linked[0]


_linked: list[engine.Library] = []


def _compile_runtime() -> bytes:
    """Compile the runtime; what few kernels run with less effort, so that the first launch does not wait for it.

    Many changes of the source leave the LLVM IR as it was: what was made of that is kept as well.
    """
    roots = [*RUNTIME.values(), *ENTRIES]
    everything = reachable(roots)
    often = [function for function in everything if not _is_rare(function)]
    rare = [function for function in everything if _is_rare(function)]
    texts = []
    for own, others, speed in ((often, rare, 2), (rare, often, 1)):
        called = _called(others)
        doors = [function for function in own if function in roots or function in called]
        elsewhere = [function for function in others if not signature(function).inline]
        texts.append((emit(doors, elsewhere=elsewhere), speed))
    return _packed(compile_at_once(texts))


def _called(functions: Iterable[Callable[..., Any]]) -> set[Callable[..., Any]]:
    """What functions call, also from within what is inlined into them."""
    found: set[Callable[..., Any]] = set()
    pending = list(functions)
    while pending:
        for callee in callees(pending.pop()):
            if callee not in found:
                found.add(callee)
                if signature(callee).inline:
                    pending.append(callee)
    return found


def _is_rare(function: Callable[..., Any]) -> bool:
    """Whether a function is one of those that few kernels call; those of other packages serve tensor memory."""
    module = function.__module__
    if not module.startswith("ptxlab.emulate."):
        return True
    return module.removeprefix("ptxlab.emulate.runtime.") in RARE


def compile_kernel(
    module: ir.Module,
    kernel: ir.Function,
    digest: str,
    checks: bool,
    profile: bool = False,
    preemption: int = NEVER,
    until: float | None = None,
) -> Compiled:
    """The machine code of a kernel, from the cache if it has been there before; `OutOfTimeError` after `until`.

    `digest` is that of the module's text.
    """
    key = f"kernel {checks} {profile} {preemption} {effort.HIGHEST} {kernel.name} {_sources()} {digest}"
    loaded = _loaded.pop(key, None)
    if loaded is None:
        packed = engine.cached(key, lambda: _translate(module, kernel, checks, profile, preemption, until))
        facts, *codes = _unpacked(packed)
        loaded = json.loads(facts), engine.load(codes, libraries=[_runtime()])
        share_tables(loaded[1], len(codes))
    _loaded[key] = loaded
    if len(_loaded) > KEPT:
        del _loaded[next(iter(_loaded))]
    return Compiled(module, kernel, *loaded)


# Kernels that were launched in this process, the latest one last: linking takes longer than many a launch.
_loaded: dict[str, tuple[dict[str, Any], engine.Library]] = {}


def _translate(
    module: ir.Module, kernel: ir.Function, checks: bool, profile: bool, preemption: int, until: float | None
) -> bytes:
    refuse(module, kernel)
    unit, codes = effort.make(partial(Unit, module, kernel, checks, profile, preemption), until)
    facts = {
        "hints": unit.hints,
        "counters": unit.counting.counters,
        "traffic": unit.counting.traffic,
        "profile_sites": unit.counting.profile_sites,
        "exchange_words": unit.calls.exchange_words,
        "frame_sizes": unit.frame_sizes,
        "local_sizes": unit.local_sizes,
        "talks": unit.talks,
        "clock": "read_clock" in unit.calls.runtime_functions,
        "stack": unit.uses_stack,
        "written": unit.tracking.written,
        "changes": sorted(unit.counting.changes),
        "looks": [
            counter
            for far in (True, False)
            for counter in sorted(unit.counting.looks)
            if unit.counting.looks[counter] is far
        ],
        "far": sum(unit.counting.looks.values()),
        "timed_slots": unit.timed_slots,
        "address_slots": unit.address_slots,
    }
    packed = _packed([json.dumps(facts).encode(), *codes])
    return Provisional(packed) if unit.hurried else packed


def _packed(parts: Sequence[bytes]) -> bytes:
    """Parts one after another, each after its size."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _unpacked(packed: bytes) -> list[bytes]:
    parts, at = [], 0
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 8], "little")
        parts.append(packed[at + 8 : at + 8 + size])
        at += 8 + size
    return parts

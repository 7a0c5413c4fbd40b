"""How much effort a kernel's machine code is worth: as much as LLVM can do in a moment.

A small kernel is compiled here and now. A larger one is optimized less, by a process of its own, within limits of time
and memory; LLVM takes more than proportional time for some programs, and aborts on others. What is larger still, or was
given up, is translated anew with its registers in memory (see `registers`) and not optimized: that takes time in
proportion to the program, whatever it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ptxlab.device.limits import available
from ptxlab.native import engine
from ptxlab.native.apart import FOREVER, Compilation, GaveUpError, OutOfTimeError
from ptxlab.report import Diagnostic, KernelError, error

if TYPE_CHECKING:
    from ptxlab.emulate.translate.unit import Unit

SMALL = 150_000  # characters of LLVM IR that LLVM optimizes in a second or two, whatever they are
FEW = 200  # basic blocks of PTX, with which it does so for any text that is not large (`unit.LARGE`)
HUGE = 2_000_000  # and that it takes seconds for
MANY = 8_000  # instructions that surely are as many
FEW_THREADS = 4096  # of a launch that does not wait for the optimized runtime; detectors take 4 times as long then
HIGHEST = 2  # how much LLVM optimizes at most; tests of what a kernel computes are faster with 0
_SECONDS = {2: 2, 1: 5, 0: FOREVER}  # of a core, for each effort


def make(begin: Callable[..., Unit], until: float | None) -> tuple[Unit, list[bytes]]:
    """A unit, translated, and its machine code; `begin` makes one, `flat` or not. `OutOfTimeError` after `until`."""
    unit = begin(until=until)
    hurried = False
    if sum(1 for function in unit.functions for _ in function.instructions()) < MANY:
        try:
            text, called = unit.translate()
            if len(text) < HUGE:
                # What is recorded is executed once: optimization would take longer than it saves.
                most = 0 if unit.recording is not None else HIGHEST
                return unit, _compile(unit, text, called, min(most, 1 if called else 2), _soon(until))
        except (GaveUpError, OutOfTimeError) as problem:
            unit.check_time()
            if unit.together:  # to run as threads, but optimized, is better
                return make(partial(begin, together=False), until)
            hurried = isinstance(problem, OutOfTimeError)
    unit = begin(until=until, flat=True)
    unit.hurried = hurried
    text, called = unit.translate()
    try:
        return unit, _compile(unit, text, called, 0, until)
    except GaveUpError:
        raise KernelError([_too_large(unit)]) from None


def _soon(until: float | None) -> float | None:
    """A part of the time that is left: what was given up must be possible in the rest."""
    now = time.perf_counter()
    return None if until is None else now + (until - now) / 3


def _compile(unit: Unit, text: str, called: str, speed: int, until: float | None) -> list[bytes]:
    """The machine code of a kernel, and of the functions that it calls if they are a text of their own."""
    is_quick = speed == 0 and not unit.flat  # it is not larger than `HUGE`, and nothing is optimized
    if is_quick or len(text) < SMALL or (not called and unit.blocks <= FEW):
        return [engine.compile_text(text, speed=speed), *_called(called)]
    try:
        with Compilation(text, speed=speed, seconds=_SECONDS[speed], memory=max(available(), 1 << 30)) as compilation:
            others = _called(called)
            return [compilation.result(until), *others]
    except OSError:  # no other process can be started: only what takes no more than proportional time is safe here
        if speed:
            raise GaveUpError from None
        return [engine.compile_text(text, speed=speed), *_called(called)]


def _called(text: str) -> list[bytes]:
    return [engine.compile_kept(text)] if text else []


def _too_large(unit: Unit) -> Diagnostic:
    count = len(unit.instructions)
    return error(
        "too-large",
        f"`{unit.entry.title}`: its {count} instructions are more than LLVM can compile on this machine",
        unit.module.name_span(unit.entry),
        "this kernel",
        helps=['split it into several kernels, or run it with `device="cuda"`'],
    )

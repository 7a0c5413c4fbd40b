"""The part `equal`: values at all sizes, and, where it can be decided, the same function for all values at one size."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from ptxlab.report import KernelError, PtxError
from ptxlab.values import Json
from ptxlab.verify.parts import Judging, spell_sizes
from ptxlab.verify.recognizing import MEMORY_CODES
from ptxlab.verify.running import OutOfTimeError
from ptxlab.verify.task import Data, Sizes, named_by
from ptxlab.verify.verdict import FAILED, OPEN, PASSED, Finding, Part

MOST_INSTRUCTIONS = 300_000  # of threads: what is followed as expressions in some seconds
SECONDS = 60.0  # that it may take


def equality(judging: Judging, symbolic: bool) -> Part:
    """Whether outputs are those of the reference."""
    wrong = list(judging.wrong)
    hidden = [one for one in judging.hidden if one in judging.right]
    public = [one for one in judging.public if one in judging.right]
    values = [*wrong, *(one for one in judging.memory if one.code in MEMORY_CODES)]
    if values and judging.public and len(public) == len(judging.public) and judging.hidden and not hidden:
        first = values[0]
        wrong[:1] = [Finding("known-sizes-only", "right at the sizes that are public, wrong at every other one",
                           first.sizes, first.witness, first.line, first.replay)]  # fmt: skip
    figures: Json = {"right": len(judging.right), "sizes": len(judging.public) + len(judging.hidden)}
    notes = [f"right at {len(judging.right)} of {figures['sizes']} sizes"]
    if wrong or judging.memory or not judging.right:
        return Part("equal", FAILED if wrong else OPEN, wrong, notes, figures)
    if symbolic:
        found, said, level = for_all_values(judging)
        notes.append(said)
        figures["level"] = level
        if found is not None:
            return Part("equal", FAILED, [found], notes, figures)
    return Part("equal", PASSED, notes=notes, figures=figures)


def for_all_values(judging: Judging) -> tuple[Finding | None, str, str]:
    """Compare with the reference as expressions, at the largest size that can be followed."""
    from ptxlab.equal import equal

    caller, task = judging.caller, judging.caller.task
    if task.library != "numpy" or not task.is_reference_exact:
        return None, "for all values: not tried, the reference is not a function of NumPy", "values"
    if any(array.alignment < 256 for array in task.arrays):
        return None, "for all values: not tried, arrays are not aligned", "values"
    sizes = _largest(judging)
    if sizes is None:
        return None, f"for all values: not tried, {min(judging.costs):,} instructions at the smallest size", "values"
    caller.submission.restart()
    data = caller.draw(sizes, "normal", 3)
    for array in task.outputs:
        if array.role == "out":
            data.arrays[array.name].memory[:] = 0  # what is not written was found before
    try:
        launches = caller.plan(sizes).launches(data)
        names = _names(launches, data)
        outputs = [key for key, name in names.items() if name in {array.name for array in task.outputs}]
        with _limited(caller.clock.left(SECONDS)):
            verdict = equal(launches, _by_parameter(judging, data, names), outputs=outputs, assume_paths=True,
                            tolerance=max(task.allowed(array) for array in task.outputs))  # fmt: skip
    except (KernelError, PtxError, TypeError, ValueError, AttributeError, LookupError, RuntimeError) as refused:
        return None, f"for all values: not decided: {str(refused).splitlines()[0]}", "values"
    except OutOfTimeError:
        return None, f"for all values: not decided within {SECONDS:g} s", "values"
    where = f"at {spell_sizes(sizes)}"
    if verdict.level == "refused" and verdict.refusal is not None:
        line = f"line {verdict.refusal.line}: " if verdict.refusal.line else ""
        return None, f"for all values: not decided {where}: {line}{verdict.refusal.why}", "values"
    if verdict.level == "different":
        return _confirmed(judging, data, verdict, names, where)
    return None, f"for all values {where}: {str(verdict).splitlines()[0].partition(':')[0]}", verdict.level


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` where a block takes longer; only the main thread can be interrupted."""
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _largest(judging: Judging) -> Sizes | None:
    """The largest size that is not too large to be followed."""
    fits = [pair for pair in zip(judging.costs, judging.right, strict=True) if pair[0] <= MOST_INSTRUCTIONS]
    return max(fits, key=lambda pair: pair[0])[1] if fits else None


def _names(launches: list[Any], data: Data) -> dict[str, str]:
    """The names of arguments of the task, by those of the parameters of kernels."""
    from ptxlab.equal.sides import named_arrays

    own = {buffer.flat.__array_interface__["data"][0]: name for name, buffer in data.arrays.items()}
    found: dict[str, str] = {}
    for launch in launches:
        for array in named_arrays(launch):
            name = own.get(array.data.__array_interface__["data"][0])
            if name is not None and name not in found.values():
                found[array.name] = name
    return found


def _by_parameter(judging: Judging, data: Data, names: dict[str, str]) -> Any:
    """The reference as a function of the kernel's parameters."""
    task = judging.caller.task
    shapes = {array.name: array.extents(data.sizes) for array in task.arrays}
    if any(array.strides is not None for array in task.arrays):
        raise ValueError("arrays have gaps between rows")

    def reference(**given: Any) -> Json:
        known: Json = {**data.sizes, **data.scalars}
        known |= {name: given[key].reshape(shapes[name]) for key, name in names.items() if key in given}
        for name, buffer in data.arrays.items():
            known.setdefault(name, buffer.view)
        found = task.reference(**named_by(task.reference, known))
        found = found if isinstance(found, dict) else {task.outputs[0].name: found}
        return {key: found[name] for key, name in names.items() if name in found}

    return reference


def _confirmed(
    judging: Judging, data: Data, verdict: Any, names: dict[str, str], where: str
) -> tuple[Finding | None, str, str]:
    """A difference between expressions counts where a launch with the witness's inputs shows it."""
    caller, witness = judging.caller, verdict.witness
    if witness is None or not witness.inputs:
        return None, f"for all values: not decided {where}", "values"
    for key, values in witness.inputs.items():
        if key in names and caller.task.arrays:
            data.arrays[names[key]].flat[...] = np.asarray(values).reshape(-1)
    called = caller.call(data, "chosen by the comparison")
    off = caller.off(called, caller.task.expected(data))
    if called.diagnostics or not off:
        return None, f"for all values {where}: the expressions differ by less than the tolerance", "near"
    words = "; ".join(witness.words) or "the expressions part"
    places = [str(one) for one in witness.places[:1] if one is not None]
    found = Finding("wrong-values", f"not the same function {where}: {words}", data.sizes,
                    "\n".join([f"{witness.element}", *places]),
                    witness.places[0].line if witness.places[0] is not None else None,
                    judging.replay(data.sizes))  # fmt: skip
    return found, f"for all values {where}: different", "different"

"""Whether a submission computes in the types that were asked for: lines that round to narrower ones, and their cost.

A narrow type alone is not a fault: three products of bf16 can be one of f32. So the error is measured as well, beside
that of the reference computed in the type that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import ml_dtypes
import numpy as np

from ptxlab import ir
from ptxlab.verify.running import Called, error_of
from ptxlab.verify.task import DIGITS, Task, Values
from ptxlab.verify.verdict import FAILED, OPEN, PASSED, Finding, Part

_TIMES = 16  # what rounding in another order may cost, against the reference in the same type
_PAIRS = {f"{name}x{count}": name for name in DIGITS for count in (2, 4)}
_NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def narrow_lines(module: ir.Module, operands: str, sums: str) -> Iterator[tuple[int, str, str]]:
    """Instructions with results narrower than `sums`, or operands of MMAs narrower than `operands`."""
    for function in module.functions:
        for instruction in function.instructions() if function.body is not None else ():
            candidates = instruction.opcode.candidates
            types = [_PAIRS.get(one, one) for one in instruction.opcode.modifiers if _PAIRS.get(one, one) in DIGITS]
            if not types or not candidates:
                continue
            effects = candidates[0].effects
            is_mma = effects.mma is not None
            is_conversion = len(types) > 1 and not is_mma
            limit = operands if is_conversion else sums
            narrow = types[0] if DIGITS[types[0]] < DIGITS[limit] else ""
            if is_mma and not narrow:
                narrow = next((one for one in types[1:] if DIGITS[one] < DIGITS[operands]), "")
            if narrow:
                span = module.span(instruction)
                if span is not None:
                    yield span.source.position(span.start)[0], span.text, narrow


def precision(task: Task, modules: Sequence[ir.Module], called: Called | None) -> Part:
    """Whether values are rounded to less than was asked for, with the line and the error."""
    operands = task.narrowest
    floats = [array for array in task.outputs if array.is_float]
    if called is None or not floats:
        return Part("precision", OPEN if floats else PASSED, notes=["no right result to measure"] if floats else [])
    # Sums are not asked to be wider than the widest argument, but for types that nothing is summed in.
    widest = max((array.type for array in task.arrays if array.is_float), key=lambda one: DIGITS[one])
    sums = min(task.accumulate, widest, key=lambda one: DIGITS[one]) if DIGITS[widest] >= 23 else task.accumulate
    expected = task.expected(called.before)
    error = error_of(called, expected, floats)
    stored = max(2.0 ** -(DIGITS[array.type] + 1) for array in floats)
    asked = 2.0 ** -(DIGITS[sums] + 1)
    own = _own_error(task, called, sums, expected)
    limit = max(_TIMES * own, _TIMES * asked) + stored
    figures = {"operands": operands, "sums": sums, "error": error, "expected": limit}
    lines = [one for module in modules for one in narrow_lines(module, operands, sums)]
    said = f"the error is {error:.1e} of the output's size; {sums} in any order has {limit:.1e}"
    if lines and error > limit:
        line, text, type = lines[0]
        more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
        found = Finding("narrow-precision", f"computed in {type} where {_asked(operands, sums)} was asked for; {said}",
                        called.before.sizes, f"line {line}: {text}{more}", line)  # fmt: skip
        return Part("precision", FAILED, [found], figures=figures)
    notes = [said]
    if lines:
        notes.append(f"line {lines[0][0]} computes in {lines[0][2]}, without a loss that shows: {lines[0][1]}")
    return Part("precision", PASSED, notes=notes, figures=figures)


def _asked(operands: str, sums: str) -> str:
    return sums if operands == sums else f"{sums} for sums, {operands} for operands"


def _own_error(task: Task, called: Called, sums: str, expected: Mapping[str, Values]) -> float:
    """The error of the reference where it computes in the type itself."""
    if sums not in _NUMPY:
        return 0.0
    worst = 0.0
    for name, found in task.expected(called.before, _NUMPY[sums]).items():
        wanted = np.asarray(expected[name], np.float64)
        size = float(np.sqrt(np.mean(np.square(wanted)))) or 1.0
        with np.errstate(all="ignore"):
            error = np.abs(np.asarray(found, np.float64) - wanted) / (size + np.abs(wanted))
        worst = max(worst, float(error[np.isfinite(error)].max(initial=0.0)))
    return worst

"""The function unit's coefficients, found from all that it was seen to compute.

    PYTHONPATH=src:. python3 -m tests.numbers.coefficients FOLDER

FOLDER is what `tests.gpu.function_unit` measured. Within an interval every result is how c0 + c1·x + c2·x² begins, with
the x² of `function_unit.square`. Least squares find c1 and c2 nearly; integers around them are tried on all results of
the interval, and those that give every one of them leave a short range of values for c0. In all intervals of a function
c0 has the same low bits; any choice within its range gives the same results. Writes
src/ptxlab/numbers/function_table.py, and checksums of everything measured to evidence/function_unit.json.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tests.gpu.function_unit import Measured, Words, load
from tests.numbers.sweeps import EVIDENCE, checksum

from ptxlab.native.engine import compiled
from ptxlab.numbers.function_unit import square

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "ptxlab" / "numbers" / "function_table.py"
POINT = 40  # bits after the point
STEP = 1 << 14  # c0 counts 2**-26, but for low bits that are the same in all intervals
PARTS = 1 << 17
Integers = npt.NDArray[np.int64]

HEAD = '''"""The coefficients of the function unit: for each interval of each function c0, c1 and c2.

Measured: `tests.gpu.function_unit` ran each function on an NVIDIA H200 for every operand, and
`tests.numbers.coefficients` found the integers that give every result. The names are the functions' first intervals.
"""

from ptxlab.native import s64, table

'''


@dataclass(frozen=True)
class Interval:
    """Operands that share coefficients: their 17 bits, and the results' first bits, so many of them after the point."""

    x: Integers
    results: Integers
    fraction: int


@dataclass(frozen=True)
class Fit:
    """Coefficients that give every result of an interval: c0 is at least `low` and below `high`."""

    low: int
    high: int
    c1: int
    c2: int


def fixed(patterns: Words, fraction: int) -> Integers:
    """The values of f32 patterns, as integers with so many bits after the point."""
    return np.floor(patterns.view(np.float32).astype(np.float64) * 2.0**fraction).astype(np.int64)


def split(results: Integers, fraction: int, count: int) -> Iterator[Interval]:
    """The operands of one exponent, in `count` intervals."""
    for part in results.reshape(count, -1):
        yield Interval(np.arange(len(part)) * (PARTS // len(part)), part, fraction)


def functions(measured: Measured) -> dict[str, list[Interval]]:
    """The intervals of every function, in the order of the table."""

    def of(function: str, chunk: int, fraction: int, count: int = 64) -> list[Interval]:
        return list(split(fixed(measured.results(function, chunk), fraction), fraction, count))

    roots = of("rsqrt.approx.ftz.f32", 127, 24) + of("rsqrt.approx.ftz.f32", 128, 24)
    roots[0] = Interval(roots[0].x[1:], roots[0].results[1:], 24)  # that of 1 is exact and not interpolated
    powers = split(fixed(measured.results("ex2.approx.ftz.f32", 127), 22), 23, 64)  # twice what is interpolated
    logarithms = fixed(measured.results("lg2.approx.ftz.f32", 128), 23) - (1 << 23)
    return {
        "RECIPROCAL": of("rcp.approx.ftz.f32", 127, 24, 128),
        "RECIPROCAL_ROOT": roots,
        "ROOT": of("sqrt.approx.ftz.f32", 127, 23) + of("sqrt.approx.ftz.f32", 128, 23),
        "POWER": list(powers),
        "LOGARITHM": list(split(logarithms, 23, 64)),
        "SINE": list(split(quarter_turn(measured), 24, 64)),
        "TANGENT": list(tangents(measured)),
    }


def quarter_turn(measured: Measured) -> Integers:
    """Sines of the 2**23 parts of the first quarter of a turn, from operands of all exponents."""
    found = np.zeros(1 << 23, np.int64)
    for bit in range(23):
        found[1 << bit : 2 << bit] = fixed(measured.results("MUFU.SIN", 102 + bit)[:: 1 << (23 - bit)], 24)
    return found


def tangents(measured: Measured) -> Iterator[Interval]:
    """Hyperbolic tangents from 2**-8 to 8: each exponent has its own number of intervals, and ignores its last bits."""
    for chunk, count in zip(range(119, 130), (1, 1, 1, 2, 2, 4, 4, 4, 8, 16, 8), strict=True):
        fraction = max(24, 150 - chunk)
        used = measured.results("tanh.approx.f32", chunk)[:: (1 << 23) // (count * PARTS)]
        yield from split(fixed(used, fraction), fraction, count)


def fit(interval: Interval, squares: Integers) -> Fit:
    """The coefficients of an interval; the roundest of those that give every result."""
    x, s = interval.x, squares[interval.x]
    dropped = POINT - interval.fraction
    low, high = interval.results << dropped, (interval.results + 1) << dropped
    powers = np.stack([np.ones(len(x)), x.astype(np.float64), s.astype(np.float64)], 1)
    _, c1, c2 = np.linalg.lstsq(powers, (low + high) / 2.0, rcond=None)[0]
    fits = []
    for second in (2 * (round(c2 / 2) + by) for by in (-1, 0, 1)):
        nearly = round(c1 + (c2 - second) * 0.9 * s[-1] / x[-1])
        for first in range(nearly - 3, nearly + 4):
            rest = first * x + second * s
            least, limit = int((low - rest).max()), int((high - rest).min())
            if least < limit:
                fits.append(Fit(least, limit, first, second))
    assert fits, "no coefficients give these results"
    return max(fits, key=lambda one: (one.c1 | one.c2) & -(one.c1 | one.c2))


def constants(fits: list[Fit]) -> list[int]:
    """c0 of every interval, with low bits that suit all."""
    for bias in sorted({(one.low + STEP // 2) % STEP - STEP // 2 for one in fits}, key=abs):
        chosen = [-(-(one.low - bias) // STEP) * STEP + bias for one in fits]
        if all(c0 < one.high for c0, one in zip(chosen, fits, strict=True)):
            return chosen
    raise AssertionError("no low bits suit all intervals")


def table(found: dict[str, list[Fit]]) -> str:
    """The module that holds the coefficients."""
    rows = [
        f"{c0}, {one.c1}, {one.c2}," for fits in found.values() for c0, one in zip(constants(fits), fits, strict=True)
    ]
    firsts = itertools.accumulate((len(fits) for fits in found.values()), initial=0)
    names = "".join(f"{name} = {first}\n" for name, first in zip(found, firsts, strict=False))
    lines = "".join(f"    {' '.join(rows[at : at + 3])}\n" for at in range(0, len(rows), 3))
    return f"{HEAD}{names}COEFFICIENTS = table(s64, (\n{lines}))  # fmt: skip\n"


def evidence(measured: Measured) -> str:
    """Checksums of the results of every 2**23 operands in a row, and of all results of halves."""
    known: dict[tuple[int, int], str] = {}
    functions = {}
    for name, chunks in measured.functions.items():
        for number, (differences, first) in enumerate(chunks):
            if (differences, first) not in known:
                known[differences, first] = checksum(measured.results(name, number))
        functions[name] = "".join(known[differences, first] for differences, first in chunks)
    halves = {name: checksum(np.array(results, np.uint32)) for name, results in measured.halves.items()}
    found = {
        "command": "python -m tests.gpu.function_unit",
        **measured.machine,
        "functions": functions,
        "halves": halves,
    }
    return json.dumps(found, indent=1) + "\n"


def main() -> None:
    """Find the coefficients, and keep them and the checksums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    measured = load(parser.parse_args().folder)
    compute = compiled(square)
    squares = np.array([compute(x) for x in range(PARTS)], np.int64)
    found = {name: [fit(one, squares) for one in intervals] for name, intervals in functions(measured).items()}
    TABLE.write_text(table(found), encoding="utf-8")
    EVIDENCE.write_text(evidence(measured), encoding="utf-8")
    print(f"wrote {TABLE.relative_to(ROOT)} and {EVIDENCE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

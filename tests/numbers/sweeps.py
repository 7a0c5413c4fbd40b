"""Approximate instructions for every operand, as `tests.gpu.function_unit` measured them: what the emulator computes.

    PYTHONPATH=src:. python3 -m tests.numbers.sweeps

compares all results, 2**32 a function, with the checksums in evidence/function_unit.json; that takes minutes, and some
of it is among the tests.
"""

import json
import os
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tests.gpu.function_unit import CHUNK, CHUNKS

from ptxlab.native import Pointer, call, native, u32, u64
from ptxlab.native.engine import Library, build
from ptxlab.numbers import approximate, function_unit
from ptxlab.numbers.parameters import BF16, F16

EVIDENCE = Path(__file__).resolve().parents[2] / "evidence" / "function_unit.json"


@native
def _rcp(a: u32) -> u32:
    return approximate.reciprocal(a, False)


@native
def _rcp_ftz(a: u32) -> u32:
    return approximate.reciprocal(a, True)


@native
def _rsqrt(a: u32) -> u32:
    return approximate.reciprocal_root(a, False)


@native
def _rsqrt_ftz(a: u32) -> u32:
    return approximate.reciprocal_root(a, True)


@native
def _sqrt(a: u32) -> u32:
    return approximate.square_root(a, False)


@native
def _sqrt_ftz(a: u32) -> u32:
    return approximate.square_root(a, True)


@native
def _ex2(a: u32) -> u32:
    return approximate.power(a, False)


@native
def _ex2_ftz(a: u32) -> u32:
    return approximate.power(a, True)


@native
def _lg2(a: u32) -> u32:
    return approximate.logarithm(a, False)


@native
def _lg2_ftz(a: u32) -> u32:
    return approximate.logarithm(a, True)


@native
def _sine(a: u32) -> u32:
    return function_unit.wave(a, 0)


@native
def _cosine(a: u32) -> u32:
    return function_unit.wave(a, 1)


@native
def _upper_rcp(a: u32) -> u32:
    return u32(approximate.high_reciprocal(u64(a) << 32) >> 32)


@native
def _upper_rsqrt(a: u32) -> u32:
    return u32(approximate.high_reciprocal_root(u64(a) << 32) >> 32)


@native
def _tanh_f16(a: u32) -> u32:
    return approximate.half_tangent(a, F16)


@native
def _tanh_bf16(a: u32) -> u32:
    return approximate.half_tangent(a, BF16)


@native
def _ex2_f16(a: u32) -> u32:
    return approximate.half_power(a, F16)


@native
def _ex2_bf16(a: u32) -> u32:
    return approximate.half_power(a, BF16)


FUNCTIONS: dict[str, Callable[[int], int]] = {
    "rcp.approx.f32": _rcp,
    "rcp.approx.ftz.f32": _rcp_ftz,
    "rsqrt.approx.f32": _rsqrt,
    "rsqrt.approx.ftz.f32": _rsqrt_ftz,
    "sqrt.approx.f32": _sqrt,
    "sqrt.approx.ftz.f32": _sqrt_ftz,
    "ex2.approx.f32": _ex2,
    "ex2.approx.ftz.f32": _ex2_ftz,
    "lg2.approx.f32": _lg2,
    "lg2.approx.ftz.f32": _lg2_ftz,
    "MUFU.SIN": _sine,
    "MUFU.COS": _cosine,
    "tanh.approx.f32": approximate.tangent,
    "rcp.approx.ftz.f64": _upper_rcp,
    "rsqrt.approx.ftz.f64": _upper_rsqrt,
}
HALVES: dict[str, Callable[[int], int]] = {
    "tanh.approx.f16": _tanh_f16,
    "tanh.approx.bf16": _tanh_bf16,
    "ex2.approx.f16": _ex2_f16,
    "ex2.approx.ftz.bf16": _ex2_bf16,
}


@native
def _sweep(function: Pointer[u32], first: u32, count: u32, results: Pointer[u32]) -> None:
    for i in range(count):
        results[i] = call(u32, function, u32(first + i))


@cache
def _library() -> Library:
    return build([_sweep, *FUNCTIONS.values(), *HALVES.values()])


def sweep(function: Callable[[int], int], first: int, count: int) -> npt.NDArray[np.uint32]:
    """The results of `count` operands in a row."""
    results = np.zeros(count, "<u4")
    symbol = function.__native__.symbol  # type: ignore[attr-defined]
    _library().function(_sweep)(_library().address(symbol), first, count, results)
    return results


def checksum(results: npt.NDArray[np.uint32]) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(results, dtype='<u4')):08x}"


@cache
def evidence() -> Any:
    """What was measured."""
    return json.loads(EVIDENCE.read_text(encoding="utf-8"))


def is_as_measured(name: str, chunk: int) -> bool:
    """Whether all results of the operands from `chunk` << 23 on are the measured ones."""
    measured = evidence()["functions"][name][8 * chunk : 8 * chunk + 8]
    return checksum(sweep(FUNCTIONS[name], chunk << 23, CHUNK)) == measured


def wrong_chunks(name: str) -> list[int]:
    """The chunks that have another result than the measured one."""
    return [chunk for chunk in range(CHUNKS) if not is_as_measured(name, chunk)]


def main() -> int:
    """Compare everything."""
    status = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, wrong in zip(FUNCTIONS, pool.map(wrong_chunks, FUNCTIONS), strict=True):
            print(f"{name}: {f'chunks {wrong} differ' if wrong else 'all results are the measured ones'}", flush=True)
            status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Tiles of MMAs, which become vectors, against what computes one element: the same bits, whatever is multiplied."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ptxlab.native import Pointer, array, f32, native, s32, u32, u64
from ptxlab.native.engine import VECTORS, build
from ptxlab.numbers.tensor_core import (
    F16,
    F32,
    F32_SHORT,
    FORMATS,
    INFINITIES,
    MANTISSA_BITS,
    NUMBER_OF,
    NUMBERS,
    SPECIAL,
    Accumulation,
    add_products,
    unpack,
)
from ptxlab.numbers.tensor_core_tiles import ROWS_AT_ONCE, Decoded, TensorCoreTile, decode, multiply_tile

Words = npt.NDArray[np.uint32]
COLUMNS = 24
MOST = 64


@native
def by_tile(
    a: Pointer[u32], b: Pointer[u32], format: u32, depth: u32, step: u32, rows: Pointer[s32], columns: Pointer[s32],
    sums: Pointer[u32], fraction: s32, lacking: s32, result: u32,
) -> None:  # fmt: skip
    left = Decoded(significands=array(f32, ROWS_AT_ONCE * MOST), exponents=array(s32, ROWS_AT_ONCE * MOST))
    right = Decoded(significands=array(f32, COLUMNS * MOST), exponents=array(s32, COLUMNS * MOST))
    decode(a, ROWS_AT_ONCE * depth, format, left, 0)
    decode(b, COLUMNS * depth, format, right, 0)
    tile = TensorCoreTile(a=left, b=right, columns=COLUMNS, depth=depth, step=step, row_scales=rows,
                          column_scales=columns, sums=sums)  # fmt: skip
    multiply_tile(tile, Accumulation(fraction=fraction, lacking=lacking, result=result))


@native
def one_by_one(
    a: Pointer[u32], b: Pointer[u32], format: u32, depth: u32, step: u32, rows: Pointer[s32], columns: Pointer[s32],
    sums: Pointer[u32], fraction: s32, lacking: s32, result: u32,
) -> None:  # fmt: skip
    left: Pointer[u32] = array(u32, MOST)
    right: Pointer[u32] = array(u32, MOST)
    for j in range(COLUMNS):
        for i in range(ROWS_AT_ONCE):
            for k in range(depth):
                left[k] = u32(unpack(a[k * ROWS_AT_ONCE + i], format) + (u32(rows[i]) << 16))
                right[k] = u32(unpack(b[j * depth + k], format) + (u32(columns[j]) << 16))
            for k in range(0, depth, step):
                sums[j * ROWS_AT_ONCE + i] = add_products(
                    left, u64(k), right, u64(k), u64(step), sums[j * ROWS_AT_ONCE + i],
                    Accumulation(fraction=fraction, lacking=lacking, result=result),
                )  # fmt: skip


@native
def count_wrong(format: u32, first: u32, count: u32) -> u32:
    """How many patterns are decoded other than `unpack` does."""
    patterns: Pointer[u32] = array(u32, ROWS_AT_ONCE)
    into = Decoded(significands=array(f32, ROWS_AT_ONCE), exponents=array(s32, ROWS_AT_ONCE))
    wrong: u32 = 0
    for start in range(first, first + count, ROWS_AT_ONCE):
        for i in range(ROWS_AT_ONCE):
            patterns[i] = start + i
        decode(patterns, ROWS_AT_ONCE, format, into, 0)
        for i in range(ROWS_AT_ONCE):
            wanted: u32 = unpack(start + i, format)
            scale: f32 = f32(s32(1) << s32(MANTISSA_BITS[format])) if s32(wanted) >> 16 != SPECIAL else f32(1.0)
            significand: s32 = s32(into.significands[i] * scale)
            if into.exponents[i] != s32(wanted) >> 16 or significand != s32(wanted << 16) >> 16:
                wrong += 1
    return wrong


@cache
def machine_code() -> list[Callable[..., Any]]:
    functions: list[Callable[..., Any]] = [by_tile, one_by_one, count_wrong]
    library = build(functions, speed=VECTORS)
    return [library.function(function) for function in functions]


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern_is_decoded_as_one_is_unpacked(name: str) -> None:
    bits = 1 + sum(FORMATS[name][:2])
    assert machine_code()[2](NUMBER_OF[name], 0, 1 << bits) == 0


def patterns(name: str, count: int, spread: float, random: np.random.Generator) -> Words:
    """Random numbers of a format, with exponents that differ as much; with NaNs and infinities if by more than 9."""
    exponent, mantissa, use, _ = FORMATS[name]
    found = random.integers(0, 1 << exponent + mantissa + 1, count, np.uint32)
    if spread > 9:
        return found
    middle, top = (1 << exponent - 1) - 1, (1 << exponent) - 1
    fields = np.clip(random.normal(middle, spread, count).round(), 0, top - (use != NUMBERS)).astype(np.uint32)
    return found & ~np.uint32(top << mantissa) | fields << np.uint32(mantissa)


WAYS = [(25, F32), (24, F32), (23, F32), (13, F32_SHORT), (25, F16), (24, F16)]


@pytest.mark.parametrize("name", FORMATS)
def test_a_tile_is_what_its_elements_are(name: str) -> None:
    random = np.random.default_rng(NUMBER_OF[name])
    exponent, mantissa, use, _ = FORMATS[name]
    for fraction, result in WAYS:
        if fraction < 2 * mantissa:
            continue
        for depth, step in ((16, 4), (32, 8), (16, 16), (64, 64), (64, 32)):
            for spread in (1, 4, 9, 99):
                a, b = (patterns(name, size * depth, spread, random) for size in (ROWS_AT_ONCE, COLUMNS))
                addends = random.normal(0, 1, ROWS_AT_ONCE * COLUMNS).astype(np.float32).view(np.uint32)
                if result == F16:
                    addends = patterns("f16", ROWS_AT_ONCE * COLUMNS, spread, random)
                elif spread > 4:
                    addends = random.integers(0, 1 << 32, ROWS_AT_ONCE * COLUMNS, np.uint32)
                addends[random.random(ROWS_AT_ONCE * COLUMNS) < 0.1] = 0
                if spread == 1:  # most products cancel each other
                    a.reshape(depth, ROWS_AT_ONCE)[1::2] = a.reshape(depth, ROWS_AT_ONCE)[::2] ^ np.uint32(
                        1 << exponent + mantissa
                    )
                    b.reshape(COLUMNS, depth)[:, 1::2] = b.reshape(COLUMNS, depth)[:, ::2]
                    a[-ROWS_AT_ONCE:] = patterns(name, ROWS_AT_ONCE, 4, random)
                if spread == 4 and use == INFINITIES:  # few elements are special
                    a[random.integers(0, len(a), 2)] = ((1 << exponent) - 1 << mantissa) + random.integers(0, 2, 2)
                most = 127 if spread > 4 and result != F16 else 0
                scales = [random.integers(-most, most + 1, size, np.int32) for size in (ROWS_AT_ONCE, COLUMNS)]
                how = fraction, fraction - 2 * mantissa, result
                sums = [addends.copy(), addends.copy()]
                for function, found in zip(machine_code(), sums, strict=False):
                    function(a, b, NUMBER_OF[name], depth, step, *scales, found, *how)
                different = np.flatnonzero(sums[0] != sums[1])
                assert not different.size, (fraction, result, depth, step, spread, different[:5])


@pytest.mark.parametrize("name", ["f16", "e4m3 as f16", "bf16"])
def test_python_computes_the_same(name: str) -> None:
    random = np.random.default_rng(1)
    mantissa = FORMATS[name][1]
    a, b = (patterns(name, size * 4, 9, random) for size in (ROWS_AT_ONCE, COLUMNS))
    sums = random.normal(0, 1, ROWS_AT_ONCE * COLUMNS).astype(np.float32).view(np.uint32)
    scales = [np.zeros(size, np.int32) for size in (ROWS_AT_ONCE, COLUMNS)]
    listed = [[int(word) for word in words] for words in (a, b)]
    python = [int(word) for word in sums]
    given = [[0] * ROWS_AT_ONCE, [0] * COLUMNS]
    how = 25, 25 - 2 * mantissa, F32
    by_tile(*listed, NUMBER_OF[name], 4, 4, *given, python, *how)  # type: ignore[arg-type]
    machine_code()[0](a, b, NUMBER_OF[name], 4, 4, *scales, sums, *how)
    assert python == sums.tolist()

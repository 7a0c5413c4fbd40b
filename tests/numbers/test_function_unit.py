"""The function unit: its square, and its results, 2**23 in a row, against checksums of what an H200 computed."""

import pytest

from ptxlab.numbers import function_unit

from .sweeps import FUNCTIONS, HALVES, checksum, evidence, is_as_measured, sweep

# Each where much happens: results that cross a power of two, subnormal ones, operands that need a factor.
CHUNKS = {
    "rcp.approx.f32": [253],
    "rcp.approx.ftz.f32": [127],
    "rsqrt.approx.f32": [0],
    "rsqrt.approx.ftz.f32": [127, 128],
    "sqrt.approx.f32": [0],
    "sqrt.approx.ftz.f32": [127, 128],
    "ex2.approx.f32": [389],
    "ex2.approx.ftz.f32": [127, 383],
    "lg2.approx.f32": [0],
    "lg2.approx.ftz.f32": [126, 127],
    "MUFU.SIN": [124, 383],
    "MUFU.COS": [126],
    "tanh.approx.f32": [119, 126, 129],
    "rcp.approx.ftz.f64": [127],
    "rsqrt.approx.ftz.f64": [127],
}


def test_the_square_leaves_out_what_is_below_its_last_bit() -> None:
    for x in (*range(0, 1 << 17, 611), (1 << 17) - 1):
        places = [place for place in range(17) if x >> place & 1]
        products = [1 << (a + b + (a < b)) for a in places for b in places if a <= b]
        assert function_unit.square(x) << 19 == sum(product for product in products if product >> 19)


def test_every_function_is_tried() -> None:
    assert set(CHUNKS) == set(FUNCTIONS) == set(evidence()["functions"])
    assert set(HALVES) == set(evidence()["halves"])


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize(("name", "chunk"), [(name, chunk) for name in CHUNKS for chunk in CHUNKS[name]])
def test_results_are_those_of_an_h200(name: str, chunk: int) -> None:
    assert is_as_measured(name, chunk)


@pytest.mark.parametrize("name", HALVES)
def test_results_of_halves_are_those_of_an_h200(name: str) -> None:
    assert checksum(sweep(HALVES[name], 0, 1 << 16)) == evidence()["halves"][name]


def test_a_wrong_result_is_noticed() -> None:
    results = sweep(HALVES["ex2.approx.f16"], 0, 1 << 16)
    results[12345] ^= 1
    assert checksum(results) != evidence()["halves"]["ex2.approx.f16"]

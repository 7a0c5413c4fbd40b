"""Algorithms that users write: scheduled by steps of the page, right, or refused on their line with what to do."""

# ruff: noqa: F821 - the names of sizes and loops are those of the algorithms
# mypy: ignore-errors

import numpy as np
import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import algorithm, bf16, checking, f32, launching, s8, schedule, u8
from ptxlab.schedule.reference import compute
from tests.schedule.algorithms import log_sum


@algorithm
def nearest(x: f32["m", "d"], y: f32["n", "d"], least: f32["m"], mean: f32["m"]):
    for i in range(m):
        for j in range(n):
            t = sqrt(sum((x[i, p] - y[j, p]) ** 2 for p in range(d)))
        least[i] = min(t for j in range(n))
        mean[i] = sum(t for j in range(n)) / n


@algorithm
def centred(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        for j in range(n):
            t = x[i, j] * 2.0
        mean = sum(t for j in range(n)) / n
        y[i] = sum(abs(t - mean) for j in range(n))


@algorithm
def gemv_of_bytes(w: s8["m", "n"], scale: f32["m"], x: f32["n"], y: f32["m"]):
    for i in range(m):
        y[i] = scale[i] * sum(w[i, j] * x[j] for j in range(n))


@algorithm
def product_of_bytes(a: bf16["m", "k"], w: u8["n", "k"], scale: f32["n"], zero: f32["n"], c: bf16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = scale[j] * sum(a[i, x] * (w[j, x] - zero[j]) for x in range(k))


@algorithm
def logarithms(x: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = log(abs(x[i])) if i > 1 else log(x[i] - x[i])


@algorithm
def limited(x: f32["n"], low: f32["n"], high: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = max(min(x[i], high[i]), low[i], 0.0)


@algorithm
def depthwise(x: f32["b", "c", "h+2", "w+2"], k: f32["c", 3, 3], y: f32["b", "c", "h", "w"]):
    for n, d, i, j in grid(b, c, h, w):
        y[n, d, i, j] = sum(x[n, d, i + p, j + q] * k[d, p, q] for p in range(3) for q in range(3))


@algorithm
def adam(p: f32["n"], g: f32["n"], first: f32["n"], second: f32["n"], rate: f32):
    for i in range(n):
        a = 0.9 * first[i] + 0.1 * g[i]
        b = 0.99 * second[i] + 0.01 * g[i] ** 2
        first[i] = a
        second[i] = b
        p[i] = p[i] - rate * a / (sqrt(b) + 1.0)


@algorithm
def products(a: bf16["g", "m", "k"], b: bf16["g", "n", "k"], c: bf16["g", "m", "n"]):
    for h, i, j in grid(g, m, n):
        c[h, i, j] = sum(a[h, i, x] * b[h, j, x] for x in range(k))


@algorithm
def gated(x: bf16["m", "k"], w: bf16["n", "k"], v: bf16["n", "k"], y: bf16["m", "n"]):
    for i, j in grid(m, n):
        s = sum(x[i, p] * w[j, p] for p in range(k))
        t = sum(x[i, q] * v[j, q] for q in range(k))
        y[i, j] = s / (1.0 + exp(-s)) * t


@algorithm
def largest(a: bf16["m", "k"], b: bf16["n", "k"], y: f32["m"], z: f32["m"]):
    for i in range(m):
        for j in range(n):
            t = sum(a[i, p] * b[j, p] for p in range(k))
        y[i] = max(t for j in range(n))
        z[i] = sum(t * t for j in range(n))


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.tile(i=32).blocks().threads("i"),
        lambda s: s.tile(i=8).blocks().threads("i").tile(j=32).threads("j.1"),
        lambda s: s.tile(i=8).blocks().threads("i").tile(p=4).threads("p.1"),
        lambda s: s.tile(i=32).blocks().tile(i=2).threads().tile(j=16).stage("y", in_="shared"),
    ],
)
def test_a_number_of_each_iteration_is_reduced_where_it_is_made(make):
    assert make(schedule(nearest)).check(seeds=1, symbolic=False, m=20, n=37, d=5)


def test_it_is_the_algorithm_for_all_values():
    assert schedule(nearest).check(seeds=0, m=2, n=3, d=2).verdict.level == "same-bits"
    assert schedule(log_sum).check(seeds=1, symbolic=False, m=3, n=20)


def test_a_reduction_of_what_another_one_has_made_is_another_pass():
    with pytest.raises(PtxError, match=r"`t` is kept in a register for each iteration of `j.0`"):
        str(schedule(centred))
    assert schedule(centred, n=20).check(seeds=1, symbolic=False, m=3)


def test_rows_of_a_product_are_reduced_where_it_is_made():
    s = schedule(largest, n=40).tile(i=32).blocks().tile(i=16).threads().tile(j=16).tile(p=16).tensorize("mma.sync")
    s.reorder("j.0", "i.2", "i.3").stage("a", "b", in_="shared", swizzle="32B").vectorize("a", "b", 8)
    assert s.check(seeds=1, symbolic=False, m=72, k=40)


def test_elements_are_read_before_they_are_written():
    s = schedule(adam).tile(i=512).blocks().tile(i=4).threads().vectorize("p", "g", "first", "second", 4)
    assert s.check(seeds=1, n=600)
    with pytest.raises(PtxError, match="`first` is written"):
        s.stage("first", in_="shared")


@pytest.mark.parametrize("how", ["persistent", "stream_k"])
def test_products_of_several_matrices_are_tiles_of_one_grid(how, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 3)
    s = schedule(products).tile(i=64, j=32).blocks("h", "i", "j").tile(x=32).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="64B").vectorize("c", 8).pipeline(stages=3, by="tma").specialize().raster(2)
    assert getattr(s, how)().check(seeds=1, symbolic=False, g=3, m=136, n=72, k=72)


def test_weights_of_eight_bits_are_whole_numbers():
    s = schedule(gemv_of_bytes).tile(i=4).blocks().threads("i").tile(j=512).tile(j=16).threads()
    assert s.vectorize("w", 16).vectorize("x", 4).check(seeds=1, symbolic=False, m=10, n=528)
    assert schedule(gemv_of_bytes).blocks("i").tile(j=8).threads("j.1").check(seeds=1, m=2, n=13)
    tiled = schedule(product_of_bytes).tile(i=32, j=32).blocks().tile(i=4, j=4).threads().tile(x=16)
    tiled.reorder("x", "i", "j").stage("a", "w", in_="shared").stage("a", "w", "zero", in_="registers")
    tiled.vectorize("a", 8).vectorize("w", 16).pipeline(stages=2)
    assert tiled.check(seeds=1, symbolic=False, m=40, n=36, k=48)
    assert tiled.check(seeds=1, symbolic=False, m=40, n=36, k=49)


def test_four_loops_are_of_three_dimensions_and_the_threads():
    s = schedule(depthwise).tile(i=8, j=32).blocks("n", "d", "i").threads("i", "j.1").stage("x", in_="shared", at="j.0")
    assert s.check(seeds=1, symbolic=False, b=2, c=3, h=10, w=40)


def test_maxima_of_three():
    assert schedule(limited).tile(i=32).blocks().threads("i").check(seeds=1, n=40)


def test_infinities_are_equal_and_what_is_beside_them_is_compared(monkeypatch):
    s = schedule(logarithms).tile(i=32).blocks().threads("i")
    assert s.check(seeds=1, symbolic=False, n=40)
    monkeypatch.setattr(checking, "compute", lambda *given: {"y": compute(*given)["y"] + np.arange(40)})
    with pytest.raises(PtxError, match=r"`y\[2\]` is .*, expected "):
        s.check(seeds=1, symbolic=False, n=40)


def to_the_diagonal(x: f32["n", "n"], y: f32["n"]):
    for i in range(n):
        y[i] = sum(x[i, j] for j in range(i))


def halves(x: f32["n"], y: f32["n"]):
    for i in range(n):
        if i < 5:
            y[i] = x[i]
        if i >= 5:
            y[i] = 0.0


def gathered(x: f32["n"], ids: f32["m"], y: f32["m"]):
    for i in range(m):
        y[i] = x[ids[i]]


def decayed(p: f32["n"], first: f32["n"]):
    for i in range(n):
        first[i] = 0.9 * first[i]
        p[i] = p[i] - first[i]


def shifted(x: f32["n"], y: f32["n"]):
    for i in range(n):
        t = x[i] + y[n - 1 - i]
        x[i] = t
        y[i] = t


def centred_in_place(x: f32["m", "n"]):
    for i in range(m):
        mean = sum(x[i, j] for j in range(n)) / n
        for j in range(n):
            x[i, j] = x[i, j] - mean


def quantized(x: f32["n"], y: s8["n"]):
    for i in range(n):
        y[i] = x[i] * 127.0


@pytest.mark.parametrize(
    ("function", "message", "help"),
    [
        (to_the_diagonal, "how many iterations `j` has depends on `i`", "if j < i"),
        (halves, "`y` is written twice", "y[...] = a if ... else b"),
        (gathered, "`ids[i]` is not a sum of loop variables and sizes", "indices and extents are"),
        (decayed, "`first` is read here and written on line", "give the value a name"),
        (shifted, "`y` is read here and written on line", "give the value a name"),
        (centred_in_place, "`x` is read here and written on line", "give the value a name"),
        (quantized, "`y` is of s8, which is only read", "store it as `f16`"),
    ],
)
def test_what_is_refused(function, message, help):
    with pytest.raises(PtxError) as found:
        algorithm(function)
    assert message in str(found.value)
    assert help in str(found.value)
    assert "test_algorithms.py" in str(found.value)


def test_tensor_cores_compute_one_of_two_sums():
    s = schedule(gated).tile(i=64, j=32).blocks().tile(p=32, q=32).tensorize("wgmma")
    with pytest.raises(PtxError, match=r"`v` is swizzled, and `t` is not computed by tensor cores"):
        s.stage("x", "w", "v", in_="shared", swizzle="64B")


def test_a_grid_has_three_dimensions():
    with pytest.raises(PtxError, match=r"4 loops are run by blocks(.|\n)*leave one to threads"):
        schedule(depthwise).blocks("n", "d", "i", "j")

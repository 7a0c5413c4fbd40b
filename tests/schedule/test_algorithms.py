"""Algorithms that users write: scheduled by steps of the page, right, or refused on their line with what to do."""

# ruff: noqa: F722, F821 - the names of sizes and loops are those of the algorithms
# mypy: ignore-errors

import numpy as np
import pytest

from ptxlab.report import KernelError, PtxError
from ptxlab.schedule import algorithm, checking, f32, launching, s8, s32, schedule
from ptxlab.schedule.reference import compute
from tests.schedule.algorithms import (
    adam,
    bags,
    centred,
    depthwise,
    embedding,
    experts,
    gated,
    gemv_of_bytes,
    largest,
    limited,
    log_sum,
    nearest,
    permuted,
    product_of_bytes,
    product_of_experts,
    products,
    ragged_sums,
)


@algorithm
def logarithms(x: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = log(abs(x[i])) if i > 1 else log(x[i] - x[i])


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


def scattered(x: f32["m"], ids: s32["m"], y: f32["n"]):
    for i in range(m):
        y[ids[i]] = x[i]


def beside(x: f32["n"], ids: s32["m"], y: f32["m"]):
    for i in range(m):
        y[i] = x[ids[i] + 1]


def of_beyond(x: f32["n"], ids: s32["m"], y: f32["m"]):
    for i in range(m):
        y[i] = x[ids[i + 1]]


def of_another_loop(x: f32["n"], ids: s32["m"], y: f32["m"], z: f32["n"]):
    for _ in range(1):
        for i in range(m):
            t = ids[i]
            y[i] = x[t]
        for j in range(n):
            z[j] = x[t]


def rows_of_lengths(x: f32["m", "n"], lengths: s32["m"], y: f32["m"]):
    for i in range(m):
        y[i] = sum(x[i, j] for j in range(lengths[i]))


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


def signs(x: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = x[i] > 0.0


def positives(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        y[i] = sum(x[i, j] > 0.0 for j in range(n))


def chosen_by_a_number(x: f32["n"], y: f32["n"]):
    for i in range(n):
        t = x[i]
        y[i] = 1.0 if t and i > 2 else 0.0


def of_itself(x: f32["x"], y: f32["x"]):
    for i in range(x):
        y[i] = 1.0


def of_two_names(x: f32["m n"]):
    for i in range(m):
        x[i] = 1.0


@pytest.mark.parametrize(
    ("function", "message", "help"),
    [
        (signs, "`x[i] > 0.0` is a condition, expected a number", "choose: `1.0 if x[i] > 0.0 else 0.0`"),
        (positives, "`x[i, j] > 0.0` is a condition, expected a number", "choose: `1.0 if"),
        (chosen_by_a_number, "`t` is a number, expected a condition", "compare: `t != 0`"),
        (of_itself, "`x` is a parameter, and the size of an array", ""),
        (of_two_names, "`m n` is not the extent of an array", ""),
        (to_the_diagonal, "how many iterations `j` has depends on `i`", "if j < i"),
        (halves, "`y` is written twice", "y[...] = a if ... else b"),
        (gathered, "`ids[i]` is not a sum of loop variables and sizes", "indices and extents are"),
        (scattered, "`y` is written at indices that are read", "which of them is last?"),
        (beside, "`x` may be accessed out of bounds: the index is ids[i] + 1", "choose: `x[...] if 0 <="),
        (of_beyond, "`ids` may be accessed out of bounds: the index is i + 1", "choose"),
        (of_another_loop, "`t` is a number for each `i`, and this is not in a loop over it", "reduce it"),
        (rows_of_lengths, "how many iterations `j` has depends on `i`", "if j < i"),
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


@algorithm
def named_as_registers(a: f32["m", "thread"], b: f32["thread", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[x, j] for x in range(thread))


@algorithm
def sizes_in_sums(x: f32["m+n"], y: f32["m"]):
    for i in range(m):
        is_large = x[i] > 1.0
        y[i] = 1.0 if is_large else x[i + n]


def test_names_and_sizes_are_any():
    s = schedule(named_as_registers).tile(i=16, j=16).blocks().tile(i=2, j=2).threads().tile(x=8)
    s.reorder("x", "i", "j").stage("a", "b", in_="shared")
    assert s.check(seeds=1, symbolic=False, m=20, n=33, thread=13)
    assert schedule(sizes_in_sums).tile(i=8).blocks().threads("i").check(seeds=1, symbolic=False, m=13, n=5)


@pytest.mark.parametrize(
    ("made", "take", "sizes"),
    [
        (embedding, lambda s: s.tile(i=8, j=64).blocks().tile(j=4).threads("i", "j.1"), {"m": 20, "v": 30, "n": 100}),
        (embedding, lambda s: s.tile(i=8).blocks("j").tile(i=2).threads().unroll("i.2"), {"m": 21, "v": 3, "n": 5}),
        (bags, lambda s: s.tile(i=4, j=32).blocks().threads("i.1", "j.1"), {"m": 9, "v": 30, "n": 50, "k": 5}),
        (bags, lambda s: s.tile(x=8).threads("x.1").stage("weights", in_="shared"), {"m": 3, "v": 5, "n": 4, "k": 20}),
        (ragged_sums, lambda s: s.blocks("i").tile(j=64).tile(j=2).threads().vectorize("x", 2), {"m": 9, "n": 150}),
        (
            product_of_experts,
            lambda s: s.tile(i=4, j=8).blocks().tile(i=2).threads().stage("b", in_="registers"),
            {"k": 9},
        ),
        (permuted, lambda s: s.tile(i=8).blocks().tile(i=2).threads().unroll("i.2"), {"m": 19, "n": 12}),
        (permuted, lambda s: s.tile(i=2).blocks().threads("i"), {"m": 0, "n": 0}),
    ],
)
def test_elements_are_gathered(made, take, sizes):
    assert take(schedule(made)).check(seeds=2, symbolic=False, **sizes)


def test_vectors_are_gathered():
    s = schedule(embedding).tile(i=4, j=32).blocks().tile(i=2, j=4).threads().vectorize("table", "y", 4)
    text = str(s.check(seeds=1, symbolic=False, m=9, v=30, n=40).check(seeds=0, m=3, v=4, n=8).kernel(m=4, n=32))
    assert s.verdict.level == "same-bits"
    assert [text.count(one) for one in ("ld.global.b32", "ld.global.v2.b32", "st.global.v4")] == [1, 1, 1]


def by_tma(s):
    """An expert for each product, whose number one thread reads before it copies."""
    s.tile(i=64, j=16).blocks("h", "i", "j").tile(i=64).threads().tile(x=64).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="128B").pipeline(stages=3, by="tma")
    return s.specialize().raster(2).persistent()


def by_cp_async(s):
    s.tile(i=32, j=16).blocks("h", "i", "j").tile(i=16).threads().tile(x=32).tensorize("mma.sync")
    return s.stage("a", "b", in_="shared", pad=8).vectorize("a", "b", 8).pipeline(stages=3)


@pytest.mark.parametrize("take", [by_tma, by_cp_async])
def test_tensor_cores_multiply_what_blocks_gather(take):
    s = take(schedule(experts)).check(seeds=1, symbolic=False, m=70, n=40, k=100, e=4, g=3)
    s.check(seeds=1, symbolic=False, m=70, n=40, k=96, e=4, g=3)
    lines = str(s).splitlines()
    reads = [n for n, line in enumerate(lines) if "ld.global.b32" in line]
    loops = [n for n, line in enumerate(lines) if "// loop x.0" in line]
    assert reads
    assert loops
    for at in loops:
        start = next(n for n in range(at, len(lines)) if lines[n].startswith("$loop"))
        end = next(n for n in range(start, len(lines)) if f"bra {lines[start].strip(':')};" in lines[n])
        assert not any(start < read < end for read in reads)


def test_indices_beyond_an_array_are_found():
    ids, table, y = np.array([0, 7], np.int32), np.zeros((7, 4), np.float16), np.zeros((2, 4), np.float32)
    with pytest.raises(KernelError, match="outside of argument 1"):
        schedule(embedding).launch(ids, table, y, device="cpu")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda s: s.stage("table", in_="shared"), "`table` is read at indices that depend on `i.1`: no box"),
        (lambda s: s.stage("ids", in_="shared"), "`ids` has indices, which are read where they are used"),
        (lambda s: s.vectorize("ids", 4), "`ids` has indices, which are read where they are used"),
    ],
)
def test_what_is_gathered_is_not_staged(step, message):
    with pytest.raises(PtxError) as found:
        step(schedule(embedding).tile(i=8, j=32).blocks())
    assert message in str(found.value)
    assert "test_algorithms.py" in str(found.value)


def test_tensor_cores_compute_one_of_two_sums():
    s = schedule(gated).tile(i=64, j=32).blocks().tile(p=32, q=32).tensorize("wgmma")
    with pytest.raises(PtxError, match=r"`v` is swizzled, and `t` is not computed by tensor cores"):
        s.stage("x", "w", "v", in_="shared", swizzle="64B")


def test_a_grid_has_three_dimensions():
    with pytest.raises(PtxError, match=r"4 loops are run by blocks(.|\n)*leave one to threads"):
        schedule(depthwise).blocks("n", "d", "i", "j")

"""Schedules: what they compute, which barriers they need, and what is refused where."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxlab
from ptxlab.report import KernelError, PtxError
from ptxlab.schedule import Schedule, algorithm, bf16, f32, s8, schedule
from tests.schedule.algorithms import (
    ALGORITHMS,
    batched,
    causal_sums,
    convolution,
    gemv,
    gemv_transposed,
    linear_of_eights,
    matmul,
    matmul_of_halves,
    rms_norm,
    row_sum,
    scale,
    softmax,
    transpose,
)
from tests.schedule.random_schedules import attempt


def tiled() -> Schedule:
    """8 x 8 threads with 2 x 2 elements each."""
    s = schedule(matmul).tile(i=16, j=16).blocks()
    s.tile(i=2, j=2).threads()
    s.tile(x=8).reorder("x", "i", "j")
    return s.stage("a", "b", in_="shared").stage("a", "b", in_="registers")


def pipelined() -> Schedule:
    """Rows of 4 elements, and copies that run ahead."""
    s = schedule(matmul).tile(i=16, j=32).blocks()
    s.tile(i=2, j=4).threads()
    s.tile(x=8).reorder("x", "i", "j").unroll("x.1")
    s.stage("a", in_="shared", transposed=True, pad=4).stage("b", in_="shared").stage("a", "b", in_="registers")
    return s.vectorize("a", "b", "c", 4).pipeline(stages=3)


def prefetched() -> Schedule:
    """And registers that are loaded one iteration ahead."""
    return pipelined().prefetch()


def rows(of, warps: int = 2) -> Schedule:
    """A block for each row."""
    return schedule(of).blocks("i").tile(j=32 * warps).threads("j.1")


@pytest.mark.parametrize("one", ALGORITHMS, ids=lambda one: one.name)
def test_one_thread_computes_the_algorithm(one):
    assert schedule(one).check(seeds=1, symbolic=False, **{size: 5 + number for number, size in enumerate(one.sizes)})


@pytest.mark.parametrize("sizes", [{"m": 21, "n": 37, "k": 19}, {"m": 32, "n": 32, "k": 24}, {"m": 1, "n": 1, "k": 1}])
@pytest.mark.parametrize("make", [tiled, pipelined, prefetched])
def test_products_of_any_size(make, sizes):
    assert make().check(seeds=1, symbolic=False, **sizes)


@pytest.mark.parametrize(("n", "width"), [(36, ".v4"), (38, ".v2"), (37, "")])
def test_rows_that_are_half_of_a_vector(n, width):
    """Of B, 16, 8 or 4 bytes are copied at once; of C, as many are stored; A is transposed as it is copied."""
    s = pipelined().check(seeds=1, symbolic=False, m=17, n=n, k=18)
    text = str(s.launch_of(*s.arguments({"m": 17, "n": n, "k": 18})).kernel)
    assert set(re.findall(r"cp\.async\.c.*\], (\d+)", text)) == {"4", str(4 * int(width[2:] or 1))}
    assert f"st.global{width}.b32" in text


@algorithm
def halves(x: bf16["m", "n"], y: f32["n", "m"]):
    for i, j in grid(m, n):
        y[j, i] = x[i, j]


@algorithm
def bytes_of_rows(x: s8["m", "n"], y: f32["n", "m"]):
    for i, j in grid(m, n):
        y[j, i] = x[i, j]


@algorithm
def pairs(x: f32["n"], y: f32["n"]):
    for i in range(1, n):
        y[i] = x[i - 1] + x[i]


@pytest.mark.parametrize("sizes", [{"m": 0}, {"n": 0}, {"k": 0}, {"m": 0, "n": 0, "k": 0}], ids=str)
@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_product_of_nothing(sizes, is_fixed):
    """One block is launched, which accesses nothing."""
    s = schedule(matmul, **sizes) if is_fixed else schedule(matmul)
    s.tile(i=8, j=8).blocks().raster(2).threads("i.1", "j.1").tile(x=4).stage("a", "b", in_="shared").vectorize("a", 4)
    assert s.pipeline(stages=2).check(seeds=1, symbolic=False, **sizes)


def test_nothing_is_the_same_as_nothing():
    assert schedule(scale).tile(i=4).check(seeds=1, **dict.fromkeys(scale.sizes, 0)).verdict.level == "same-bits"


@pytest.mark.parametrize("make", [lambda s: s.blocks("i"), lambda s: s.tile(i=4).blocks().threads("i"), lambda s: s])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_loop_without_iterations(make, n):
    assert make(schedule(pairs)).check(seeds=1, symbolic=False, n=n)
    assert make(schedule(pairs, n=n)).check(seeds=1, symbolic=False)


@pytest.mark.bulk
def test_a_schedule_is_the_same_function():
    assert tiled().check(seeds=1, m=17, n=16, k=9)


@pytest.mark.parametrize("of", [row_sum, softmax, rms_norm, gemv], ids=lambda one: one.name)
@pytest.mark.parametrize("warps", [1, 2])
def test_rows_are_reduced_by_threads(of, warps):
    assert rows(of, warps).check(seeds=1, symbolic=False, m=2, n=150)


def test_a_box_in_shared_memory_reaches_beyond_the_tile():
    s = schedule(convolution).tile(i=4, j=16).blocks().threads("i", "j").stage("x", "f", in_="shared", at="")
    s.check(seeds=1, symbolic=False, h=9, w=33)
    assert "6 x 18 of x" in str(s)


def test_a_transpose_goes_through_shared_memory():
    s = schedule(transpose).tile(i=16, j=16).blocks().threads("j", "i").stage("x", in_="shared", at="", pad=1)
    assert s.check(seeds=1, symbolic=False, m=33, n=18)


def synchronizations(launch) -> list[int]:
    text = str(launch.kernel).splitlines()
    return [n for n, line in enumerate(text) if line.strip().startswith(("bar.", "cp.async.wait_group"))]


def without(launch, line: int):
    """Run a launch without a line of its PTX."""
    text = str(launch.kernel).splitlines()
    del text[line]
    kernel = ptxlab.parse("\n".join(text), name="changed.ptx")[launch.kernel.name]
    for seed in range(3):
        kernel.launch(launch.grid, launch.block, launch.args, shared=launch.shared, seed=seed)


@pytest.mark.parametrize(
    ("make", "sizes", "count"),
    [
        (tiled, {"m": 16, "n": 16, "k": 24}, 2),
        (pipelined, {"m": 16, "n": 32, "k": 40}, 2),
        (prefetched, {"m": 16, "n": 32, "k": 40}, 4),
        (lambda: rows(softmax), {"m": 2, "n": 130}, 2),
        (lambda: rows(softmax, 1), {"m": 2, "n": 70}, 0),
        (lambda: rows(softmax).stage("x", in_="shared", at="j.0"), {"m": 2, "n": 130}, 2),
    ],
    ids=["tiled", "pipelined", "prefetched", "two warps", "one warp", "own elements"],
)
def test_each_barrier_is_needed(make, sizes, count):
    s = make()
    launch = s.launch_of(*s.arguments(sizes))
    launch.run(device="cpu")
    found = synchronizations(launch)
    assert len(found) == count
    for line in found:
        with pytest.raises(KernelError):
            without(launch, line)


def test_barriers_of_warps_are_enough_where_warps_keep_to_themselves():
    s = schedule(transpose).tile(i=16, j=16).blocks().tile(i=8).threads().threads("i", "j")
    s.undo()
    assert s.history() == ["tile(i=16, j=16)", "blocks()", "tile(i=8)", "threads()"]
    s = schedule(matmul).tile(i=4, j=32).blocks().threads("i", "j").tile(x=32).stage("a", in_="shared")
    assert "bar.warp.sync" in str(s)
    assert "bar.sync" not in str(s)
    s.check(seeds=1, symbolic=False)


def test_a_schedule_is_a_value():
    s = tiled()
    other = schedule(matmul).apply(s.save())
    assert other == s
    assert str(other) == str(s)
    assert other.undo() != s
    assert other.history() == s.history()[:-1]
    fixed = s.copy(k=16)
    assert ".param .s32 k" not in str(fixed)
    fixed.check(seeds=1, symbolic=False)
    staged = pipelined()
    assert schedule(matmul, k=64).apply(staged.save()).state.stages == staged.state.stages  # in the loop over tiles


def test_the_text_says_which_step_made_what():
    text = str(pipelined())
    assert '// stage("a", in_="shared", transposed=True, pad=4): 16 x 8 of a to shared memory' in text
    assert "// derived: other threads have read `a` before it is overwritten" in text
    assert "ld.shared.v4.f32" in text


def test_a_ring_of_one_iteration():
    """The barrier is in it, after the wait: before the loop it was put in again and again."""
    s = schedule(matmul, k=8).tile(i=16, j=16).blocks().tile(i=2, j=2).threads()
    s.tile(x=8).reorder("x", "i", "j").stage("a", "b", in_="shared").pipeline(stages=3)
    lines = str(s).splitlines()
    (wait,) = (number for number, line in enumerate(lines) if "cp.async.wait_group" in line)
    (barrier,) = (number for number, line in enumerate(lines) if "bar.sync" in line)
    assert wait < barrier


def test_a_wait_for_copies_leaves_what_a_barrier_is_for():
    """What threads combined before is ordered by the barrier of the loop, and waits for copies do not change that."""
    s = schedule(batched).tile(j=32, h=5).blocks().tile(i=1, j=1).tile(x=4).blocks("i.0").threads("h.1").threads("x.1")
    text = str(s.stage("a", in_="shared", transposed=True).pipeline(stages=4))
    assert text.count("bar.warp.sync") == 2


def test_less_is_masked_where_tiles_fit():
    s = tiled()
    assert str(s).count("setp") > str(s.kernel(m=16, n=16, k=8)).count("setp")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda s: s.blocks("x"), "`x` carries a dependence"),
        (lambda s: s.threads("i"), "a block has a fixed number of threads"),
        (lambda s: s.tile(z=4), "there is no loop `z`"),
        (lambda s: s.tile(i=32).tile(i=5), "not a multiple of 5"),
        (lambda s: s.tile(i=64, j=64).blocks().threads("i", "j"), "4096 threads"),
        (lambda s: s.stage("c"), "`c` is written"),
        (lambda s: s.stage("d"), "there is no array `d`"),
        (lambda s: s.stage("a", in_="cache"), "no stage in 'cache'"),
        (lambda s: s.stage("a", in_="shared", at=""), "depends on `"),
        (lambda s: s.reorder("x", "i"), "kept in a register for each iteration of `i.0`"),
        (lambda s: s.vectorize("a", 3), "a width of 2, 4 or 8"),
        (lambda s: s.pipeline(), "no array is staged"),
        (lambda s: s.prefetch(), "no copies run ahead"),
        (lambda s: s.tile(i=1024).blocks().threads("i").tile(x=64).stage("a"), "more than a block can have"),
        (lambda s: s.tile(i=64, j=64).tile(x=2).reorder("x.1", "i.1", "j.1").blocks("i", "j"), "keep 4096"),
    ],
)
def test_what_is_refused(step, message):
    s = schedule(matmul)
    with pytest.raises(PtxError) as found:
        step(s)
    shown = str(found.value)
    assert message in shown
    assert "test_schedule.py" in shown
    assert "src/ptxlab" not in shown


@pytest.mark.parametrize("by", ["", "cp.async"])
def test_a_cache_policy_changes_no_result(by):
    s = schedule(matmul).tile(i=8, j=8).blocks().threads("i.1", "j.1").tile(x=8).stage("a", "b", in_="shared")
    s = s.pipeline(stages=2, by=by) if by else s
    plain, text = str(s), str(s.evict_first("a", "c").check(seeds=1, symbolic=False, m=9, n=8, k=12))
    hinted = [line.split()[-1] for line in text.splitlines() if "L2::cache_hint" in line]
    assert "cache_hint" not in plain
    assert len(set(hinted)) == 1  # the policy, by loads or copies of `a` and stores of `c`
    assert text.count("createpolicy") == 1
    others = [line for line in text.splitlines() if ".global" in line and "L2::" not in line and "cvta" not in line]
    assert len(others) == len(hinted) - 1  # those of `b`
    both = str(s.evict_last("b", "c").check(seeds=1, symbolic=False, m=9, n=8, k=12))
    assert [f"fractional.L2::evict_{which}" in both for which in ("first", "last")] == [True, True]
    hinted = [line.split()[-1] for line in both.splitlines() if "L2::cache_hint" in line]
    assert len(set(hinted)) == 2
    assert len(hinted) == len(others) + text.count("L2::cache_hint")


def test_a_transposed_copy_has_accesses_of_16_bytes_and_no_bank_conflicts():
    s = schedule(transpose).tile(i=64, j=32).blocks()
    s.tile(i=4, j=4).threads("j.1", "i.1").reorder("j", "i").unroll("j")
    s.stage("x", in_="shared", at="", transposed=True, pad=4).stage("x", in_="registers", at="")
    text = str(s.vectorize("x", "y", 4).check(seeds=1, symbolic=False).kernel(m=64, n=32))
    assert [text.count(f"{one}.v4") for one in ("ld.global", "ld.shared", "st.global")] == [4, 4, 4]
    banks = s.banks().text()
    assert "x, stores of 4 bytes a lane: 1 wavefront a warp, 1 without" in banks
    assert "x, loads of 16 bytes a lane: 4 wavefronts a warp, 4 without" in banks


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_of_an_odd_number_of_elements_are_copied_by_vectors(transposed):
    """Each load is of 16 bytes, whose elements are stored one by one, by lanes that share no bank."""
    s = schedule(transpose).tile(i=32, j=64).blocks().tile(i=4, j=16).threads("j.2", "i.1").unroll("j.1", "i.2")
    s.stage("x", in_="shared", at="", transposed=transposed, pad=1).vectorize("x", "y", 4)
    text = str(s.check(seeds=1, symbolic=False).kernel(m=32, n=64))
    assert [text.count(one) for one in ("ld.global.v4", "st.shared.b32", "ld.shared.f32", "st.global.v4")] == [
        4,
        16,
        16,
        4,
    ]
    banks = s.banks().text()
    assert "x, stores of 4 bytes a lane: 1 wavefront a warp, 1 without" in banks
    assert "x, loads of 4 bytes a lane: 1 wavefront a warp, 1 without" in banks


@pytest.mark.parametrize(
    ("made", "pad", "vector", "stored"),
    [
        (halves, 2, 8, "st.shared.b32"),
        (halves, 4, 8, "st.shared.v2.b32"),
        (halves, 1, 8, "st.shared.b16"),
        (bytes_of_rows, 2, 16, "st.shared.b16"),
        (bytes_of_rows, 1, 2, "st.shared.b8"),
    ],
)
def test_a_vector_is_stored_in_parts_where_rows_are_shorter_than_a_multiple(made, pad, vector, stored):
    s = schedule(made).tile(i=8, j=32).blocks().tile(i=2, j=2).threads()
    s.stage("x", in_="shared", at="", pad=pad).vectorize("x", vector)
    s.check(seeds=1, symbolic=False, m=20, n=64).check(seeds=1, symbolic=False, m=9, n=37)
    assert set(re.findall(r"st\.shared\S*", str(s.kernel(m=8, n=32)))) == {stored}


def test_a_refused_step_leaves_the_schedule_as_it_was():
    s = schedule(matmul).tile(i=16)
    with pytest.raises(PtxError):
        s.blocks("x")
    assert s.history() == ["tile(i=16)"]
    s.check(seeds=1, symbolic=False, m=17, n=2, k=3)


def carried(x: f32["n"]):
    for i in range(1, n):
        x[i] = x[i - 1] + 1.0


def ambiguous(x: f32["n"], y: f32["n"]):
    for i, j in grid(n, n):
        y[i] = x[j]


def overlapping(x: f32["n"], y: f32["2 * n + 1"]):
    for i, p in grid(n, 3):
        y[2 * i + p] = x[i]


def beyond(x: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = x[i + 1]


def unbounded(x: f32["n"]):
    for i in range(n):
        while True:
            x[i] = 1.0


def squared(x: f32["n"], y: f32["n"]):
    for i in range(n):
        y[i] = x[i * i]


def untyped(x, n):
    for i in range(n):
        x[i] = 1.0


def unknown(x: f32["n"]):
    for i in range(n):
        x[i] = gamma(x[i])


@pytest.mark.parametrize(
    ("function", "message", "line"),
    [
        (carried, "carries a dependence", "x[i] = x[i - 1] + 1.0"),
        (ambiguous, "several iterations of `j` write one element of `y`", "y[i] = x[j]"),
        (overlapping, "several iterations of `i` write one element of `y`", "y[2 * i + p] = x[i]"),
        (beyond, "out of bounds: the index is i + 1, the extent n", "y[i] = x[i + 1]"),
        (unbounded, "not part of an algorithm", "while True:"),
        (squared, "not a sum of loop variables", "y[i] = x[i * i]"),
        (untyped, "parameter `x` has no type", "def untyped(x, n):"),
        (unknown, "`gamma(x[i])` is not an expression", "x[i] = gamma(x[i])"),
    ],
)
def test_what_is_not_an_algorithm(function, message, line):
    with pytest.raises(PtxError) as found:
        algorithm(function)
    assert message in str(found.value)
    assert line in str(found.value)


def test_arguments_of_wrong_shape_are_refused():
    s = tiled()
    a, b, c = (np.zeros(shape, np.float32) for shape in ((4, 5), (6, 7), (4, 7)))
    with pytest.raises(PtxError, match="`b` has shape"):
        s.launch(a, b, c)
    with pytest.raises(PtxError, match="not one after the other"):
        s.launch(np.zeros((5, 4), np.float32).T, np.zeros((5, 7), np.float32), c)
    with pytest.raises(PtxError, match="there is no schedule for `sm_70`"):
        schedule(matmul, target="sm_70")


def test_a_launch_on_arrays():
    a, b = (np.random.default_rng(0).standard_normal((16, 16), np.float32) for _ in range(2))
    c = np.zeros((16, 16), np.float32)
    tiled().launch(a, b, c, device="cpu")
    assert np.allclose(c, a @ b, atol=1e-5)


def test_the_estimate_knows_which_step_is_faster():
    try:
        apart, together = (
            schedule(scale).tile(i=1024).blocks().tile(i=4).threads("i.1" if near else "i.2").estimate(n=1 << 16)
            for near in (False, True)
        )
    except PtxError as problem:
        pytest.skip(str(problem))
    assert apart.seconds > together.seconds


def test_a_loop_that_runs_once_overwrites_nothing():
    s = schedule(matmul, k=5).tile(i=8, j=8).blocks().threads("i.1", "j.1").tile(x=8).stage("a", "b", in_="shared")
    assert str(s.check(seeds=1, symbolic=False, m=9, n=8)).count("bar.sync") == 1
    assert str(s.copy(k=9).check(seeds=1, symbolic=False, m=9, n=8)).count("bar.sync") == 2


def test_no_group_is_waited_for_where_copies_are_of_less_than_four_bytes():
    s = schedule(gemv_transposed).tile(j=32).blocks().threads("j.1").tile(i=4).stage("a", in_="shared")
    text = str(s.pipeline(stages=3).check(seeds=1, symbolic=False, m=21, n=40))
    assert "cp.async" not in text
    assert "until the copies" not in text
    assert "cp.async.wait_group" in str(s.copy().vectorize("a", 2).kernel(n=32))


def test_blocks_of_a_cluster_share_a_sum():
    s = schedule(row_sum).blocks("i").tile(j=128).tile(j=64).cluster().threads("j.2")
    s.check(seeds=1, symbolic=False, m=2, n=300)
    assert str(s).count("barrier.cluster.wait") == 2


@pytest.mark.parametrize(
    ("columns", "order", "vector"),
    [(12, (), 4), (12, ("j.3", "j.2"), 4), (4, ("x", "i", "j"), 1), (24, ("x", "j", "i"), 4)],
)
def test_blocks_of_a_cluster_store_a_share_each(columns, order, vector):
    """Sums of a tile are exchanged at once or one after the other; a vector is of one share."""
    s = schedule(matmul).tile(i=4, j=2 * columns).blocks().tile(i=2, j=columns).threads()
    s.tile(j=4).tile(x=12).tile(x=4).cluster()
    if order:
        s.reorder(*order)
    s.unroll("i", "j")
    if vector > 1:
        s.vectorize("c", vector)
    assert s.check(seeds=1, symbolic=False, m=5, n=24, k=20)
    assert "derived: all threads have read what was staged" not in str(s)  # nothing was


@pytest.mark.parametrize("seed", [0, 40, 1045, 1080])
def test_random_schedules(seed):
    assert not attempt(seed)["wrong"]


@pytest.mark.bulk
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_random_schedules(seed):
    assert not attempt(seed)["wrong"]


@pytest.mark.parametrize(("of", "width"), [(matmul_of_halves, 2), (matmul_of_halves, 8), (linear_of_eights, 4)])
def test_vectors_of_small_elements_are_transposed(of, width):
    s = schedule(of).tile(i=8, j=8).blocks().threads("i", "j").tile(x=16)
    s.stage("a", "b", in_="shared", transposed=True).vectorize("a", "b", width)
    assert s.check(seeds=1, symbolic=False, m=9, n=16, k=32)


def texts(panel) -> list[list[str]]:
    return [[cell.text for cell in row] for row in panel.cells]


def test_a_picture_shows_who_computes_and_who_copies_what():
    s = schedule(matmul).tile(i=8, j=16).blocks().tile(i=2, j=4).threads().tile(x=4).reorder("x", "i", "j")
    s.stage("a", "b", in_="shared").vectorize("a", "b", 4).raster(2)
    picture = s.draw(m=16, n=32)
    blocks, result, a, b = picture.panels
    assert [[cell.text for cell in row] for row in blocks.cells] == [
        ["0", "2"],
        ["1", "3"],
    ]  # two rows of tiles together
    assert [[cell.text for cell in row] for row in result.cells] == [
        [str(4 * i + j) for j in range(4)] for i in range(4)
    ]
    assert [[cell.text for cell in row] for row in a.cells] == [[str(i)] for i in range(8)]  # four elements at once
    assert [cell.text for cell in b.cells[3]] == ["12", "13", "14", "15"]
    assert "a cell is 2 x 4 elements" in picture.text()


def test_a_picture_shows_the_ring_and_a_timeline_the_copies():
    s = schedule(matmul).tile(i=8, j=8).blocks().tile(i=2, j=2).threads().tile(x=4).reorder("x", "i", "j")
    s.stage("a", "b", in_="shared").vectorize("a", "b", 4).pipeline(stages=3)
    ring = s.draw(k=14).panels[-1]
    assert [[cell.text if cell else "" for cell in row] for row in ring.cells] == [
        ["read 0", "copy 3", "copy 3", "read 3"],
        ["copy 1", "read 1", "", ""],
        ["copy 2", "copy 2", "read 2", ""],
    ]
    assert "cp.async" in s.timeline(m=8, n=8, k=16).text()
    assert "matmul" in repr(s.record(m=8, n=8, k=8))


@pytest.mark.parametrize(("pad", "made"), [(0, "8 wavefronts"), (4, "1 wavefront")])
def test_a_picture_shows_bank_conflicts(pad, made):
    s = schedule(matmul).tile(i=32, j=32).blocks().tile(i=4, j=4).threads().tile(x=8).reorder("x", "i", "j")
    s.stage("a", in_="shared", transposed=True, pad=pad).stage("b").stage("a", "b", in_="registers").vectorize("b", 4)
    titles = [panel.title for panel in s.banks().panels]
    assert f"a, stores of 4 bytes a lane: {made} a warp, 1 without bank conflicts" in titles
    assert "b, loads of 16 bytes a lane: 4 wavefronts a warp, 4 without bank conflicts" in titles


def test_a_kernel_without_stages_has_no_bank_conflicts():
    assert (
        schedule(scale)
        .tile(i=32)
        .blocks()
        .threads("i")
        .banks()
        .text()
        .endswith("no warp has bank conflicts at a stage")
    )


@pytest.mark.bulk
def test_estimates_say_what_each_step_changes():
    s = schedule(matmul).tile(i=8, j=8).blocks().threads("i", "j")
    first, last = s.estimates(m=64, n=64, k=32).steps
    assert (first.step, last.step) == ("blocks()", 'threads("i", "j")')
    assert last.seconds < first.seconds


def test_what_a_pipeline_copies_first_is_read_in_its_loop_only():
    s = schedule(causal_sums).tile(h=4, i=4).blocks().tile(i=4, h=2).threads().tile(j=2)
    s.stage("x", in_="shared").pipeline(stages=3)  # `z` reads `x` too, from global memory
    assert s.check(seeds=1, symbolic=False, n=9)

"""Steps, launches and searches with wrong arguments: each is refused on the line that does it."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithms
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import algorithm, choose, f32, free, schedule
from tests.schedule.algorithms import embedding, log_sum, matmul, scale, softmax
from tests.schedule.test_tensor import by_mma, linear, with_roles


@algorithm
def beyond(x: f32["n-5"], y: f32["n"]):
    for i in range(n - 5):
        y[i] = x[i]


@algorithm
def unknown(x: f32["m+n"], y: f32["m+n"]):
    for i in range(n):
        y[i] = x[i]


def tiled():
    return schedule(matmul).tile(i=32, j=32).blocks().tile(i=4, j=4).threads().tile(x=8)


def numbers(*shape, type=np.float32):
    return np.zeros(shape, type)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: schedule(matmul).tile(i=2.5), "a tile of `i` has 2.5 iterations"),
        (lambda: schedule(matmul).tile(i=2**40), "expected 1 to 1048576"),
        (lambda: schedule(matmul).tile(**{"i.0": 8}), "there is no loop `i.0`"),
        (lambda: by_mma().tile(x=8), "tensor cores multiply tiles of `x`"),
        (lambda: schedule(matmul).blocks(["i", "j"]), "['i', 'j'] is not the name of a loop"),
        (lambda: schedule(matmul).reorder(1, 2), "1 is not the name of a loop"),
        (lambda: tiled().stage("a", at=3), "3 is not the name of a loop"),
        (lambda: schedule(softmax).online(None), "None is not the name of a loop"),
        (lambda: schedule(log_sum, n=8).online("j").threads("j"), "each thread takes the pass over `j.0`"),
        (lambda: tiled().stage(["a", "b"]), "there is no array `['a', 'b']`"),
        (lambda: tiled().stage("a", pad="4"), "rows are '4' elements longer"),
        (lambda: tiled().stage("a", where="shared"), "`stage`: got an unexpected keyword argument 'where'"),
        (lambda: tiled().stage("a", "b").pipeline(depth=3), "`pipeline`: got an unexpected keyword argument"),
        (lambda: schedule(matmul).vectorize(), "`vectorize` takes arrays and a width"),
        (lambda: with_roles().specialize(), "a warp of its own copies already"),
        (lambda: with_roles().raster(2).stream_k().persistent(), "tile after tile already"),
        (lambda: tiled().evict_first("d"), "there is no array `d`"),
        (lambda: tiled().evict_first(), "`evict_first` is given no array"),
        (lambda: tiled().threads("x.1").resident(32), "32 blocks of 512 threads, and an SM has 2048"),
        (lambda: tiled().undo("1"), "'1' of 5 steps are to be undone"),
        (lambda: tiled().apply("garbage"), "this is not what `save` wrote"),
        (lambda: tiled().apply("[1]"), "this is not what `save` wrote"),
        (lambda: tiled().apply('{"steps": [{"step": "fly", "arguments": [], "options": {}}]}'), "no step `fly`"),
        (lambda: tiled().kernel(m=0), "`m` is 0, expected a whole number from 1 on"),
        (lambda: tiled().copy(q=3), "`matmul` has no size `q`"),
        (lambda: tiled().check(m=-3), "`m` is -3, expected a whole number from 0 on"),
        (lambda: tiled().check(m=3.5), "`m` is 3.5"),
        (lambda: tiled().estimate(q=3), "`matmul` has no size `q`"),
        (lambda: tiled().draw(q=3), "`matmul` has no size `q`"),
        (lambda: tiled().record(q=3), "`matmul` has no size `q`"),
        (lambda: tiled().search(q=3), "`matmul` has no size `q`"),
        (lambda: schedule(matmul, m="8"), "`m` is '8'"),
        (
            lambda: tiled().launch(numbers(4, 4, type=np.float16), *[numbers(4, 4)] * 2),
            "`a` is of float16",
        ),
        (lambda: tiled().launch(*[numbers(4, 4, type=float)] * 3), "`a` is of float64, expected float32"),
        (lambda: tiled().launch(*[numbers(4, 4, type=bool)] * 3), "`a` is of bool, expected float32"),
        (lambda: schedule(scale).launch(numbers(4), numbers(4), "2"), "`alpha` is a str, expected a number"),
        (lambda: tiled().search(by="magic", m=8, n=8, k=8), "a search by 'magic'"),
        (lambda: tiled().search(m=8), "how large is `k`, `n`?"),
        (lambda: free(), "`free` takes numbers, not ()"),
        (lambda: choose([3], m=3), "`choose` is given no schedule"),
        (lambda: choose(with_roles(), m=3, n=3, k=3), "`choose` is given no schedules, or something else"),
        (lambda: schedule(embedding).check(v=0), "`ids` has indices of an array without elements"),
        (lambda: tiled().check(seeds="2"), "'2' runs with several seeds"),
        (lambda: tiled().check(seeds=-1), "-1 runs with several seeds"),
        (lambda: schedule(beyond).check(n=3), "`x` has shape (-2,) for n = 3"),
        (lambda: schedule(unknown).launch(numbers(5), numbers(5)), "the arrays do not say how large `m`, `n` is"),
        (lambda: choose([with_roles()], m=3, n=3), "how large is `k`?"),
        (lambda: choose([schedule(softmax)], m=3, n=3), "waves are counted for products of matrices"),
        (lambda: choose([schedule(linear)], m=3, n=3, k=3), "waves are counted where blocks have tiles"),
    ],
)
def test_it_is_refused_on_its_line(use, message):
    with pytest.raises(PtxError) as found:
        use()
    text = str(found.value)
    assert message in text
    assert "src/ptxlab" not in text
    assert "test_wrong_uses.py" in text or "test_tensor.py" in text

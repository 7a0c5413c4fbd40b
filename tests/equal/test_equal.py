"""Verdicts of `equal` on two kernels: same bits, same function, different with a witness, or refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.equal.nodes import Nodes, TooManyError
from tests.equal.kernels import FMA, MOVED, ONLINE, PLAIN, STORE, A, C, X, product, rows

MUL_ADD = "mul.rn.f32 %x, %x, %y;\n    add.rn.f32 %sum, %sum, %x;"


@pytest.mark.parametrize("name", ["shared", "tiled_1d"])
def test_another_tiling_has_the_same_bits(name: str) -> None:
    before = A.copy(), C.copy()
    found = ptxlab.equal(product("naive"), product(name))
    assert (found.level, found.elements, found.outputs) == ("same-bits", 35, ["c"])
    assert found
    assert "all values of a, b, c" in found.holds_for
    assert np.array_equal(A, before[0])
    assert np.array_equal(C, before[1])


def test_a_contraction_is_the_same_function() -> None:
    found = ptxlab.equal(product("naive"), product("naive", (FMA, MUL_ADD)))
    assert found.level == "same-function"
    assert 0 < found.probability < 1e-12
    assert found.witness is not None
    assert [place.instruction.split()[0] for place in found.witness.places if place] == ["fma.rn.f32", "add.rn.f32"]


WRONG = {
    "the last term is lost": (
        ("setp.ne.u32     %more, %k, 0;\n    @%more", "setp.gt.s32     %more, %k, 1;\n    @%more"),
        "b lacks the term a[0, 31]·b[31, 0]",
    ),
    "= for +=": ((FMA, "mul.rn.f32 %sum, %x, %y;"), "b lacks 31 terms: a[0, 0..30]·b[0..30, 0]"),
    "a factor twice": ((FMA, "fma.rn.f32 %sum, %x, %x, %sum;"), "b lacks 32 terms: a[0, 0..31]·b[0..31, 0]"),
    "a wrong sign": ((FMA, "neg.f32 %x, %x;\n    " + FMA), "b lacks 32 terms: a[0, 0..31]·b[0..31, 0]"),
    "a sum that starts at one": (
        ("mov.f32         %sum, 0f00000000;", "mov.f32         %sum, 0f3F800000;"), "b has in addition the term 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_product_is_different(name: str) -> None:
    change, words = WRONG[name]
    found = ptxlab.equal(product("naive"), product("naive", change))
    assert (found.level, found.differing) == ("different", 35)
    assert not found
    assert found.witness is not None
    assert found.witness.element.startswith("c[")
    assert _general(words) in [_general(one) for one in found.witness.words]
    assert found.witness.places[1] is not None
    assert found.witness.values is not None
    assert found.witness.values[0] != found.witness.values[1]
    assert set(found.witness.inputs) == {"a", "b", "c"}


def _general(words: str) -> str:
    """What is said of one element, for any: its row and its column are left out."""
    return re.sub(r"a\[\d+, |, \d+\]", "", words)


def test_outputs_and_mistakes() -> None:
    with pytest.raises(ValueError, match="no output `z` that both sides have; there are x, y"):
        ptxlab.equal(rows(PLAIN), rows(ONLINE), outputs=["z"])
    with pytest.raises(TypeError, match="is not a kernel, a launch or a list of launches"):
        ptxlab.equal("a.ptx", rows(PLAIN))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="say `block`"):
        ptxlab.equal(rows(PLAIN).function, rows(PLAIN).function, [X])


def test_batches() -> None:
    x, y = np.ones((4, 6), np.float32), np.zeros((4, 6), np.float32)

    def launched(text: str) -> Any:
        return lambda batch: rows(text, x=x[:batch], y=y[:batch])

    found = ptxlab.equal(launched(PLAIN), launched(PLAIN), batch=(1, 4))
    assert (found.level, found.elements) == ("same-bits", 6)
    assert ptxlab.equal(launched(PLAIN), launched(ONLINE), batch=(3, 2)).level == "same-function"


def test_the_words_of_a_verdict() -> None:
    found = ptxlab.equal(product("naive"), product("naive", (FMA, MUL_ADD)))
    assert "35 of 35 elements differ as bits: they are rounded otherwise" in str(found)
    assert found.witness is not None
    assert all(place is not None and place.recording is not None for place in found.witness.places)


@pytest.mark.parametrize(("change", "lines"), [
    (("[%rd1];", "[%rd1+4];"), (14, 14)),
    (("%f1;\n    ret", "0f3F800000;\n    ret"), (14, 14)),
    ((STORE, ""), (14, None)),
])  # fmt: skip
def test_a_difference_without_an_operation_is_at_the_store(
    change: tuple[str, str], lines: tuple[int | None, ...]
) -> None:
    arrays = [np.arange(1, 3, dtype=np.float32), np.zeros(1, np.float32)]
    sides = [ptxlab.parse(text, name="move.ptx")["move"] for text in (MOVED, MOVED.replace(*change))]
    found = ptxlab.equal(sides[0], sides[1], arrays, block=1)
    assert found.level == "different"
    assert found.witness is not None
    assert tuple(place and place.line for place in found.witness.places) == lines


def test_what_takes_too_long_is_refused() -> None:
    found = ptxlab.equal(product("naive"), product("shared"), timeout=30)
    assert found.level == "same-bits"
    nodes = Nodes(1e-9)
    with pytest.raises(TooManyError, match="more than 1e-09 seconds"):
        nodes.set_origin(None)

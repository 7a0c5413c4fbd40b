"""Waits for products that are in no group."""

import pytest

from ..lints import findings, line_of
from ..wgmma_kernels import (
    AGAIN,
    COMMIT,
    FENCE,
    LOAD,
    LOOP,
    MULTIPLY,
    OTHER,
    STORE,
    STORE_OTHER,
    WAIT_0,
    WAIT_1,
    ZERO,
    wgmma_kernel,
)

CODE = "missing-wgmma-commit"
SKIP = "    setp.eq.u32 %p2, %r20, 0;\n    @%p2 bra skip;\n"

WRONG = {
    "no group": (LOAD, FENCE, MULTIPLY, WAIT_0, STORE),
    "no group of several": (LOAD, FENCE, MULTIPLY, MULTIPLY, OTHER, WAIT_0, STORE, STORE_OTHER),
    "closed too early": (LOAD, FENCE, COMMIT, MULTIPLY, WAIT_0, STORE),
    "closed too late": (LOAD, FENCE, MULTIPLY, WAIT_0, COMMIT, STORE),
    "in a loop": (ZERO, LOOP, FENCE, MULTIPLY, WAIT_0, AGAIN, STORE),
    "closed on one path only": (LOAD, FENCE, MULTIPLY, SKIP, COMMIT, "skip:\n", WAIT_0, STORE),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wait_for_what_is_in_no_group_is_found(name: str) -> None:
    text = wgmma_kernel(*WRONG[name])
    (found,) = findings(text, CODE)
    assert found.message == "`wgmma.wait_group` waits for nothing: no group was closed since `wgmma.mma_async`"
    assert found.line == line_of(text, "wgmma.wait_group")
    assert found.labels[1].text == "started here, in no group yet"


RIGHT = {
    "closed": (LOAD, FENCE, MULTIPLY, COMMIT, WAIT_0, STORE),
    "several groups": (LOAD, FENCE, MULTIPLY, COMMIT, OTHER, COMMIT, WAIT_1, STORE, WAIT_0, STORE_OTHER),
    "a wait for an earlier group": (LOAD, FENCE, MULTIPLY, COMMIT, OTHER, WAIT_0, STORE, COMMIT, WAIT_0, STORE_OTHER),
    "in a loop": (ZERO, LOOP, FENCE, MULTIPLY, COMMIT, WAIT_0, AGAIN, STORE),
    "a wait for nothing at all": (WAIT_0, LOAD, FENCE, MULTIPLY, COMMIT, WAIT_0, STORE),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_wait_for_closed_groups_is_fine(name: str) -> None:
    assert findings(wgmma_kernel(*RIGHT[name]), CODE) == []

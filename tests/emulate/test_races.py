"""How a data race is reported; what is one, and what is not, are the files of `tests/cases`."""

import numpy as np

import ptxlab
from ptxlab.report import render
from tests.emulate.ordering import HEAD, run

EXCHANGE = """
    st.shared.u32 [%own], %t;

    ld.shared.u32 %r1, [%far];
"""


def test_words_of_a_race() -> None:
    (found,) = run(EXCHANGE)
    assert (
        render([found])
        == """error[data-race]: unsynchronized: one thread reads shared memory that another writes
  --> k.ptx:25:5
   |
23 |     st.shared.u32 [%own], %t;
   |     ------------------------- thread (32,0,0) of block (0,0,0) wrote bytes 128..132 of `tile`
24 |
25 |     ld.shared.u32 %r1, [%far];
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (0,0,0) of the same block read them
   |
   = note: nothing orders line 23 before line 25: no barrier, and no release/acquire pair
"""
    )


def test_the_seed_is_reported() -> None:
    (found,) = run(EXCHANGE, seed=7)
    assert "replay with `seed=7`" in found.notes


def test_launches_are_ordered() -> None:
    body = "mad.wide.u32 %rd1, %t, 4, %out;\n st.global.u32 [%rd1], %t;\n xor.b32 %r1, %t, 1;\n"
    body += "mad.wide.u32 %rd2, %r1, 4, %flag;\n ld.global.u32 %r2, [%rd2];\n ret;\n}\n"
    kernel = ptxlab.parse(HEAD + body)["k"]
    first, second = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    assert kernel.launch((1,), (64,), [first, second], device="cpu").diagnostics == []
    assert kernel.launch((1,), (64,), [second, first], device="cpu").diagnostics == []

"""How a data race is reported; what is one, and what is not, are the files of `tests/cases`."""

import numpy as np
import pytest

import ptxlab
from ptxlab.report import render
from tests.emulate.launching import problem
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


@pytest.mark.parametrize(
    ("between", "block", "expected"),
    [
        ("", 32, ["harmless as long as the lanes of the warp stay together, which nothing guarantees"]),
        ("bra next;\nnext:\n", 32, []),
        ("", 64, []),  # the next warp reads, too
    ],
)
def test_a_warp_that_reads_and_writes_in_one_go(between: str, block: int, expected: list[str]) -> None:
    body = f"ld.param.u64 %rd1, [p];\nld.global.u32 %r2, [%rd1];\n{between}st.global.u32 [%rd1], %r2;\nret;"
    found = problem(body, ".u64 p", [np.zeros(1, "u4")], block=block)
    assert [*found.notes[1:]] == expected
    assert found.level == ("warning" if expected else "error")


UPWARDS = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mov.u32 %r3, 0;
again:
mad.lo.u32 %r4, %r3, 64, %r1;
setp.eq.u32 %p1, %r4, 69;
@%p1 ld.global.u32 %r2, [%rd1];
setp.eq.u32 %p1, %r4, 40;
@%p1 st.global.u32 [%rd1], 1;
add.u32 %r3, %r3, 1;
setp.lt.u32 %p2, %r3, 2;
@%p2 bra again;
ret;
"""


def test_a_race_whose_second_access_is_above_the_first() -> None:
    """Thread 40 writes in the first iteration, and thread 5 reads in the second: the upper label names the block."""
    found = problem(UPWARDS, ".u64 p", [np.zeros(1, "u4")], block=64)
    texts = sorted((label.span.start, label.text) for label in found.labels)
    assert [text for _, text in texts] == [
        "thread (5,0,0) of block (0,0,0) read bytes 0..4 of argument 0 (`p`)",
        "thread (40,0,0) of the same block wrote them",
    ]

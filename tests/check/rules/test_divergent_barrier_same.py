"""A condition that all threads share is tested again by each of the paths that a compiler has made."""

import pytest

import ptxlab

HEADER = """\
.version 8.0
.target sm_80
.entry k(.param .u32 n, .param .u64 out) {
    .reg .pred %p<6>;
    .reg .b32 %r<8>;
    .shared .u32 total;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra others;
"""
FIRST = """\
    setp.eq.s32 %p2, %r1, 0;
    @%p2 bra end;
    st.shared.u32 [total], %r2;
    bra others;
"""
OTHERS = """\
others:
    setp.eq.s32 %p3, %r1, 0;
    @%p3 bra end;
    bar.sync 0;
end:
    ret;
}
"""


def codes(text: str) -> list[str]:
    return [one.code for one in ptxlab.check(ptxlab.parse(text))]


@pytest.mark.parametrize(
    ("first", "others"),
    [
        (FIRST, OTHERS),
        (FIRST.replace("@%p2 bra end;", "@!%p2 bra go;\n    bra end;\ngo:"), OTHERS),
        (FIRST, OTHERS.replace("@%p3 bra end;", "@!%p3 bra wait;\n    bra end;\nwait:")),
    ],
    ids=["as nvcc writes it", "negated for one thread", "negated for the others"],
)
def test_the_same_condition_decides_the_same(first: str, others: str) -> None:
    assert codes(HEADER + first + others) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("setp.eq.s32 %p2, %r1, 0;", "setp.eq.s32 %p2, %r1, 1;"),
        ("setp.eq.s32 %p2, %r1, 0;", "setp.ne.s32 %p2, %r1, 0;"),
        ("@%p2 bra end;", "@!%p2 bra end;"),
        ("setp.eq.s32 %p2, %r1, 0;", "ld.param.u32 %r5, [n];\n    add.u32 %r5, %r5, 1;\n    setp.eq.s32 %p2, %r5, 0;"),
    ],
    ids=["another constant", "another comparison", "the opposite", "another value"],
)
def test_another_condition_does_not(old: str, new: str) -> None:
    assert old in FIRST
    assert codes(HEADER + FIRST.replace(old, new) + OTHERS) == ["divergent-barrier"]


def test_a_value_that_changes_before_the_second_test() -> None:
    others = OTHERS.replace("others:\n", "others:\n    add.u32 %r1, %r1, -1;\n")
    assert codes(HEADER + FIRST + others) == ["divergent-barrier"]


def test_a_value_of_each_thread_is_not_the_same() -> None:
    text = (HEADER + FIRST + OTHERS).replace("ld.param.u32 %r1, [n];", "mov.u32 %r1, %laneid;")
    assert codes(text) == ["divergent-barrier"]


def test_a_value_that_changes_in_a_loop() -> None:
    read = "ld.param.u64 %rd1, [out];\nagain:\n    ld.global.u32 %r1, [%rd1];"
    header = HEADER.replace("ld.param.u32 %r1, [n];", read).replace(".shared", ".reg .b64 %rd<2>;\n    .shared")
    others = OTHERS.replace("@%p3 bra end;", "@%p3 bra again;")
    assert codes(header + FIRST + others) == ["divergent-barrier"]

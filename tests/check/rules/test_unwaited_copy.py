"""Reads of shared memory that a `cp.async` may still be filling."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "unwaited-copy"
SHARED = ".shared .align 16 .b8 tile[8192];\n.shared .align 16 .b8 other[512];"
START = """
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r20, [n];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 4;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2;
    shl.b32 %r5, %r1, 2;
    add.u32 %r6, %r3, %r5;
"""
COPY = "    cp.async.cg.shared.global [%r4], [%rd1], 16;\n"
NEXT = "    cp.async.cg.shared.global [%r4+4096], [%rd1+16], 16;\n"
COMMIT = "    cp.async.commit_group;\n"
WAIT_0 = "    cp.async.wait_group 0;\n"
WAIT_1 = "    cp.async.wait_group 1;\n"
WAIT_ALL = "    cp.async.wait_all;\n"
BARRIER = "    bar.sync 0;\n"
READ = "    ld.shared.u32 %r7, [%r6];\n"
READ_OWN = "    ld.shared.u32 %r7, [%r4+12];\n"
MATRIX = "    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r6];\n"
STORE = "    st.global.u32 [%rd1], %r7;\n"
LOOP = "loop:\n"
AGAIN = "    sub.u32 %r20, %r20, 1;\n    setp.ne.u32 %p1, %r20, 0;\n    @%p1 bra loop;\n"
SKIP = "    setp.eq.u32 %p2, %r20, 0;\n    @%p2 bra skip;\n"
FLIP = "    xor.b32 %r4, %r4, 4096;\n    xor.b32 %r6, %r6, 4096;\n"
CHOICE = """    setp.gt.u32 %p2, %r20, 9;
    @%p2 bra waited;
    setp.eq.u32 %p2, %r20, 2;
    @%p2 bra two;
    setp.eq.u32 %p2, %r20, 1;
    @%p2 bra one;
    cp.async.wait_group {};
    bra waited;
one:
    cp.async.wait_group 1;
    bra waited;
two:
    cp.async.wait_group 2;
waited:
"""
NO_WAIT = "wait first: `cp.async.wait_all;`, then a barrier if other threads read the bytes"
NO_GROUP = "put `cp.async.commit_group;` after the last copy of the group"
SMALLER = "wait with `cp.async.wait_group 0;`"


def copying(*parts: str) -> str:
    return kernel(START + "".join(parts), before=SHARED)


WRONG = {
    "no wait": ((COPY, COMMIT, BARRIER, READ, STORE), NO_WAIT),
    "no group and no wait": ((COPY, BARRIER, READ, STORE), NO_WAIT),
    "a wait without a group": ((COPY, WAIT_0, BARRIER, READ, STORE), NO_GROUP),
    "the group closed before the copy": ((COMMIT, COPY, WAIT_0, BARRIER, READ, STORE), NO_GROUP),
    "a wait that leaves it pending": ((COPY, COMMIT, WAIT_1, BARRIER, READ, STORE), SMALLER),
    "a choice of waits that all leave it pending": ((COPY, COMMIT, CHOICE.format(3), BARRIER, READ, STORE), SMALLER),
    "a matrix": ((COPY, COMMIT, BARRIER, MATRIX, STORE), NO_WAIT),
    "a loop without a wait": ((LOOP, COPY, COMMIT, BARRIER, READ, BARRIER, AGAIN, STORE), NO_WAIT),
    "a loop that waits for the turn before": (
        (LOOP, COPY, COMMIT, WAIT_1, BARRIER, READ, BARRIER, AGAIN, STORE), SMALLER),
    "a loop that waits at its end": ((LOOP, COPY, COMMIT, BARRIER, READ, BARRIER, AGAIN, WAIT_ALL, STORE), NO_WAIT),
    "its own bytes too early": ((COPY, COMMIT, READ_OWN, WAIT_0, STORE), NO_WAIT),
    "its own bytes on one path": ((COPY, COMMIT, SKIP, WAIT_0, "skip:\n", READ_OWN, STORE), NO_WAIT),
    "the first of two": ((NEXT, COMMIT, COPY, COMMIT, WAIT_1, READ_OWN, STORE, WAIT_0), SMALLER),
    "by name": (("    cp.async.ca.shared.global [tile+16], [%rd1], 16;\n", COMMIT,
                 "    ld.shared.u32 %r7, [tile+28];\n", WAIT_0, STORE), NO_WAIT),
    "two buffers, none waited for": (
        (COPY, COMMIT, LOOP, FLIP, COPY, COMMIT, BARRIER, READ, BARRIER, AGAIN, STORE), NO_WAIT),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_read_of_what_is_not_waited_for_is_found(name: str) -> None:
    parts, help = WRONG[name]
    text = copying(*parts)
    (found,) = findings(text, CODE)
    assert found.message == "shared memory is read while `cp.async` may still be filling it"
    assert found.line == line_of(text, next(part for part in (READ, READ_OWN, MATRIX, "    ld.shared") if part in text))
    assert found.labels[1].text == "this copy may still be on its way"
    assert found.helps[0].text == help


RIGHT = {
    "waited for": (COPY, COMMIT, WAIT_0, BARRIER, READ, STORE),
    "waited for without a group": (COPY, WAIT_ALL, BARRIER, READ, STORE),
    "one of two": (COPY, COMMIT, NEXT, COMMIT, WAIT_1, BARRIER, READ_OWN, WAIT_0, BARRIER, READ, STORE),
    "several copies in a group": (COPY, NEXT, COMMIT, WAIT_0, BARRIER, READ, STORE),
    "a loop": (LOOP, COPY, COMMIT, WAIT_0, BARRIER, READ, BARRIER, AGAIN, STORE),
    "two buffers in a loop": (COPY, COMMIT, LOOP, FLIP, COPY, COMMIT, WAIT_1, BARRIER,
                              FLIP, READ, FLIP, BARRIER, AGAIN, WAIT_ALL, STORE),
    "a group that may be empty": (COPY, COMMIT, SKIP, NEXT, "skip:\n", COMMIT, WAIT_1, BARRIER,
                                  READ_OWN, WAIT_0, STORE),
    "as many groups as there are": (COPY, COMMIT, SKIP, NEXT, COMMIT, WAIT_1, "    bra go;\nskip:\n", WAIT_0, "go:\n",
                                    BARRIER, READ_OWN, WAIT_0, STORE),
    "a wait that is chosen by a number": (LOOP, COPY, COMMIT, CHOICE.format(0), BARRIER, READ, BARRIER, AGAIN, STORE),
    "an mbarrier counts it": ("    mbarrier.init.shared.b64 [other], 1;\n", COPY,
                              "    cp.async.mbarrier.arrive.shared.b64 [other];\nagain:\n"
                              "    mbarrier.test_wait.parity.shared.b64 %p3, [other], 0;\n    @!%p3 bra again;\n",
                              READ, STORE),
    "another variable": (COPY, COMMIT, "    ld.shared.u32 %r7, [other];\n", STORE, WAIT_0),
    "another variable in a loop": (LOOP, COPY, COMMIT, "    ld.shared.u32 %r7, [other];\n", AGAIN, STORE, WAIT_0),
    "never read": (COPY, COMMIT),
    "other bytes": (COPY, COMMIT, "    ld.shared.u32 %r7, [%r4+2048];\n", STORE, WAIT_0),
    "the next bytes": ("    cp.async.ca.shared.global [tile], [%rd1], 16;\n", COMMIT,
                       "    ld.shared.u32 %r7, [tile+16];\n", STORE, WAIT_0),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_waited_for_is_fine(name: str) -> None:
    assert findings(copying(*RIGHT[name]), CODE) == []


def test_the_wait_that_does_not_cover_the_copy_is_shown() -> None:
    (weak,) = findings(copying(COPY, COMMIT, WAIT_1, BARRIER, READ, STORE), CODE)
    assert weak.labels[2].text == "lets the latest group stay pending, and the copy with it"
    (outside,) = findings(copying(COPY, WAIT_0, BARRIER, READ, STORE), CODE)
    assert outside.labels[2].text == "waits for closed groups only, and the copy is in none"


def test_many_copies_and_reads_are_one_finding() -> None:
    text = copying(COPY, NEXT, COMMIT, BARRIER, READ, READ_OWN, STORE)
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, READ)

"""Branches and loops print as labels and branches, run, and are refused where they cannot mean anything."""

import linecache
from typing import Any

import numpy as np
import pytest

from ptxlab.author import (
    f32,
    kernel,
    pointer,
    ptx,
    s32,
    u32,
)
from ptxlab.report import PtxError

from .writing import lines, refusal


def test_when_and_otherwise() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        with ptx.when(n < 3):
            n += 1
        with ptx.otherwise():
            n -= 1

    assert lines(write) == [
        "setp.lt.u32 %p1, %r1, 3;",
        "@!%p1 bra $end_1;",
        "add.u32 %r1, %r1, 1;",
        "bra $end_2;",
        "$end_1:",
        "sub.u32 %r1, %r1, 1;",
        "$end_2:",
    ]


def test_blocks_that_end_together_share_a_label() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        with ptx.when(n < 3):
            n += 1
            with ptx.when(n < 2):
                n += 2
            ptx.label("there")
        n += 3
        with ptx.loop(), ptx.when(n > 9):
            ptx.leave()

    assert lines(write) == [
        "setp.lt.u32 %p1, %r1, 3;",
        "@!%p1 bra there;",
        "add.u32 %r1, %r1, 1;",
        "setp.lt.u32 %p2, %r1, 2;",
        "@!%p2 bra there;",
        "add.u32 %r1, %r1, 2;",
        "there:",
        "add.u32 %r1, %r1, 3;",
        "$loop_3:",
        "setp.gt.u32 %p3, %r1, 9;",
        "@!%p3 bra $end_5;",
        "bra $end_4;",
        "$end_5:",
        "bra $loop_3;",
        "$end_4:",
    ]


def test_both_ways_of_a_block_that_ends_with_another() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        with ptx.when(n < 3), ptx.when(s < 2):
            n += 1
        with ptx.otherwise():
            n += 2

    assert [line for line in lines(write) if "$" in line] == [
        "@!%p1 bra $end_1;",
        "@!%p2 bra $end_2;",
        "$end_2:",
        "bra $end_3;",
        "$end_1:",
        "$end_3:",
    ]


def test_loop() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        with ptx.loop():
            n += 1
            ptx.leave_when(n > 10)
            s += 1

    assert lines(write) == [
        "$loop_1:",
        "add.u32 %r1, %r1, 1;",
        "setp.gt.u32 %p1, %r1, 10;",
        "@%p1 bra $end_2;",
        "add.s32 %r2, %r2, 1;",
        "bra $loop_1;",
        "$end_2:",
    ]


def test_a_loop_that_ends_in_its_condition() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        with ptx.loop():
            n += 1
            ptx.repeat_when(n < 10)

    assert lines(write) == [
        "$loop_1:",
        "add.u32 %r1, %r1, 1;",
        "setp.lt.u32 %p1, %r1, 10;",
        "@%p1 bra $loop_1;",
        "$end_2:",
    ]


def test_range_of_known_limits_needs_no_test_before_it() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        for _ in ptx.range(4, unroll=False):
            s += 1

    assert lines(write) == [
        "mov.u32 %r3, 0;",
        '.pragma "nounroll";',
        "$loop_1:",
        "add.s32 %r2, %r2, 1;",
        "add.u32 %r3, %r3, 1;",
        "setp.lt.u32 %p1, %r3, 4;",
        "@%p1 bra $loop_1;",
        "$end_2:",
    ]


@kernel
def collatz(steps: pointer[u32], n: u32):
    i = ptx.tid.x
    with ptx.when(i < n):
        value, count = i + 1, u32(0)
        with ptx.loop():
            ptx.leave_when(value == 1)
            with ptx.when((value & 1) == 0):
                value >>= 1
            with ptx.otherwise():
                value *= 3
                value += 1
            count += 1
        steps[i] = count


def test_loops_run() -> None:
    def expected(value: int) -> int:
        return 0 if value == 1 else 1 + expected(value // 2 if value % 2 == 0 else 3 * value + 1)

    steps = np.zeros(20, np.uint32)
    collatz.launch(grid=1, block=32, args=[steps, 20])
    assert steps.tolist() == [expected(value) for value in range(1, 21)]


@pytest.mark.parametrize("limits", [(0, 0, 1), (3, 17, 4), (-5, 5, 1), (5, -5, 1)])
def test_ranges_count_as_python_does(limits: tuple[int, int, int]) -> None:
    @kernel
    def count(out: pointer[s32], start: s32, stop: s32, step: s32):
        total = s32(0)
        for i in ptx.range(start, stop, step):
            total += i
        out[0] = total

    out = np.full(1, -1, np.int32)
    count.launch(grid=1, block=1, args=[out, *limits])
    assert out[0] == sum(range(*limits))


def left_by_break(x: Any, n: Any, s: Any, a: Any) -> None:
    for _ in ptx.range(n):
        break


def left_by_return_of_a_macro(x: Any, n: Any, s: Any, a: Any) -> None:
    def first_or_second() -> Any:
        with ptx.when(n < 3):
            return x[0]
        return x[1]

    first_or_second()


def without_with(x: Any, n: Any, s: Any, a: Any) -> None:
    ptx.when(n < 3)
    x[0] = a


def with_if(x: Any, n: Any, s: Any, a: Any) -> None:
    if ptx.when(n < 3):
        x[0] = a


def read_after(x: Any, n: Any, s: Any, a: Any) -> None:
    with ptx.when(n < 3):
        more = n + 1
    n += more


def read_after_a_loop(x: Any, n: Any, s: Any, a: Any) -> None:
    with ptx.loop():
        first = n + 1
        ptx.leave_when(n > 3)
        second = n + 2
    n += first
    n += second


def stray(x: Any, n: Any, s: Any, a: Any) -> None:
    with ptx.when(n < 3):
        n += 1
    n += 1
    with ptx.otherwise():
        pass


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (
            left_by_break,
            "open-loop",
            "Python leaves a loop of the GPU here, while it is written: the threads do not leave it",
        ),
        (
            left_by_return_of_a_macro,
            "early-jump",
            "`return` in a block of the GPU stops the writing of the kernel, not the threads",
        ),
        (without_with, "unopened-block", "`ptx.when` is used without `with`, and does nothing"),
        (with_if, "value-needed", "`ptx.when` is a block"),
        (lambda x, n, s, a: ptx.label("a b"), "illegal-label", "'a b' is not a name of a label"),
        (
            lambda x, n, s, a: next(ptx.range(1.5)),
            "type-clash",
            "a limit of `ptx.range` is the Python float 1.5",
        ),
        (
            lambda x, n, s, a: next(ptx.range(x)),
            "type-clash",
            "a limit of `ptx.range` is a pointer into global memory",
        ),
        (
            read_after,
            "unwritten-register",
            "`%r3` is written only where a condition of `ptx.when` holds, and read after that",
        ),
        (
            read_after_a_loop,
            "unwritten-register",
            "`%r4` is written only after a `ptx.leave_when` of a loop, and read after that",
        ),
        (stray, "stray-otherwise", "`ptx.otherwise` follows no `ptx.when`"),
        (lambda x, n, s, a: ptx.leave_when(n < 3), "stray-leave", "`ptx.leave_when` is not in a loop"),
        (lambda x, n, s, a: ptx.when(n).__enter__(), "guard-type", "`ptx.when` takes a predicate"),
        (lambda x, n, s, a: ptx.when(True).__enter__(), "value-needed", "`ptx.when` got the Python value True"),
    ],
)
def test_refused(write: Any, code: str, message: str) -> None:
    found = refusal(write)
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (left_by_break, "break"),
        (left_by_return_of_a_macro, "return x[0]"),
        (without_with, "ptx.when(n < 3)"),
        (with_if, "if ptx.when(n < 3):"),
    ],
)
def test_the_line_is_the_one_to_change(write: Any, shown: str) -> None:
    assert linecache.getline(__file__, refusal(write).line or 0).strip() == shown


def test_exceptions_of_the_user_are_their_own() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        for i in ptx.range(n):
            with ptx.when(i < 3):
                {}["missing"]

    for _ in range(2):  # a kernel that could not be written is written again, not half of it used
        with pytest.raises(KeyError, match="missing") as raised:
            lines(write)
        assert raised.traceback[-1].name == "write"


def test_jumps_out_of_a_block_of_the_gpu() -> None:
    @kernel
    def early(x: pointer[f32], n: u32):
        with ptx.when(ptx.tid.x >= n):
            return
        x[0] = f32(1.0)

    @kernel
    def skipping(x: pointer[f32], n: u32):
        for i in range(4):
            with ptx.when(n == i):
                continue
            x[i] = f32(1.0)

    @kernel
    def fine(x: pointer[f32], n: u32, *, DOUBLE: bool = False):  # noqa: N803
        with ptx.when(ptx.tid.x >= n):
            ptx.ret()
        with ptx.when(n == 3):
            for i in range(4):
                if i == 2:
                    break
                x[i] = f32(1.0)
        if not DOUBLE:
            return
        x[0] = f32(2.0)

    message = "`{}` in a block of the GPU stops the writing of the kernel, not the threads"
    with pytest.raises(PtxError) as raised:
        str(early)
    (found,) = raised.value.diagnostics
    assert (found.code, found.message, found.file) == ("early-jump", message.format("return"), __file__)
    assert found.labels[0].span.text == "return"
    with pytest.raises(PtxError, match=message.format("continue")):
        str(skipping)
    x = np.zeros(4, np.float32)
    fine.launch(grid=1, block=4, args=[x, 3])
    assert x.tolist() == [1, 1, 0, 0]


def test_a_kernel_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxlab.author.trace.MOST_LINES", 1000)

    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        while True:
            n += 1

    assert refusal(write).message == "`k` has more than 1,000 lines and does not end"


def test_a_branch_by_number() -> None:
    @kernel
    def choose(x: pointer[u32]):
        i = ptx.tid.x
        chosen = u32()
        ptx.brx.idx(x[i], ("zero", "one", "one", "three"))
        for name, value in (("zero", 5), ("one", 6), ("three", 7)):
            ptx.label(name)
            chosen.set(value)
            ptx.bra("done")
        ptx.label("done")
        x[i] = chosen

    x = np.arange(4, dtype=np.uint32)
    choose.launch(grid=1, block=4, args=[x])
    assert x.tolist() == [5, 6, 6, 7]


def test_a_branch_by_number_to_a_label_that_is_not_there() -> None:
    found = refusal(lambda x, n, s, a: ptx.brx.idx(n, ("here", "there")))
    assert found.message == "there is no label `here` in `k`"
    assert found.file == __file__


def numbered(x: Any, n: Any, s: Any, a: Any) -> None:
    for number, i in enumerate(ptx.range(n)):
        x[i] = float(number)


def paired(x: Any, n: Any, s: Any, a: Any) -> None:
    for i, value in zip(ptx.range(n), (1.0, 2.0), strict=False):
        x[i] = value


@pytest.mark.parametrize(("write", "word"), [(numbered, "enumerate"), (paired, "zip")])
def test_python_does_not_count_rounds(write: Any, word: str) -> None:
    found = refusal(write)
    assert found.message == f"`{word}` sees one round of a loop of the GPU, since its body is written once"
    assert linecache.getline(__file__, found.line or 0).strip().startswith("for ")


def test_python_counts_its_own() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        for i in ptx.range(n):
            for number, value in enumerate((a, a)):
                x[i + number] = value

    assert sum("st.global" in line for line in lines(write)) == 2

"""Threads that wait for a time: a loop that ends when the time is over is not a hang, however long that takes."""

from functools import partial
from typing import Any

import pytest

from ptxlab.report import Diagnostic
from tests.emulate import launching
from tests.emulate.launching import line_of, problem

silent = partial(launching.silent, launching.findings)


def hang(body: str, *given: Any, **how: Any) -> Diagnostic:
    found = problem(body, *given, **how)
    assert found.code == "hang", found.message
    return found


DEADLINE = """
.shared .align 4 .b32 flag;
st.volatile.shared.u32 [flag], 0;
mov.{type} {start}, {clock};
again:
ld.volatile.shared.u32 %r1, [flag];
setp.ne.u32 %p1, %r1, 0;
@%p1 ret;
mov.{type} {now}, {clock};
sub.{type} {now}, {now}, {start};
setp.{compare}.{type} %p2, {now}, {limit};
{sleep}
@%p2 bra again;
ret;
"""
LONG = {"type": "u64", "start": "%rd1", "now": "%rd2"}
SHORT = {"type": "u32", "start": "%r2", "now": "%r3"}


DEADLINES = [
    LONG | {"clock": "%globaltimer", "limit": 10**10},
    LONG | {"clock": "%clock64", "limit": 1 << 50},
    SHORT | {"clock": "%clock", "limit": 0xE0000000},
    LONG | {"clock": "%globaltimer", "limit": 10**15},
    SHORT | {"clock": "%clock", "limit": 1 << 30},
    SHORT | {"clock": "%globaltimer_lo", "limit": 0x7FFFFFFF},
]


@pytest.mark.parametrize(
    ("how", "sleep"),
    # Without a sleep it takes seconds to see that only the time passes.
    [(how, "nanosleep.u32 1000;") for how in DEADLINES]
    + [pytest.param(how, "", marks=[pytest.mark.bulk] * (number > 0)) for number, how in enumerate(DEADLINES[:3])],
    ids=lambda one: one["clock"] if isinstance(one, dict) else one or "awake",
)
def test_a_deadline(how: dict[str, Any], sleep: str) -> None:
    """The loop leaves when its time has come, however late; one that does not care about the time is a hang."""
    silent(DEADLINE.format(**how, sleep=sleep, compare="lt"), block=32)
    found = hang(DEADLINE.format(**how, sleep=sleep, compare="ne").replace(f"{how['limit']};", "1;"), block=32)
    assert line_of(found) == "ld.volatile.shared.u32 %r1, [flag];"


def test_a_delay() -> None:
    """No thread waits for anything but the time, which then advances."""
    body = """
    mov.u64 %rd1, %clock64;
    again:
    mov.u64 %rd2, %clock64;
    sub.u64 %rd3, %rd2, %rd1;
    setp.lt.u64 %p1, %rd3, 1000000000000;
    @%p1 bra again;
    ret;
    """
    silent(body, block=64)


def test_a_hundred_deadlines_one_after_the_other() -> None:
    body = """
    .shared .align 4 .b32 flag;
    st.volatile.shared.u32 [flag], 0;
    mov.u32 %r2, 0;
    next:
    mov.u64 %rd1, %globaltimer;
    again:
    ld.volatile.shared.u32 %r1, [flag];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    mov.u64 %rd2, %globaltimer;
    sub.u64 %rd2, %rd2, %rd1;
    setp.lt.u64 %p2, %rd2, 1000000000;
    @%p2 bra again;
    {count}
    setp.lt.u32 %p3, %r2, 100;
    @%p3 bra next;
    ret;
    """
    silent(body.format(count="add.u32 %r2, %r2, 1;"))
    assert line_of(hang(body.format(count=""))) == "ld.volatile.shared.u32 %r1, [flag];"


def test_a_counter_that_only_time_moves() -> None:
    """What is counted with the help of a clock is more than time: this loop ends, after hours."""
    body = """
    .shared .align 4 .b32 flag;
    st.volatile.shared.u32 [flag], 0;
    mov.u64 %rd1, %globaltimer;
    mov.u32 %r2, 0;
    again:
    ld.volatile.shared.u32 %r1, [flag];
    mov.u64 %rd2, %globaltimer;
    sub.u64 %rd3, %rd2, %rd1;
    setp.gt.u64 %p1, %rd3, 1000000000;
    selp.u32 %r3, 1, 0, %p1;
    add.u32 %r2, %r2, %r3;
    selp.b64 %rd1, %rd2, %rd1, %p1;
    setp.lt.u32 %p2, %r2, 100;
    @%p2 bra again;
    ret;
    """
    silent(body)

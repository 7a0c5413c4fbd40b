"""Reading is linear in the size of a file, and fast."""

import time

from ptxlab.syntax import parse, read
from tests.tools import header

HEADER = header("8.0", "sm_80")
LINE = "    mad.lo.s32 %r{0}, %r{1}, %r{2}, 17;\n    @%p1 bra $L{0};\n$L{0}:\n    ld.global.f32 %f{0}, [%rd{1}+{0}];\n"


def program(count: int) -> str:
    """A kernel of `count` times four lines."""
    names = f".reg .pred %p<2>; .reg .b32 %r<{count}>; .reg .f32 %f<{count}>; .reg .b64 %rd<{count}>;\n"
    lines = "".join(LINE.format(n, (n * 7) % count, (n * 13) % count) for n in range(count))
    return f"{HEADER}.entry k {{\n{names}{lines}ret;\n}}\n"


def seconds(text: str) -> float:
    """The least time of three that reading takes."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        parse(text)
        best = min(best, time.process_time() - start)
    return best


def test_speed() -> None:
    parse(program(10))
    text = program(4_000)
    # 1 MB/s is the promise for reading and checking together; half of it here leaves room for a busy machine.
    assert len(text) / seconds(text) > 500_000


def test_time_is_linear() -> None:
    small, large = program(1_000), program(8_000)
    assert seconds(large) / seconds(small) < 24


def test_progress_is_reported() -> None:
    reported: list[int] = []
    text = program(4_000)
    read(text, "k.ptx", reported.append)
    assert reported == sorted(reported)
    assert reported[0] < 100
    assert reported[-1] > len(text) * 0.4

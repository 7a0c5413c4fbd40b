"""What is found in a kernel written in Python shows the Python line."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlab import Record, Trace
from ptxlab.author import (
    f32,
    kernel,
    pointer,
    ptx,
)
from ptxlab.debug import Debugger
from ptxlab.report import KernelError, PtxError


def test_what_check_refuses_shows_the_line_of_python() -> None:
    @kernel
    def far(x: pointer[f32]):
        ptx.text("ld.global.f32 %f99, [%rd2];")

    with pytest.raises(PtxError) as raised:
        far.launch(grid=1, block=1, args=[np.zeros(4, np.float32)])
    assert raised.value.diagnostics[0].file == __file__
    assert raised.value.diagnostics[0].code == "unknown-name"


def test_findings_show_the_line_of_python() -> None:
    @kernel
    def race(x: pointer[f32]):
        tile = ptx.shared(f32, 1)
        tile[0] = f32(1.0)
        x[ptx.tid.x + 5] = f32(2.0)  # beyond the end

    with pytest.raises(KernelError) as raised:
        race.launch(grid=1, block=1, args=[np.zeros(4, np.float32)])
    (found,) = raised.value.diagnostics
    assert found.code == "out-of-bounds"
    assert found.file == __file__
    assert "x[ptx.tid.x + 5] = f32(2.0)  # beyond the end" in str(raised.value)
    assert "st.global.f32 [%rd3], %f2;" in str(raised.value)


def put(x: Any, at: Any) -> None:
    x[at] = f32(1.0)


def put_both(x: Any, at: Any) -> None:
    put(x, at)
    put(x, at + 100)


@kernel
def called(x: pointer[f32]) -> None:
    put(x, ptx.tid.x)
    for _ in (ptx.tid.x + number for number in range(2)):
        put(x, ptx.tid.x)
    put_both(x, ptx.tid.x)


def test_findings_say_what_calls_the_line_of_python(tmp_path: Path) -> None:
    first, path = put.__code__.co_firstlineno, tmp_path / "called.ptxtrace"
    with pytest.raises(KernelError) as raised:
        called.launch(grid=1, block=1, args=[np.zeros(4, np.float32)], record=Record(path))
    (found,) = raised.value.diagnostics
    calls = (
        f"line {first + 1} is in `put`, called from line {first + 6} in `put_both`, "
        f"called from line {first + 14} in `called`"
    )
    assert (found.code, found.file, found.notes[-1]) == ("out-of-bounds", __file__, calls)

    debugger = Debugger(Trace.open(path))
    assert debugger.trace.findings[0].notes[-1] == calls
    debugger.break_at(__file__, first + 6)
    debugger.run()
    stack = [(frame.place.line - first, frame.place.function) for frame in debugger.stack()]
    assert stack == [(6, "put_both"), (14, "called")]  # at `at + 100`


def test_a_generator_is_not_a_call() -> None:
    found = {frames[0].line: len(frames) for _, frames in called.module.calls}
    assert found[put.__code__.co_firstlineno + 12] == 1


def test_calls_are_not_in_the_ptx() -> None:
    source = called.module.source
    assert source is not None
    assert called.ptx == source.text
    assert "\0" not in called.ptx + str(called)
    locations = [line for line in called.ptx.split("\n") if ".loc" in line]
    assert all(one != other for one, other in pairwise(locations))  # one serves calls of the same line

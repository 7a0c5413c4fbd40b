"""What is found in a kernel written in Python shows the Python line."""

import numpy as np
import pytest

from ptxlab.author import (
    f32,
    kernel,
    pointer,
    ptx,
)
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

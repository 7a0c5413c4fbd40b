"""A missing barrier in a helper that a kernel uses twice is one finding, on the lines of the helper."""

from typing import Any

import numpy as np

from ptxlab.author import f32, kernel, pointer, ptx


@kernel(target="sm_80")
def twice(out: pointer[f32]) -> None:
    parts = ptx.shared(f32, 4)
    thread = ptx.tid.x
    warp = thread >> 5

    def total(value: Any) -> Any:
        with ptx.when((thread & 31) == 0):
            parts[warp] = value
        result = parts[0]
        for number in range(1, 4):
            result = result + parts[number]
        ptx.bar.sync(0)
        return result

    first = total(f32(1.0))
    out[thread] = total(first)


def test_a_helper_that_is_used_twice() -> None:
    out = np.zeros(128, np.float32)
    for seed in range(3):
        found = twice.launch(grid=1, block=128, args=[out], device="cpu", seed=seed, on_error="collect").diagnostics
        assert [one.code for one in found] == ["data-race"]
        (one,) = found
        assert [label.span.text for label in one.labels[:2]][-1] == "parts[warp] = value"
        assert any(note.startswith("the same order is missing between line ") for note in one.notes)

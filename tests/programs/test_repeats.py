"""Launches that are repeated: only those that would change nothing are left out."""

import time
from collections.abc import Callable

import numpy
import pytest

from ptxlab import parse
from ptxlab.programs.modules import LoadedModule
from ptxlab.programs.repeats import Repeats


class Device:
    """Memory of a device, and how often a kernel ran."""

    def __init__(self, most: int | None = None) -> None:
        self.data, self.runs = numpy.zeros(64, numpy.uint8), 0
        self.repeats = Repeats(most)

    def launch(self, name: str, change: Callable[[], None], output: str = "", status: int = 0) -> tuple[int, str]:
        def run() -> tuple[int, str]:
            until = time.process_time() + 0.001
            while time.process_time() < until:
                pass
            self.runs += 1
            change()
            return status, output

        return self.repeats.run(name, lambda: [self.data], run)


def test_same_memory_is_not_computed_again() -> None:
    device = Device()
    for _ in range(10):
        assert device.launch("fill", lambda: device.data.fill(7), "filled\n") == (0, "filled\n")
    assert device.runs == 2


def test_changes_are_always_made() -> None:
    """By the kernel itself, by the host, and by another kernel in between."""
    device = Device()

    def count() -> None:
        device.data[0] += 1

    for _ in range(20):
        device.launch("count", count)
    assert (device.runs, device.data[0]) == (20, 20)
    for number in range(5):
        device.launch("fill", lambda: device.data.fill(7))
        device.data[3] = number
    device.launch("fill", lambda: device.data.fill(7))
    assert device.data[3] == 7
    for _ in range(5):
        device.launch("fill", lambda: device.data.fill(7))
        device.launch("count", count)
        assert device.data[0] == 8


def test_kernels_without_memory_run_once() -> None:
    device = Device()
    ran = []

    def null() -> tuple[int, str]:
        ran.append(0)
        return 0, ""

    for _ in range(5):
        assert device.repeats.run("null", None, null) == (0, "")
        device.data[0] += 1
    assert len(ran) == 1
    trapped = [device.repeats.run("trap", None, lambda: (719, "")) for _ in range(2)]
    assert trapped == [(719, ""), (719, "")]


KERNEL = """.version 8.0
.target sm_80
.extern .func (.param .b32 x) f;
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd1; .reg .b32 %r1;
    BODY
    ret;
}
"""


@pytest.mark.parametrize(
    ("body", "may"),
    [
        ("", False),
        ("ld.param.u64 %rd1, [p];", False),
        ("ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 1;", True),  # in one line
        ("ld.param.u64 %rd1,\n[p];\nld.global.u32 %r1,\n[%rd1];", True),
        ("{ .param .b32 x; .reg .b32 y; call (x), f; ld.param.b32 y, [x]; }", True),
    ],
)
def test_kernels_without_memory_are_known(body: str, may: bool) -> None:
    module = parse(KERNEL.replace("BODY", body))
    assert LoadedModule(module).may_access_memory(module["k"]) == may


def test_more_is_not_compared_than_a_launch_costs() -> None:
    device = Device()
    device.data = numpy.zeros(64 << 20, numpy.uint8)
    for _ in range(10):
        device.launch("quick", lambda: None)
    assert device.runs == 10


def test_other_arguments_and_failures_run() -> None:
    device = Device()
    for _ in range(8):
        assert device.launch("wrong", lambda: None, status=700) == (700, "")
    assert device.runs == 8
    device.launch("right", lambda: None)
    assert device.runs == 9


def test_what_comes_to_rest_later_is_not_computed_again() -> None:
    """As sums of a narrow type do after some hundred additions."""
    device = Device()

    def count() -> None:
        device.data[0] = min(device.data[0] + 1, 35)

    for _ in range(200):
        device.launch("count", count)
    assert (device.runs, device.data[0]) == (48, 35)


def test_limit_of_repeats() -> None:
    """Each launch, by its arguments, runs as often as was asked for; the others are counted."""
    device = Device(most=3)

    def count() -> None:
        device.data[0] += 1

    for _ in range(10):
        device.launch("count by one", count)
    device.launch("count", count)
    assert (device.runs, device.data[0], device.repeats.skipped) == (4, 4, 7)

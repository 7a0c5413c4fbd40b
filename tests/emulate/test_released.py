"""What a launch referred to goes with it, before Python looks for garbage."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.host.running import RunningLaunch
from ptxlab.emulate.search import explore

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .u64 %rd<2>; .reg .u32 %r<3>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], VALUE;
    ret;
}"""


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("detectors", [False, True])
@pytest.mark.parametrize("value", ["1", "%r1"])  # that lanes write different values is a race
def test_memory_of_a_launch(value: str, detectors: bool) -> None:
    array = np.zeros(1, np.uint32)
    kernel = ptxlab.parse(KERNEL.replace("VALUE", value))["k"]
    result = kernel.launch(2, 32, [array], device="cpu", detectors=detectors, on_error="collect")
    assert (result.diagnostics != []) == (detectors and value != "1")
    memory = weakref.ref(array)
    del array, result, kernel
    assert memory() is None


def test_launches_of_all_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[weakref.ref[RunningLaunch]] = []

    def make(*given: Any, **how: Any) -> RunningLaunch:
        made = RunningLaunch(*given, **how)
        launches.append(weakref.ref(made))
        return made

    monkeypatch.setattr(explore, "RunningLaunch", make)
    kernel = ptxlab.parse(KERNEL.replace("VALUE", "1"))["k"]
    assert ptxlab.explore(kernel, 1, 2, [np.zeros(1, np.uint32)]).is_complete
    assert launches
    assert [launch() for launch in launches if launch()] == []

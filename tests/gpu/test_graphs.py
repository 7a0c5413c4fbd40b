"""Launches that are recorded and started together; without a GPU."""

import numpy as np
import pytest

import ptxlab
from ptxlab import gpu
from tests.gpu import programs
from tests.gpu.driver_of_python import CUresult, Driver
from tests.gpu.fakes import OnGpu, launch, ramp


def test_a_graph_runs_what_was_recorded(fake: Driver) -> None:
    module = ptxlab.parse(programs.SAXPY)
    x, y = ramp(), np.ones(8, np.float32)
    with gpu.graph() as twice:
        for factor in (2.0, 3.0):
            module["saxpy"].launch(1, 32, [OnGpu(x), OnGpu(y), factor, 8])
        np.testing.assert_array_equal(y, 1)
        with pytest.raises(ValueError, match="still being recorded"):
            twice.launch()
    np.testing.assert_array_equal(y, 1)
    for times in (1, 2):
        twice.launch()
        np.testing.assert_array_equal(y, 5 * times * x + 1)
    launch(OnGpu(x), OnGpu(y))
    np.testing.assert_array_equal(y, 12 * x + 1)
    assert [config.hStream for config in fake.configs] == [77, 77, 0]
    assert fake.calls.count("cuStreamDestroy") == fake.calls.count("cuStreamCreate") == 1
    del twice
    assert fake.calls.count("cuGraphExecDestroy") == 1


def test_a_graph_takes_arrays_on_the_gpu_only(fake: Driver) -> None:
    with pytest.raises(ValueError, match="graphs need arrays on the GPU"), gpu.graph():
        launch(ramp(), ramp())
    assert fake.calls.count("cuStreamDestroy") == 1
    assert fake.calls.count("cuGraphDestroy") == 1
    with gpu.graph(), pytest.raises(ValueError, match="recorded already"), gpu.graph():
        pass
    with gpu.graph(), pytest.raises(ValueError, match="nothing to compare"):
        launch(OnGpu(ramp()), OnGpu(ramp()), device="both")


def test_a_graph_that_the_driver_refuses(fake: Driver) -> None:
    fake.fail["cuGraphInstantiate"] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    both = gpu.graph()
    both.__enter__()
    for _ in range(2):
        launch(OnGpu(ramp()), OnGpu(ramp()))
    with pytest.raises(ptxlab.KernelError, match="too little memory left") as raised:
        both.__exit__(None, None, None)
    assert raised.value.diagnostics[0].notes[0] == "it may be any launch of the graph, which has `saxpy`"
    assert fake.calls.count("cuStreamDestroy") == 1
    assert fake.calls.count("cuGraphDestroy") == 1
    launch(OnGpu(ramp()), OnGpu(ramp()), stream=3)
    assert fake.configs[-1].hStream == 3

"""What a right submission takes on a GPU: measured as the gallery is, with data that the cache does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from ptxlab import gpu, ir
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.launch import runs_on_gpu
from ptxlab.launch.launches import Launch
from ptxlab.measure.machine import require_torch
from ptxlab.measure.session import timer, together
from ptxlab.report import KernelError
from ptxlab.verify.running import Caller
from ptxlab.verify.task import Data, Sizes
from ptxlab.verify.values import Difference, compare

_SAMPLES, _SETS = 9, 16
_LARGEST = 1 << 26
"""Elements of outputs that are compared at a size that is timed."""


class NotMeasuredError(Exception):
    """A launch has arguments that are not moved to a GPU."""


def can_measure(modules: Sequence[ir.Module]) -> bool:
    """Whether there is a GPU that runs them, and a torch that knows it."""
    if gpu.absence() is not None or not all(map(runs_on_gpu, modules)):
        return False
    try:
        require_torch()
    except KernelError:
        return False
    return True


def measure_calls(caller: Caller, sizes: Sizes) -> tuple[float, str, Difference | None]:
    """The seconds of a call, the name of the GPU, and where its outputs are wrong.

    A submission may be right at the sizes that were tried, and do less at those that are timed.
    """
    torch = require_torch()
    stream = torch.cuda.Stream()
    length = sum(buffer.memory.nbytes for buffer in caller.draw(sizes).arrays.values())
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = max(1, min(_SETS, -(-2 * cache // max(length, 1)) + 1))
    with torch.cuda.stream(stream):
        data = [caller.draw(sizes, number=2 * number) for number in range(count)]
        sets = [_OnGpu(torch, caller, one) for one in data]
        actions = [together(one.launches, stream) for one in sets]
        actions[0]()
        torch.cuda.synchronize()
        wrong = sets[0].compare(caller, data[0])
        elapsed = timer(torch, actions, stream)
        seconds = median(elapsed() for _ in range(_SAMPLES))
    return seconds, str(torch.cuda.get_device_name()).removeprefix("NVIDIA "), wrong


class _OnGpu:
    """The launches of a call, with their arrays on the GPU."""

    def __init__(self, torch: Any, caller: Caller, data: Data) -> None:
        self.torch = torch
        self.arrays: dict[int, tuple[Any, Any]] = {}  # by the array of the host
        launches, self.finish = caller.plan(data.sizes).bound(data)
        self.launches: list[Launch] = [replace(one, args=[self._moved(arg) for arg in one.args]) for one in launches]

    def _moved(self, value: Any) -> Any:
        if isinstance(value, TensorMap):
            return replace(value, array=self._moved(value.array))
        if isinstance(value, int | float | np.generic | bytes):
            return value
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous:
            raise NotMeasuredError
        if id(value) not in self.arrays:
            content = value.reshape(-1).view(np.uint8)
            self.arrays[id(value)] = value, self.torch.from_numpy(content).cuda()
        return self.arrays[id(value)][1]

    def compare(self, caller: Caller, data: Data) -> Difference | None:
        """Where the outputs are wrong after a call; None also where they are too large to compare."""
        outputs = caller.task.outputs
        if sum(data.arrays[one.name].view.size for one in outputs) > _LARGEST:
            return None
        before = {one.name: data.arrays[one.name].view.copy() for one in outputs}
        wanted = caller.task.expected(data)
        for host, there in self.arrays.values():
            host.reshape(-1).view(np.uint8)[:] = there.cpu().numpy()
        self.finish()
        found = [compare(data.arrays[one.name].view, before[one.name], wanted[one.name], caller.task.allowed(one))
                 for one in outputs]  # fmt: skip
        return next((one for one in found if one is not None), None)

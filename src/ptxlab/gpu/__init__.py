"""Kernels on a GPU: which there are, loading, arguments, launches, and what their failures mean.

`devices` lists the GPUs; `launch` is what `kernel.launch(device="cuda")` does; `prepare` turns arguments into a launch
that costs one call of the driver each time; `graph` records launches and starts them together; `write_variable`
and `read_variable` are for what a module declares.

Each name is loaded when it is first used: a launch on the emulator needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxlab.gpu.arrays import host_view, is_on_gpu
    from ptxlab.gpu.driver import absence
    from ptxlab.gpu.graphs import Graph, graph
    from ptxlab.gpu.hardware import Gpu, devices, gpu
    from ptxlab.gpu.launching import launch, prepare
    from ptxlab.gpu.loading import GpuState
    from ptxlab.gpu.prepared import Prepared
    from ptxlab.gpu.variables import read_variable, write_variable

_HOME = {
    "Gpu": "hardware",
    "GpuState": "loading",
    "Graph": "graphs",
    "Prepared": "prepared",
    "absence": "driver",
    "devices": "hardware",
    "gpu": "hardware",
    "graph": "graphs",
    "host_view": "arrays",
    "is_on_gpu": "arrays",
    "launch": "launching",
    "prepare": "launching",
    "read_variable": "variables",
    "write_variable": "variables",
}

__all__ = [
    "Gpu", "GpuState", "Graph", "Prepared", "absence", "devices", "gpu", "graph", "host_view", "is_on_gpu", "launch",
    "prepare", "read_variable", "write_variable",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value

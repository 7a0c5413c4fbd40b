"""Kernels on a GPU: which there are, loading, arguments, launches, and what their failures mean.

`devices` lists the GPUs; `launch` is what `kernel.launch(device="cuda")` does; `prepare` turns arguments into a launch
that costs one call of the driver each time; `graph` records launches and starts them together; `write_variable`
and `read_variable` are for what a module declares.

Each name is loaded when it is first used: a launch on the emulator needs few of them.
"""

from typing import TYPE_CHECKING

from ptxlab.lazily import load_lazily

if TYPE_CHECKING:
    from ptxlab.gpu.arrays import host_view as host_view
    from ptxlab.gpu.arrays import host_views as host_views
    from ptxlab.gpu.arrays import is_on_gpu as is_on_gpu
    from ptxlab.gpu.driver import absence as absence
    from ptxlab.gpu.graphs import Graph as Graph
    from ptxlab.gpu.graphs import graph as graph
    from ptxlab.gpu.hardware import Gpu as Gpu
    from ptxlab.gpu.hardware import devices as devices
    from ptxlab.gpu.hardware import gpu as gpu
    from ptxlab.gpu.launching import launch as launch
    from ptxlab.gpu.launching import prepare as prepare
    from ptxlab.gpu.loading import GpuState as GpuState
    from ptxlab.gpu.prepared import Prepared as Prepared
    from ptxlab.gpu.variables import read_variable as read_variable
    from ptxlab.gpu.variables import write_variable as write_variable

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
    "host_views": "arrays",
    "is_on_gpu": "arrays",
    "launch": "launching",
    "prepare": "launching",
    "read_variable": "variables",
    "write_variable": "variables",
}

__all__ = [*_HOME]


load_lazily(__name__, {name: f"{__name__}.{home}" for name, home in _HOME.items()})

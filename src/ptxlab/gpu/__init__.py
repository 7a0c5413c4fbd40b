"""Kernels on a GPU: which there are, loading, arguments, launches, and what their failures mean.

`devices` lists the GPUs; `launch` is what `kernel.launch(device="cuda")` does; `prepare` turns arguments into a launch
that costs one call of the driver each time; `graph` records launches and starts them together; `write_variable`
and `read_variable` are for what a module declares.
"""

from ptxlab.gpu.arrays import host_view, is_on_gpu
from ptxlab.gpu.driver import absence
from ptxlab.gpu.graphs import Graph, graph
from ptxlab.gpu.hardware import Gpu, devices, gpu
from ptxlab.gpu.launching import launch, prepare
from ptxlab.gpu.loading import GpuState
from ptxlab.gpu.prepared import Prepared
from ptxlab.gpu.variables import read_variable, write_variable

__all__ = [
    "Gpu", "GpuState", "Graph", "Prepared", "absence", "devices", "gpu", "graph", "host_view", "is_on_gpu", "launch",
    "prepare", "read_variable", "write_variable",
]  # fmt: skip

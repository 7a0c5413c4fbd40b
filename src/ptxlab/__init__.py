"""The workbench for people who write NVIDIA PTX.

>>> import ptxlab
>>> ptxlab.PtxError.__name__
'PtxError'

Public names load on first use, so that importing ptxlab costs next to nothing.
"""

from __future__ import annotations

import time

from ptxlab.lazily import load_lazily

# As in `typing`, which takes longer to load than all of this; not written as `False`, which editors would believe.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptxlab.check import check as check
    from ptxlab.device.multicast import Multicast as Multicast
    from ptxlab.device.record import Record as Record
    from ptxlab.device.result import Result as Result
    from ptxlab.device.structures import PointerArray as PointerArray
    from ptxlab.device.tensor_maps import im2col_map as im2col_map
    from ptxlab.device.tensor_maps import tensor_map as tensor_map
    from ptxlab.device.textures import Sampler as Sampler
    from ptxlab.device.textures import Surface as Surface
    from ptxlab.device.textures import Texture as Texture
    from ptxlab.device.trace_file import TraceError as TraceError
    from ptxlab.equal import equal as equal
    from ptxlab.estimate import Estimate as Estimate
    from ptxlab.estimate import estimate as estimate
    from ptxlab.explain import explain as explain
    from ptxlab.explain.rendering import render as render
    from ptxlab.frameworks import cute as cute
    from ptxlab.frameworks import numba as numba
    from ptxlab.frameworks import nvshmem as nvshmem
    from ptxlab.frameworks import triton as triton
    from ptxlab.frameworks.adopt import from_framework as from_framework
    from ptxlab.launch import explore as explore
    from ptxlab.launch.chains import launch_chain as launch_chain
    from ptxlab.node import node as node
    from ptxlab.prove import prove as prove
    from ptxlab.report import Diagnostic as Diagnostic
    from ptxlab.report import KernelError as KernelError
    from ptxlab.report import PtxError as PtxError
    from ptxlab.syntax import format as format
    from ptxlab.syntax import load as load
    from ptxlab.syntax import parse as parse
    from ptxlab.toolchain import cuda as cuda
    from ptxlab.trace import Trace as Trace
    from ptxlab.trace import Traces as Traces
    from ptxlab.verify import verify as verify

__version__ = "0.1.0"
_loaded_at = time.time()  # source that is younger may not be what this process runs

_HOME = {
    "Diagnostic": "ptxlab.report",
    "Estimate": "ptxlab.estimate",
    "KernelError": "ptxlab.report",
    "Multicast": "ptxlab.device.multicast",
    "PointerArray": "ptxlab.device.structures",
    "PtxError": "ptxlab.report",
    "Record": "ptxlab.device.record",
    "Result": "ptxlab.device.result",
    "Sampler": "ptxlab.device.textures",
    "Surface": "ptxlab.device.textures",
    "Texture": "ptxlab.device.textures",
    "Trace": "ptxlab.trace",
    "TraceError": "ptxlab.device.trace_file",
    "Traces": "ptxlab.trace",
    "launch_chain": "ptxlab.launch.chains",
    "check": "ptxlab.check",
    "from_framework": "ptxlab.frameworks.adopt",
    "cuda": "ptxlab.toolchain",
    "equal": "ptxlab.equal",
    "estimate": "ptxlab.estimate",
    "explain": "ptxlab.explain",
    "explore": "ptxlab.launch",
    "format": "ptxlab.syntax",
    "load": "ptxlab.syntax",
    "node": "ptxlab.node",
    "parse": "ptxlab.syntax",
    "prove": "ptxlab.prove",
    "render": "ptxlab.explain.rendering",
    "im2col_map": "ptxlab.device.tensor_maps",
    "tensor_map": "ptxlab.device.tensor_maps",
    "verify": "ptxlab.verify",
}

# What layers ask of those above them, by `ptxlab.services`.
SERVICES = {
    "functions": "ptxlab.ops",
    "launch": "ptxlab.launch",
    "ranks": "ptxlab.frameworks.ranks",
    "schedule_pages": "ptxlab.schedule.pages",
    "trace": "ptxlab.trace",
    "variables": "ptxlab.variables",
    "widget": "ptxlab.lab.widget",
}

_MODULES = {
    "cute": "ptxlab.frameworks.cute",
    "numba": "ptxlab.frameworks.numba",
    "nvshmem": "ptxlab.frameworks.nvshmem",
    "triton": "ptxlab.frameworks.triton",
}

__all__ = ["__version__", *_HOME, *_MODULES]

load_lazily(__name__, _HOME, _MODULES)

"""Asynchronous operations as diagnostics name them; see `isa.asynchronous`."""

from __future__ import annotations

from ptxlab import ir
from ptxlab.emulate.abi.network import NETWORK
from ptxlab.isa.async_operation import AsyncOperation
from ptxlab.isa.asynchronous import started_by
from ptxlab.isa.effects import Effects

_COMPLETION = (
    "a {} over the network is delivered at any time, in any order: it is complete after `nvshmem_quiet`, and delivered "
    "before what its PE is sent after an `nvshmem_fence`"
)
_SIGNALLED = "; a put with a signal, before that signal"
_GET = "a get over the network is complete after `nvshmem_quiet`; no fence orders it"
_NAMES = {
    "ptxlab_network_put": AsyncOperation("put", _COMPLETION.format("put") + _SIGNALLED),
    "ptxlab_network_get": AsyncOperation("get", _GET),
    "ptxlab_network_atomic": AsyncOperation("signal", _COMPLETION.format("signal or atomic operation")),
}


def operation_of(effects: Effects) -> AsyncOperation:
    """What an instruction starts that has such effects."""
    started = (started_by(step.unit, step.name) for step in effects.steps)
    return next(operation for operation in started if operation is not None)


def network_operation_of(instruction: ir.Instruction) -> AsyncOperation | None:
    """What a call starts that is one of the network between GPUs; see `abi.network`."""
    called = [one.name for one in instruction.operands if isinstance(one, ir.FunctionReference) and one.name in NETWORK]
    return _NAMES.get(called[0]) if called else None

"""Kernels as operators of torch: on its streams, under `torch.compile`, and on the emulator for tensors of the CPU.

    @torch_operator("mine::doubled")
    def doubled(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        start(doubled_kernel, x.numel() // 256, 256, [x, y])
        return y

The function serves twice. Called with tensors, it allocates the result and starts the kernel. Called by
`torch.compile`, with tensors that are only a shape and a type, it allocates it alone: that is what torch wants to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from ptxlab import author, gpu, ir
from ptxlab.device.options import Extent
from ptxlab.frameworks.packages import package
from ptxlab.frameworks.xla_calls import current_call

LEAST = (2, 4)  # `torch.library.custom_op`

_is_described = ContextVar("_is_described", default=False)  # torch asks what comes out, and nothing is to run


def torch_operator(name: str, *, mutates: Iterable[str] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Register a function that starts kernels as the operator `name`, such as `"mine::doubled"`.

    Its annotations give torch the types of arguments and result. `mutates` names the arguments that kernels write into;
    results are tensors of their own. What comes back is torch's `CustomOpDef`, with `register_autograd` and the like.
    """

    def register(function: Callable[..., object]) -> Any:
        def describe(*args: object, **named: object) -> object:
            token = _is_described.set(True)
            try:
                return function(*args, **named)
            finally:
                _is_described.reset(token)

        torch = package("torch", "torch", "`torch_operator`", LEAST)
        operator = torch.library.custom_op(name, function, mutates_args=tuple(mutates))
        operator.register_fake(describe)
        return operator

    return register


def start(
    kernel: ir.Function | author.Kernel, grid: Extent, block: Extent, args: Sequence[Any] = (), **how: Any
) -> None:
    """Start a kernel on the stream that torch or XLA uses now, and do not wait: what they do next comes after it.

    Where the arrays are in this machine's memory, the emulator runs it. `how` is what `kernel.launch` takes besides.
    """
    if _is_described.get():
        return
    called = current_call.get()
    if called is not None:
        kernel.launch(grid, block, args, device=f"cuda:{called.gpu}", stream=called.stream, wait=False, **how)
        return
    there = next((value.device for value in args if hasattr(value, "data_ptr") and gpu.is_on_gpu(value)), None)
    if there is None:
        kernel.launch(grid, block, args, **how)
        return
    stream = import_module("torch").cuda.current_stream(there)
    kernel.launch(grid, block, args, device=f"cuda:{there.index}", stream=stream, wait=False, **how)

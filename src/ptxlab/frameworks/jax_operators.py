"""Kernels as operators of JAX: under `jit`, `vmap` and `grad`, on XLA's stream, on the emulator for arrays of the CPU.

    @jax_operator(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    def doubled(x, y):
        start(doubled_kernel, x.size // 256, 256, [x, y])

The function is given what JAX computed, then the results to write: arrays of NumPy in the memory of the host, of which
nothing is copied, or on a GPU arrays that have an address, extents and a type, and that `out[...] = x` copies. XLA
calls it, by its foreign function interface, when it would launch a kernel of its own: `start` puts kernels in the same
order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxlab.frameworks.packages import package
from ptxlab.frameworks.xla_calls import LEAST, operation


def jax_operator(
    results: Callable[..., object], *, vmap: str = "sequential", gradient: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Make a function that launches kernels an operator of JAX.

    `results` gives the shapes and types of the results for those of the arguments: a `jax.ShapeDtypeStruct`, or a
    tuple of them. `vmap` is what `jax.ffi.ffi_call` takes as `vmap_method`: `"sequential"` calls the function for each
    element of a batch, `"broadcast_all"` once with the batch as first dimension. `gradient`, if it is given, is called
    with the arguments, in a tuple, and the gradient of the result, and returns one gradient for each argument.
    """

    def register(function: Callable[..., None]) -> Callable[..., object]:
        jax = package("jax", "jax", "`jax_operator`", LEAST)

        def call(*args: object) -> object:
            given = [jax.numpy.asarray(one) for one in args]
            return operation(function, results(*given), vmap=vmap)(*given)

        call.__name__, call.__doc__ = function.__name__, function.__doc__  # not its signature, which has the results
        if gradient is None:
            return call
        operator: Callable[..., Any] = jax.custom_vjp(call)
        operator.defvjp(  # type: ignore[attr-defined]
            lambda *args: (call(*args), args), lambda kept, change: tuple(gradient(kept, change))
        )
        return operator

    return register

"""Kernels as operators of JAX: under `jit`, `vmap` and `grad`, on the emulator for arrays of the CPU.

    @jax_operator(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    def doubled(x, y):
        doubled_kernel.launch(x.size // 256, 256, [x, y])

The function is given arrays of NumPy: what JAX computed, then the results to write. XLA calls it back from the host, so
that arrays of a GPU are copied there and back; a launch in it may be on a GPU all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ptxlab.frameworks.packages import package

LEAST = (0, 5)


def jax_operator(
    results: Callable[..., Any], *, vmap: str = "sequential", gradient: Callable[..., Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Make a function that launches kernels an operator of JAX.

    `results` gives the shapes and types of the results for those of the arguments: a `jax.ShapeDtypeStruct`, or a
    tuple of them. `vmap` is what `jax.pure_callback` takes as `vmap_method`: `"sequential"` calls the function for each
    element of a batch, `"broadcast_all"` once with the batch as first dimension. `gradient`, if it is given, is called
    with the arguments, in a tuple, and the gradient of the result, and returns one gradient for each argument.
    """

    def register(function: Callable[..., None]) -> Callable[..., Any]:
        jax = package("jax", "jax", "`jax_operator`", LEAST)

        def compute(*args: Any) -> Any:
            given = [numpy.ascontiguousarray(one) for one in args]
            described = results(*given)
            is_one = not isinstance(described, (tuple, list))
            made = [numpy.empty(one.shape, one.dtype) for one in ([described] if is_one else described)]
            function(*given, *made)
            return made[0] if is_one else tuple(made)

        def call(*args: Any) -> Any:
            described = results(*args)
            return jax.pure_callback(compute, described, *args, vmap_method=vmap)

        call.__name__, call.__doc__ = function.__name__, function.__doc__  # not its signature, which has the results
        if gradient is None:
            return call
        operator: Callable[..., Any] = jax.custom_vjp(call)
        operator.defvjp(  # type: ignore[attr-defined]
            lambda *args: (call(*args), args), lambda kept, change: tuple(gradient(kept, change))
        )
        return operator

    return register

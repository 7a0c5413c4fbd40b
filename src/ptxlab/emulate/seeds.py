"""One launch under several seeds, each on the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ptxlab import ir
from ptxlab.emulate.launch import Result
from ptxlab.emulate.regions import restore, snapshot
from ptxlab.emulate.tensor_maps import TensorMap
from ptxlab.report import KernelError, is_failure


def try_seeds(
    module: ir.Module, run: Callable[..., Result], args: Sequence[Any], seeds: Sequence[int], on_error: str
) -> Result:
    """Run under several schedules until one finds an error.

    The first one works on the arrays and variables themselves, the others on copies of what these held before.
    """
    if not seeds:
        raise ValueError("`seeds` is empty: name at least one")
    given, before = copies_of(args), snapshot(module)
    result = run(seed=seeds[0], args=args, on_error="collect")
    after = snapshot(module)
    found = result
    for seed in seeds[1:]:
        if is_failure(found.diagnostics, "raise" if on_error == "collect" else on_error):
            break
        restore(module, before)
        found = run(seed=seed, args=copies_of(given), on_error="collect")
    restore(module, after)
    result.diagnostics = found.diagnostics
    return raised(result, on_error)


def raised(result: Result, on_error: str) -> Result:
    """The result, unless its findings are to be raised."""
    if is_failure(result.diagnostics, on_error):
        raise KernelError(result.diagnostics)
    return result


def copies_of(args: Sequence[Any]) -> list[Any]:
    """The arguments with arrays of their own; one array twice stays one."""
    arrays = [value.array if isinstance(value, TensorMap) else value for value in args]
    copies = {id(array): array.copy() for array in arrays if hasattr(array, "__array_interface__")}
    return [
        replace(value, array=copies.get(id(value.array), value.array))
        if isinstance(value, TensorMap)
        else copies.get(id(value), value)
        for value in args
    ]

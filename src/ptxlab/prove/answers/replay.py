"""Counterexamples: a launch is made from what the solver found, and the emulator decides.

An alarm that does not replay is not shown as one: the solver's threads may be in a state that no run reaches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptxlab import ir
from ptxlab.prove.theories.solver import z3
from ptxlab.report import Diagnostic, KernelError

from .verdict import Counterexample

MOST_BYTES = 1 << 26
UNSAID = 1 << 20  # bytes of an array of whose length nothing is said
UNORDERED = frozenset("data-race hang divergent-barrier missing-proxy-fence missing-tensor-fence".split())
UNORDERED |= {"exited-block", "unstarted-block", "bad-barrier", "reinitialized-mbarrier", "bad-membermask"}
UNORDERED |= {"overwritten-mbarrier", "divergent-setmaxnreg", "bad-copy-size", "read-only-write"}
WRONG = UNORDERED | {"out-of-bounds", "misaligned-access"}
"""The errors that a proof rules out; those of `UNORDERED` whatever the lengths of arrays are."""


def wrong_in(kernel: Any, grid: Any, block: Any, args: Sequence[Any], shared: int, cluster: tuple[int, int, int],
             timeout: float, codes: frozenset[str] = WRONG) -> Diagnostic | None:  # fmt: skip
    """The first error of a run that a proof rules out."""
    try:
        result = kernel.launch(grid, block, args, shared=shared, cluster=None if cluster == (1, 1, 1) else cluster,
                               device="cpu", on_error="collect", timeout=timeout)  # fmt: skip
    except KernelError as wrong:
        found = wrong.diagnostics
    else:
        found = [*result.diagnostics]
    return next((one for one in found if is_ruled_out(one, codes)), None)


def is_ruled_out(one: Diagnostic, codes: frozenset[str] = WRONG) -> bool:
    """Whether a proof rules out what a run found."""
    return one.code in codes and (one.level == "error" or one.code == "missing-tensor-fence")


def replay(
    kernel: ir.Function, block: tuple[int, int, int], shared: int, cluster: tuple[int, int, int], model: Any,
    sizes: Mapping[str, int], floats: set[str], said: set[str], contents: Mapping[str, int], codes: frozenset[str],
    timeout: float,
) -> Counterexample | None:  # fmt: skip
    """A run of the launch that a model describes, with what arrays hold at some places, if it goes wrong.

    Arrays of `floats` are accessed as such.
    """
    values = {str(one): model[one].as_long() for one in model if z3.is_int_value(model[one])}
    grid = tuple(max(1, values.get(f"%nctaid.{axis}", 1)) for axis in "xyz")
    numbers = {one.title: values.get(one.title, 1) for one in kernel.parameters if one.title not in sizes}
    unsaid = {name: UNSAID // size for name, size in sizes.items()}
    lengths = {name: values.get(f"len({name})", much) if name in said else much for name, much in unsaid.items()}
    if any(lengths[name] * size > MOST_BYTES for name, size in sizes.items()) or grid[0] * grid[1] * grid[2] > 4096:
        return None
    held: dict[str, list[tuple[slice, int]]] = defaultdict(list)
    for word, value in contents.items():
        name, _, index = word.removesuffix("]").rpartition("[")
        held[name].append((slice(None) if index == ":" else slice(int(index), int(index) + 1), value))
    for filled in (set(sizes), *([floats] if floats not in (set(), set(sizes)) else []), set[str]()):
        args: list[Any] = []
        for parameter in kernel.parameters:
            if parameter.dimensions:
                return None  # a struct
            if parameter.title in sizes:
                fill = _floats if parameter.title in filled else _integers
                args.append(fill(lengths[parameter.title], sizes[parameter.title]))
                for part, value in held.get(parameter.title, ()):
                    args[-1][part] = value
            elif parameter.type.kind == "f":
                args.append(1.0)
            else:
                args.append(numbers[parameter.title])
        finding = wrong_in(kernel, grid, block, args, shared, cluster, timeout, codes)
        if finding is not None:
            whole = {one.title: numbers[one.title] for one in kernel.parameters
                     if one.title in numbers and one.type.kind != "f"}  # fmt: skip
            return Counterexample(finding, grid, block, whole, lengths)
    return None


def _floats(length: int, size: int) -> Any:
    """Elements for an array, none of them twice."""
    if size == 4:
        return (np.random.default_rng(0).random(length, np.float32) + 1).view(np.uint32)
    return np.random.default_rng(0).integers(1, 100, length).astype(_UNSIGNED.get(size, np.uint8))


def _integers(length: int, size: int) -> Any:
    """Small elements, as indices are."""
    return (np.arange(length) % 7).astype(_UNSIGNED.get(size, np.uint8))


_UNSIGNED: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

"""What several schedules leave in arrays and variables, compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.dependence import Cause, ScheduleDifference
from ptxlab.device.multicast import Multicast
from ptxlab.device.structures import leaves
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.device.textures import Surface
from ptxlab.ir.effects import RegisterEffects
from ptxlab.ir.shapes import match_of

if TYPE_CHECKING:
    from ptxlab.emulate.search.remote import Tried

Outputs = Mapping[str, NDArray[Any]]
Marks = Mapping[str, bytes]

_ORDERED = ("exch", "cas")  # what is left depends on which was last


def arrays_of(leaf: object) -> Sequence[Any]:
    """The arrays that an argument is or refers to, of which the kernel may write."""
    if isinstance(leaf, Multicast):
        return tuple(leaf.arrays)
    return (leaf.array,) if isinstance(leaf, (TensorMap, Surface)) else (leaf,)


def outputs_of(kernel: ir.Function, args: Sequence[object]) -> Outputs:
    """The arrays among the arguments, by the names of their parameters."""
    found: dict[str, NDArray[Any]] = {}
    for parameter, value in zip(kernel.parameters, args, strict=True):
        arrays = [array for leaf in leaves(value) for array in arrays_of(leaf) if hasattr(array, "__array_interface__")]
        for number, array in enumerate(arrays):
            name = parameter.title if len(arrays) == 1 else f"{parameter.title}[{number}]"
            found[name] = np.asarray(array)
    return found


def marks_of(outputs: Outputs) -> Marks:
    """Digests, by which outputs of other processes are compared."""
    return {name: blake2b(np.ascontiguousarray(array).tobytes()).digest() for name, array in outputs.items()}


def differences(tried: Sequence[Tried], run: Callable[[int], Outputs]) -> tuple[ScheduleDifference, ...]:
    """The outputs that differ from those of the first seed; `run` has the outputs of a seed again."""
    first, *others = tried
    changed: dict[str, list[int]] = {}
    for other in others:
        for name, mark in other.after.items():
            if other.before == first.before and mark != first.after.get(name):
                changed.setdefault(name, []).append(other.schedule.seed)
    if not changed:
        return ()
    seeds = {first.schedule.seed, *(found[0] for found in changed.values())}
    values = {seed: run(seed) for seed in seeds}
    start = first.schedule.seed
    return tuple(
        ScheduleDifference(
            name, _apart(values[start][name], values[found[0]][name]), values[start][name].size, start, found[0],
            tuple(found),
        )
        for name, found in changed.items()
    )  # fmt: skip


def _apart(one: NDArray[Any], other: NDArray[Any]) -> int:
    """The elements of two arrays whose bits differ."""
    bytes = (np.ascontiguousarray(array).view(np.uint8).reshape(array.size, -1) for array in (one, other))
    return int(np.count_nonzero(np.not_equal(*bytes).any(axis=1)))


def order_of_atomics(kernel: ir.Function) -> Cause | None:
    """Atomic operations whose order matters: they add floats, exchange values, or return one that is used."""
    module, lines = kernel.module, []
    assert module is not None
    for function in layout.reachable(module, kernel):
        instructions = list(function.instructions())
        matches = [match_of(one) for one in instructions]
        effects = RegisterEffects(instructions, matches)
        read = {register for registers in effects.reads for register in registers}
        for instruction, match, written in zip(instructions, matches, effects.writes, strict=True):
            if match is None or all(access.kind != "update" for access in match.effects.accesses):
                continue
            words = instruction.opcode.modifiers
            if read & set(written) or any(word in _ORDERED or word.startswith(("f", "bf")) for word in words):
                span = module.span(instruction)
                lines += [] if span is None else [span.source.position(span.start)[0]]
    return Cause("atomics", tuple(dict.fromkeys(lines))) if lines else None

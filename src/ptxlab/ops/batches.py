"""Operators with a batch of arguments, for `torch.vmap` and `jax.vmap`: one call, or one for each of its elements.

Numbers are those of arguments in an operator's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ptxlab.device.arrays import Tensor

ROWS: dict[str, tuple[int, ...]] = {
    "softmax": (),
    "layer_norm": (1, 2),
    "rms_norm": (1,),
    "add_rms_norm": (2,),
    "cross_entropy": (),
    "cross_entropy_gradient": (),
    "matmul": (1, 2),
    "gated_matmul": (1, 2),
    "gated_matmul_keeping": (1, 2),
    "quantized_matvec": (1, 2),
}
"""Operators of arrays with any number of dimensions before the last, and which of their arguments have no batch."""
BATCHES = ("attention_forward", "attention_backward")
"""Operators of arrays whose first dimension is a batch."""


def is_one_call(name: str, has_batch: Callable[[int], bool], arrays: Sequence[int]) -> bool:
    """Whether an operator of rows has a batch of rows, and nothing else differs."""
    fixed = ROWS.get(name)
    return fixed is not None and all(has_batch(number) != (number in fixed) for number in arrays)


def torch_rule(name: str, operator: Callable[..., Any]) -> Callable[..., object]:
    """What `torch.library.register_vmap` takes for an operator, and a `torch.autograd.Function` as `vmap`."""

    def rule(info: Any, dimensions: Sequence[int | None], *args: Tensor) -> tuple[Any, Any]:
        torch: Any = import_module("torch")
        arrays = [number for number, one in enumerate(args) if isinstance(one, torch.Tensor)]
        given = list(args)
        for number in arrays:
            at = dimensions[number]
            if at is not None:
                given[number] = given[number].movedim(at, 0).contiguous()
            elif number not in ROWS.get(name, ()):
                given[number] = given[number].expand(info.batch_size, *given[number].shape).contiguous()
        found: Any
        if name in BATCHES:
            merged = [one.flatten(0, 1) if number in arrays else one for number, one in enumerate(given)]
            found = tuple(one.unflatten(0, (info.batch_size, -1)) for one in operator(*merged))
        elif is_one_call(name, lambda number: given[number] is not args[number], arrays):
            found = operator(*given)
        else:
            moved = [number for number in arrays if given[number] is not args[number]]
            each = [
                operator(*(one[at] if number in moved else one for number, one in enumerate(given)))
                for at in range(info.batch_size)
            ]
            found = (
                tuple(map(torch.stack, zip(*each, strict=True)))
                if isinstance(each[0], tuple | list)
                else torch.stack(each)
            )
        return found, (0,) * len(found) if isinstance(found, tuple) else 0

    return rule

"""o = softmax(q·kᵀ/√d)·v on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16.

Arrays are batch × heads × length × head size, and heads of 64, 128 or 256 elements. Keys and values may have fewer
heads, each for as many heads of queries. Under a causal mask a query attends to the keys up to its own, in a window to
the last of these only. The answer does not depend on the order in which blocks run: two runs give the same bits.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ptxlab.kernels.wgmma_attention.kernel import specialize, specialize_packed
from ptxlab.kernels.wgmma_attention.launches import attend, attend_packed, check, choose, workspace
from ptxlab.kernels.wgmma_attention.problem import arrays, attended, packed, reference, sized, torch_baseline, work
from ptxlab.launch.launches import Launch
from ptxlab.measure import Entry

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

__all__ = [
    "arrays",
    "attend",
    "attend_packed",
    "attended",
    "check",
    "choose",
    "entry",
    "reference",
    "sized",
    "specialize",
    "specialize_packed",
    "work",
    "workspace",
]


def start(
    starts: Array | None = None, units: Array | None = None, maps: Array | None = None, **given: Any
) -> Launch | list[Launch]:
    """The launches of an entry's arrays; packed sequences have their length before their heads."""
    if starts is None:
        return attend(**given)
    turned = {name: given[name].swapaxes(0, 1)[None] for name in "qkvo"}
    sequences = starts.shape[0] - 1
    return attend_packed(**{**given, **turned}, starts=(starts, starts), sequences=sequences, memory=(units, maps))


entry = Entry(
    title="o = softmax(q·kᵀ/√d)·v by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": start},
    libraries={
        "torch, cuDNN": partial(torch_baseline, "CUDNN_ATTENTION"),
        "torch, flash": partial(torch_baseline, "FLASH_ATTENTION"),
    },
    sizes=[
        *(sized(length, 64, causal) for length in (1024, 4096, 16384) for causal in (False, True)),
        *(sized(length, 256, causal, (8, 8)) for length in (1024, 4096, 16384) for causal in (False, True)),
        sized(1024, 128, causal=False, heads=(32, 8)),
        *(sized(4096, 128, causal=True, heads=heads) for heads in ((32, 8), (16, 1))),
        sized(4096, 128, causal=False, type="f16"),
        *(
            {**sized(length, size, causal=True), "window": 1024}
            for length, size in ((4096, 64), (4096, 128), (16384, 128))
        ),
        *(packed(16, 128, causal) for causal in (False, True)),
        packed(16, 64, causal=True),
        *(sized(length, 128, causal) for length in (1024, 2048, 8192, 16384, 32768, 4096) for causal in (False, True)),
    ],
    small=[
        {"type": "f16", "batch": 1, "heads": (2, 1), "length": 160, "size": 64, "causal": True, "sequences": 3},
        {"type": "f16", "batch": 1, "heads": (1, 1), "length": 177, "size": 128, "causal": False},
        {"type": "bf16", "batch": 2, "heads": (1, 1), "length": 200, "size": 128, "causal": True, "window": 40},
    ],
    tolerance=5e-3,
)

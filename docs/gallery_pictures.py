"""Pictures of the gallery: which blocks of a kernel read and write which part of its arrays, from a recorded launch.

`python docs/gallery_pictures.py [NAME ...]` writes docs/pictures/gallery; tests make some of them again, and `dev.py
bulk` all. Sizes are small, and show where tiles end.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ptxlab import draw, kernels
from ptxlab.device.record import Record
from ptxlab.launch.launches import Launch
from ptxlab.measure import Host

FOLDER = Path(__file__).parent / "pictures" / "gallery"
EVENTS = 400_000_000  # bytes that may be recorded


class Case(NamedTuple):
    """A variant, a size, and the arrays that are drawn; all, if none is named."""

    variant: str
    size: Mapping[str, Any]
    arrays: tuple[str, ...] = ()


CASES = {
    "attention_tile": Case("mma in registers", {"queries": 275, "keys": 53}),
    "block_scaled_mma": Case("mma.sync", {"format": "nvfp4", "m": 77, "n": 40, "k": 192}),
    "copy": Case("16 bytes a thread", {"n": 4073}),
    "cross_entropy": Case("read once", {"rows": 6, "columns": 520, "type": "f16"}),
    "decode_attention": Case(
        "plain", {"type": "f16", "cache": "f16", "batch": 2, "heads": (4, 2), "length": 700, "size": 64}
    ),
    "gemv": Case("rows by blocks", {"batch": 2, "m": 9, "k": 1040, "type": "e4m3"}),
    "layer_norm": Case("plain", {"rows": 6, "columns": 520, "type": "f16"}),
    "mma_attention": Case(
        "mma.sync", {"batch": 2, "heads": 1, "length": 100, "size": 64, "type": "bf16", "mask": "causal"}
    ),
    "mma_gemm": Case("mma.sync", {"type": "bf16", "m": 200, "n": 264, "k": 64}),
    "mma_tile": Case("PTX", {"m": 33, "n": 24, "k": 40}),
    "mma_variants": Case("one tile a warp", {"type": "f16", "accumulator": "f32", "tiles": 3}),
    "nvfp4_dual_gemm": Case("tcgen05", {"m": 130, "n": 136, "k": 288}),
    "nvfp4_gemm": Case("tcgen05", {"format": "nvfp4", "m": 200, "n": 136, "k": 544}),
    "nvfp4_gemv": Case("warp a row", {"m": 16, "k": 1024, "l": 2}),
    "nvfp4_group_gemm": Case("maps of the host", {"m": "40-130", "n": 136, "k": 288}),
    "pipelined": Case("cp.async, 3 stages", {"n": 11271, "terms": 5, "blocks": 2}),
    "prefetch": Case("prefetch.L2, 1 ahead", {"n": 11271, "terms": 5, "blocks": 2}),
    "quantized_gemv": Case("tensor cores", {"format": "nvfp4", "n": 20, "k": 1280}),
    "reduction": Case("last block", {"n": 20001, "type": "bf16"}),
    "registers": Case("nothing said", {"rows": 301}),
    "rms_norm": Case("plain", {"rows": 6, "columns": 520, "type": "f16"}),
    "rms_norm_fp8": Case("read once", {"rows": 3, "columns": 520, "type": "bf16"}),
    "scaled_gemm": Case("wgmma", {"m": 100, "n": 136, "k": 208}),
    "sgemm": Case("1-D tiling", {"m": 130, "n": 200, "k": 41}),
    "softmax": Case("plain", {"rows": 5, "columns": 33, "type": "bf16"}),
    "tcgen05_gemm": Case("persistent", {"type": "bf16", "m": 300, "n": 136, "k": 200}),
    "transpose": Case("squares", {"rows": 68, "columns": 132, "type": "f32"}),
    "vector_addition": Case("four elements a thread", {"n": 3003}),
    "warp_reduction": Case("shfl", {"rows": 21, "columns": 32, "type": "s32"}),
    "wgmma_attention": Case(
        "wgmma", {"type": "bf16", "batch": 1, "heads": (2, 1), "length": 200, "size": 64, "causal": True}
    ),
    "wgmma_attention_backward": Case(
        "wgmma", {"type": "f16", "batch": 1, "heads": (1, 1), "length": 140, "size": 64, "causal": True}
    ),
    "wgmma_attention_fp8": Case("wgmma", {"batch": 1, "heads": (2, 1), "length": 160, "size": 64, "causal": True}),
    "wgmma_dual_gemm": Case("gated", {"type": "bf16", "m": 70, "n": 40, "k": 136}),
    "wgmma_formats": Case("wgmma", {"type": "e4m3", "m": 70, "n": 72, "k": 144}),
    "wgmma_gemm": Case("plain", {"type": "bf16", "m": 100, "n": 136, "k": 200}),
    "wgmma_grouped_gemm": Case("wgmma", {"type": "bf16", "groups": 3, "m": 150, "n": 40, "k": 136, "skew": 1.0}),
    "wgmma_steps": Case("ping_pong", {"type": "bf16", "m": 300, "n": 264, "k": 72}),
}  # fmt: skip


def picture(name: str) -> draw.Picture:
    """The picture of a kernel; of several launches, the first."""
    case, entry = CASES[name], kernels.entry(name)
    made = entry.variants[case.variant](**entry.arrays(Host(1), **case.size))
    first = made if isinstance(made, Launch) else made[0]
    result = first.run(device="cpu", record=Record(limit=EVENTS))
    size = ", ".join(f"{key} {value}" for key, value in case.size.items())
    return draw.blocks(result, *case.arrays, title=f"{name}, {case.variant}: {size}")


def main(names: list[str]) -> None:
    """Write them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or CASES:
        (FOLDER / f"{name}.svg").write_text(picture(name).svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

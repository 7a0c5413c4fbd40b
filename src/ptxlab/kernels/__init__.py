"""The gallery: kernels to learn from and to use, each a folder with its source, its README and its `entry`.

An entry says what is computed, who computes it, and against which library it is measured; tests run every variant of
every entry on the emulator with all detectors, and on a GPU where there is one; `parts` has what several kernels are
made of. `matmul`, `attention` and the other functions to call are in `ptxlab.ops`, which chooses among the variants of
a kernel; their names are here, too.

>>> "vector_addition" in names()
True
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from ptxlab.kernels.parts.choices import export_table, import_table
from ptxlab.kernels.quantized_gemv.packing import Packed, Quantized
from ptxlab.kernels.quantized_gemv.quantizing import quantize
from ptxlab.measure import Entry
from ptxlab.ops.attentions import attention, attention_backward
from ptxlab.ops.decoding import decode_attention
from ptxlab.ops.gated_products import gated_matmul
from ptxlab.ops.grouped_products import grouped_matmul
from ptxlab.ops.prefilling import prefill_attention
from ptxlab.ops.products import matmul
from ptxlab.ops.quantized import quantized_matvec
from ptxlab.ops.row_functions import cross_entropy, layer_norm, rms_norm, softmax
from ptxlab.ops.scaled_products import scaled_matmul
from ptxlab.ops.tuning import tune

__all__ = [
    "Packed",
    "Quantized",
    "attention",
    "attention_backward",
    "cross_entropy",
    "decode_attention",
    "entry",
    "export_table",
    "gated_matmul",
    "grouped_matmul",
    "import_table",
    "layer_norm",
    "matmul",
    "names",
    "prefill_attention",
    "quantize",
    "quantized_matvec",
    "readme",
    "rms_norm",
    "scaled_matmul",
    "softmax",
    "tune",
]

_HERE = Path(__file__).parent


@cache
def names() -> list[str]:
    """All kernels of the gallery, by name."""
    return sorted(folder.name for folder in _HERE.iterdir() if (folder / "README.md").is_file())


def entry(name: str) -> Entry:
    """What a kernel of the gallery is."""
    found: Entry = import_module(f"ptxlab.kernels.{name}").entry
    return found


def readme(name: str) -> str:
    """The text that teaches it."""
    return (_HERE / name / "README.md").read_text(encoding="utf-8")

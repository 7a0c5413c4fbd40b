"""The gallery: kernels to learn from and to use, each a folder with its source, its README and its `entry`.

An entry says what is computed, who computes it, and against which library it is measured; tests run every variant of
every entry on the emulator with all detectors, and on a GPU where there is one. `functions` has what to call, such as
`matmul` and `attention`, which choose among the variants of a kernel; `parts` has what several kernels are made of.

>>> "vector_addition" in names()
True
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from ptxlab.kernels.functions.attentions import attention, attention_backward
from ptxlab.kernels.functions.decoding import decode_attention
from ptxlab.kernels.functions.gated_products import gated_matmul
from ptxlab.kernels.functions.grouped_products import grouped_matmul
from ptxlab.kernels.functions.products import matmul
from ptxlab.kernels.functions.quantized import quantized_matvec
from ptxlab.kernels.functions.row_functions import cross_entropy, layer_norm, rms_norm, softmax
from ptxlab.kernels.functions.scaled_products import scaled_matmul
from ptxlab.kernels.functions.tuning import tune
from ptxlab.kernels.parts.choices import export_table, import_table
from ptxlab.kernels.quantized_gemv.packing import Packed, Quantized
from ptxlab.kernels.quantized_gemv.quantizing import quantize
from ptxlab.measure import Entry

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

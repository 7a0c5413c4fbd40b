"""The gallery: kernels to learn from and to use, each a folder with its source, its README and its `entry`.

An entry says what is computed, who computes it, and against which library it is measured; tests run every variant of
every entry on the emulator with all detectors, and on a GPU where there is one; `parts` has what several kernels are
made of. `matmul`, `attention` and the other functions to call are in `ptxlab.ops`, which chooses among the variants of
a kernel; their names are here, too.

>>> "vector_addition" in names()
True
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ptxlab.kernels.parts.choices import export_table, import_table
from ptxlab.kernels.quantized_gemv.packing import Packed, Quantized
from ptxlab.kernels.quantized_gemv.quantizing import quantize
from ptxlab.lazily import load_lazily
from ptxlab.measure import Entry

if TYPE_CHECKING:
    from ptxlab.ops import attention as attention
    from ptxlab.ops import attention_backward as attention_backward
    from ptxlab.ops import cross_entropy as cross_entropy
    from ptxlab.ops import decode_attention as decode_attention
    from ptxlab.ops import gated_matmul as gated_matmul
    from ptxlab.ops import grouped_matmul as grouped_matmul
    from ptxlab.ops import layer_norm as layer_norm
    from ptxlab.ops import matmul as matmul
    from ptxlab.ops import prefill_attention as prefill_attention
    from ptxlab.ops import quantized_matvec as quantized_matvec
    from ptxlab.ops import rms_norm as rms_norm
    from ptxlab.ops import scaled_matmul as scaled_matmul
    from ptxlab.ops import softmax as softmax
    from ptxlab.ops import tune as tune

_FUNCTIONS = [
    "attention",
    "attention_backward",
    "cross_entropy",
    "decode_attention",
    "gated_matmul",
    "grouped_matmul",
    "layer_norm",
    "matmul",
    "prefill_attention",
    "quantized_matvec",
    "rms_norm",
    "scaled_matmul",
    "softmax",
    "tune",
]

__all__ = ["Packed", "Quantized", "entry", "export_table", "import_table", "names", "quantize", "readme", *_FUNCTIONS]

load_lazily(__name__, dict.fromkeys(_FUNCTIONS, sys.modules["ptxlab"].SERVICES["functions"]))

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

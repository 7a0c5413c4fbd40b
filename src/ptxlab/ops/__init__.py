"""Functions to call: each chooses among the variants of a kernel for the arrays that it is given.

`calls.py` is what all of them are: a first call is checked and prepared, later ones only give addresses. `callees.py`
declares such a function by its arguments. `matrices.py` has arrays of any framework, `checks.py` what is asked of them,
`ready.py` launches that lack nothing but addresses, `operators.py` what torch knows; the other modules have the
functions.
"""

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

"""o = softmax(q·kᵀ/√d)·v of e4m3 on Hopper's tensor cores, by `wgmma` and tensor copies; the answer is bf16.

Arrays are as those of `wgmma_attention`, and each has a scale, by which its elements are multiplied. Weights are
rounded to e4m3, too. The answer does not depend on the order in which blocks run: two runs give the same bits.
"""

from __future__ import annotations

from functools import partial

from ptxlab.kernels.wgmma_attention_fp8.kernel import specialize
from ptxlab.kernels.wgmma_attention_fp8.launches import attend, choose
from ptxlab.kernels.wgmma_attention_fp8.problem import arrays, in_bf16, reference, sized, work
from ptxlab.measure import Entry

__all__ = ["arrays", "attend", "choose", "entry", "reference", "specialize"]

entry = Entry(
    title="o = softmax(q·kᵀ/√d)·v of e4m3 by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": attend},
    libraries={"torch, cuDNN, bf16": partial(in_bf16, "CUDNN_ATTENTION")},
    sizes=[
        *(sized(4096, 64, causal) for causal in (False, True)),
        *(sized(4096, 256, causal, (8, 8)) for causal in (False, True)),
        sized(4096, 128, causal=True, heads=(32, 8)),
        *(sized(length, 128, causal) for length in (1024, 2048, 8192, 16384, 4096) for causal in (False, True)),
    ],
    small=[
        {"batch": 1, "heads": (2, 1), "length": 160, "size": 64, "causal": True},
        {"batch": 1, "heads": (1, 1), "length": 177, "size": 128, "causal": False},
    ],
    tolerance=6e-2,
)

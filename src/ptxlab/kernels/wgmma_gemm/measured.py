"""What is measured: products of squares and of language models, with what is added to them, and by which libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.launch.launches import Arrays, UnsuitedError
from ptxlab.measure import Draw, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SQUARES = (2048, 4096, 16384, 8192)
MODELS = (  # m, n, k and the layout of products in language models: few tokens and many, and odd extents
    (1, 28672, 8192, "NT"), (1, 4096, 14336, "NT"), (16, 16384, 53248, "NT"), (16, 6144, 4096, "NT"),
    (64, 8192, 8192, "NT"), (64, 28672, 8192, "NT"), (64, 8192, 28672, "NN"), (128, 7168, 16384, "NT"),
    (128, 10240, 8192, "NN"), (128, 16384, 53248, "NT"), (200, 4096, 4096, "NT"), (200, 14336, 4096, "NN"),
    (512, 512, 16384, "NT"), (512, 7168, 2048, "NT"), (512, 28672, 4096, "NT"), (1000, 5120, 2048, "NT"),
    (1000, 8192, 8192, "NN"), (1023, 50257, 768, "NT"), (4096, 4096, 14336, "NT"), (4096, 24576, 1536, "NN"),
    (4096, 7168, 2048, "TN"), (8192, 1024, 8192, "NT"), (8192, 8192, 4096, "TT"), (8192, 28672, 4096, "TN"),
)  # fmt: skip
FUSED = ((4096, 4096, 4096), (8192, 8192, 1024))
EPILOGUES = ("bias", "gelu_tanh", "silu", "residual")
SIZES: list[dict[str, Any]] = [
    *(
        {"type": "bf16", "m": m, "n": n, "k": k, "layout": "NT", "epilogue": epilogue}
        for epilogue in EPILOGUES
        for m, n, k in FUSED
    ),
    *({"type": "bf16", "m": m, "n": n, "k": k, "layout": layout} for m, n, k, layout in MODELS),
    *({"type": "f16", "m": extent, "n": extent, "k": extent} for extent in SQUARES),
    *({"type": "bf16", "m": extent, "n": extent, "k": extent} for extent in SQUARES),
]


def by_cublas(
    torch: ModuleType,
    a: Array,
    b: Array,
    d: Array,
    bias: Array | int | None = None,
    residual: Array | None = None,
    activation: str | None = None,
) -> Callable[[], object]:
    """cuBLAS through torch, by one of its epilogues where there is one; SiLU is a kernel of its own."""
    if activation == "gelu_tanh":
        return lambda: {"d": torch._addmm_activation(bias, a, b.T, use_gelu=True)}
    if activation == "silu":
        silu = torch.nn.functional.silu
        return lambda: silu(torch.addmm(bias, a, b.T, out=d), inplace=True)
    if bias is not None or residual is not None:
        return lambda: torch.addmm(residual if bias is None else bias, a, b.T, out=d)
    return lambda: torch.matmul(a, b.T, out=d)


def by_inductor(
    torch: ModuleType,
    a: Array,
    b: Array,
    d: Array,
    bias: Array | int | None = None,
    residual: Array | None = None,
    activation: str | None = None,
) -> Callable[[], object]:
    """`torch.compile`: what is added becomes one kernel after cuBLAS, or a part of a kernel of Triton."""
    if bias is None and residual is None:
        raise UnsuitedError("")  # nothing but the product: it is cuBLAS
    run = _compiled(torch, activation, bias is not None)
    return lambda: {"d": run(a, b, residual if bias is None else bias)}


@cache
def _compiled(torch: ModuleType, activation: str | None, is_bias: bool) -> Callable[..., object]:
    of = torch.nn.functional
    functions = {None: lambda x: x, "silu": of.silu, "gelu_tanh": lambda x: of.gelu(x, approximate="tanh")}

    def run(a: Array, b: Array, added: object) -> Any:
        return functions[activation](a @ b.T + added)

    found: Callable[..., Any] = torch.compile(run, fullgraph=True, dynamic=False)
    return found


def arrays(draw: Draw, type: str, m: int, n: int, k: int, layout: str = "NT", epilogue: str = "") -> Arrays:
    """A, B by columns, and space for D.

    `layout` is as in BLAS, for A and the transpose of B: of an operand that is T, columns are in memory one after the
    other. `epilogue` is "bias", "residual", or an activation, which goes with a bias.
    """
    a = draw.normal((m, k), type) if layout[0] == "N" else draw.normal((k, m), type).T
    b = draw.normal((n, k), type) if layout[1] == "T" else draw.normal((k, n), type).T
    found = {"a": a, "b": b, "d": draw.empty((m, n), type)}
    if epilogue == "residual":
        return {**found, "residual": draw.normal((m, n), type)}
    if epilogue:
        activation = {} if epilogue == "bias" else {"activation": epilogue}
        return {**found, "bias": draw.normal((n,), type), **activation}
    return found


def reference(
    xp: ModuleType,
    a: Array,
    b: Array,
    d: Array,
    bias: object = None,
    residual: object = None,
    activation: str | None = None,
) -> Arrays:
    """The same in float64."""
    found = a @ b.T if bias is None else a @ b.T + bias
    if activation == "silu":
        found = found / (1 + xp.exp(-found))
    if activation == "gelu_tanh":
        found = found / 2 * (1 + xp.tanh(math.sqrt(2 / math.pi) * (found + 0.044715 * found**3)))
    return {"d": found if residual is None else found + residual}


def work(type: str, m: int, n: int, k: int, layout: str = "NT", epilogue: str = "") -> Work:
    """A multiplication and an addition for each of m·n·k."""
    matrices = 2 if epilogue == "residual" else 1
    return Work(flops=2 * m * n * k, bytes=2 * (m * k + n * k + matrices * m * n), rate=type)


def tolerance(type: str, **_: object) -> float:
    """Half a unit in the last place of what comes out."""
    return {"f16": 5e-4, "bf16": 4e-3}[type]

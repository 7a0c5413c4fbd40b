"""Random calls of products, and what they are in float64."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from ptxlab import kernels
from tests.ops.drawing import ACTIVATIONS, BF16, E4M3, HALVES, ROUNDING, Draw, Drawn, wide


def matmul(draw: Draw) -> Drawn:
    m, n, k = draw.one_of(1, 1, draw.size(8), draw.size(200)), draw.size(300), draw.size(700)
    if draw.chance(0.6):
        n, k = -(-n // 8) * 8, -(-k // 8) * 8
    kind = draw.one_of("half", "half", "half", "half", "half", "tf32", "s8")
    rows = draw.one_of((m,), (m,), (2, m), ())
    if kind == "s8":
        a, b = (draw.rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
        arrays = {"a": draw.placed(a, 1, True), "b": draw.placed(b, 1, True)}
        return Drawn(kernels.matmul, arrays, lambda a, b: [a.astype(np.int64) @ b.astype(np.int64)])
    type = draw.one_of(*HALVES) if kind == "half" else np.float32
    options: dict[str, Any] = {} if kind == "half" else {"allow_tf32": True}
    shape = (*rows, k) if rows else (m, k)
    step = draw.one_of(1, 8)
    a = draw.placed(draw.normal(*shape, type=type), step, across=len(shape) == 2)
    b = draw.placed(draw.normal(k, n, type=type), step, across=True)
    if kind == "tf32":
        for one in (a, b):
            one[...] = (
                (one.view(np.uint32) & 0xFFFFE000).view(np.float32) if one.flags.c_contiguous else np.round(one * 8) / 8
            )
    arrays = {"a": a, "b": b}
    extents = (*shape[:-1], n)
    accumulates = kind == "half" and draw.chance(0.15) and n % 8 == 0
    if not accumulates:
        if draw.chance(0.4):
            arrays["bias"] = draw.placed(draw.normal(n, type=type))
        if draw.chance(0.4):
            arrays["residual"] = draw.placed(draw.normal(*extents, type=type), draw.one_of(1, 8))
        options["activation"] = draw.one_of(None, None, "relu", "silu", "gelu", "gelu_tanh")
    result = draw.one_of(type, np.float32) if not {"bias", "residual"} & {*arrays} else type
    out = None
    if accumulates or draw.chance(0.3):
        out = draw.placed(draw.normal(*extents, type=result), 8 if accumulates else draw.one_of(1, 8))
        if accumulates:
            options["accumulate"] = True
    else:
        result = type
    before = wide(out).copy() if accumulates else 0.0

    def exact(a: Any, b: Any, bias: Any = 0.0, residual: Any = 0.0) -> list[Any]:
        total = wide(a) @ wide(b) + wide(np.asarray(bias))
        return [ACTIVATIONS[options.get("activation")](total) + wide(np.asarray(residual)) + before]

    most = 2e-3 if kind == "tf32" else ROUNDING[result] if accumulates else 2e-5 + ROUNDING[type] / 64
    return Drawn(kernels.matmul, arrays, exact, options, out, most, ROUNDING[result])


def gated_matmul(draw: Draw) -> Drawn:
    m, n, k = draw.one_of(1, draw.size(8), draw.size(8), draw.size(150)), draw.size(160, 8), draw.size(700)
    if draw.chance(0.7):
        k = -(-k // 8) * 8
    activation = draw.one_of("silu", "gelu", "gelu_tanh", "relu")
    if draw.chance(0.15):
        k = -(-k // 16) * 16
        x, w1, w2 = (draw.normal(*shape).astype(E4M3) for shape in ((m, k), (n, k), (n, k)))
        scales = {f"scale_{name}": np.array([draw.rng.uniform(0.5, 2)], np.float32) for name in ("x", "w1", "w2")}
        arrays = {"x": draw.placed(x, 16), "w1": draw.placed(w1, 16).T, "w2": draw.placed(w2, 16).T, **scales}

        def scaled(x: Any, w1: Any, w2: Any, scale_x: Any, scale_w1: Any, scale_w2: Any) -> list[Any]:
            first, second = (
                wide(x) @ wide(w) * float(scale_x[0]) * float(s[0]) for w, s in ((w1, scale_w1), (w2, scale_w2))
            )
            return [ACTIVATIONS[activation](first) * second]

        return Drawn(kernels.gated_matmul, arrays, scaled, {"activation": activation}, None, 1e-2, ROUNDING[BF16])
    type = draw.one_of(*HALVES)
    shape = draw.one_of((m, k), (m, k), (2, m, k))
    arrays = {"x": draw.placed(draw.normal(*shape, type=type), draw.one_of(1, 8), len(shape) == 2)}
    for name in ("w1", "w2"):
        arrays[name] = draw.placed((draw.normal(k, n) / math.sqrt(k)).astype(type), draw.one_of(1, 8), True)
    out = draw.placed(draw.normal(*shape[:-1], n, type=type), 8) if draw.chance(0.3) else None

    def exact(x: Any, w1: Any, w2: Any) -> list[Any]:
        return [ACTIVATIONS[activation](wide(x) @ wide(w1)) * (wide(x) @ wide(w2))]

    return Drawn(kernels.gated_matmul, arrays, exact, {"activation": activation}, out, 1e-4, 1.01 * ROUNDING[type])


def ends_of(draw: Draw, groups: int, extent: int, whole: bool) -> Any:
    ends = np.sort(draw.rng.integers(0, extent + 1, groups)).astype(np.int32)
    if whole or draw.chance(0.7):
        ends[-1] = extent
    return ends


def grouped_matmul(draw: Draw) -> Drawn:
    groups, m, n, k = (
        draw.one_of(1, 2, 3, 8, 40),
        draw.one_of(draw.size(4), draw.size(200)),
        draw.size(160, 8),
        draw.size(300, 8),
    )
    type = draw.one_of(*HALVES)
    if draw.chance(0.25):
        a, b = (draw.placed(draw.normal(*shape, type=type), draw.one_of(1, 8), True) for shape in ((m, k), (k, n)))
        ends = ends_of(draw, groups, k, False)
        out, options = None, {}
        result = type
        if draw.chance(0.4):
            result = draw.one_of(type, np.float32)
            out = draw.normal(groups, m, n, type=result)
            options = {"accumulate": draw.chance()}
        before = wide(out).copy() if options.get("accumulate") else 0.0

        def inner(a: Any, b: Any, offsets: Any) -> list[Any]:
            return [np.stack([wide(a)[:, x:y] @ wide(b)[x:y] for x, y in pairwise([0, *offsets])]) + before]

        arrays = {"a": a, "b": b, "offsets": ends}
        most = 2 * ROUNDING[result] if options.get("accumulate") else 1e-4
        return Drawn(kernels.grouped_matmul, arrays, inner, options, out, most, ROUNDING[result])
    ends = ends_of(draw, groups, m, False)
    options = {"clear_rest": draw.chance()}
    if draw.chance(0.3):
        k = -(-k // 16) * 16
        a, b = draw.placed(draw.normal(m, k).astype(E4M3), 16), draw.placed(draw.normal(groups, n, k).astype(E4M3), 16)
        arrays = {"a": a, "b": b.swapaxes(1, 2), "offsets": ends}
        arrays["scale_a"] = draw.rng.uniform(0.5, 2, m).astype(np.float32)
        arrays["scale_b"] = draw.rng.uniform(0.5, 2, (groups, n)).astype(np.float32)
        result, most = BF16, 1e-2
    else:
        a = draw.placed(draw.normal(m, k, type=type), 8)
        arrays = {"a": a, "b": draw.placed(draw.normal(groups, k, n, type=type), 8, True), "offsets": ends}
        result, most = type, 1e-4
    out = draw.normal(m, n, type=result) if draw.chance(0.4) or not options["clear_rest"] else None
    before = np.zeros((m, n)) if options["clear_rest"] else wide(out)

    def exact(a: Any, b: Any, offsets: Any, scale_a: Any = None, scale_b: Any = None) -> list[Any]:
        found = before.copy()
        for group, (x, y) in enumerate(pairwise([0, *offsets])):
            found[x:y] = wide(a)[x:y] @ wide(b)[group]
            if scale_a is not None:
                found[x:y] *= wide(scale_a)[x:y, None] * wide(scale_b)[group]
        return [found]

    return Drawn(kernels.grouped_matmul, arrays, exact, options, out, most, ROUNDING[result])


def scaled_matmul(draw: Draw) -> Drawn:
    m, n, k = draw.one_of(1, draw.size(200)), draw.size(300, draw.one_of(1, 8)), draw.size(700, draw.one_of(1, 16))
    types = (E4M3, ml_dtypes.float8_e5m2)
    by_blocks = draw.chance()
    if by_blocks:
        types = (E4M3,)
    a = draw.placed(draw.normal(m, k).astype(draw.one_of(*types)), draw.one_of(1, 16))
    b = draw.placed(draw.normal(n, k).astype(draw.one_of(*types)), draw.one_of(1, 16)).T
    if by_blocks:
        blocks, columns = -(-k // 128), -(-n // 128)
        scales = {
            "scale_a": draw.rng.uniform(0.5, 2, (m, blocks)),
            "scale_b": draw.rng.uniform(0.5, 2, (blocks, columns)),
        }
    else:
        scales = {name: draw.rng.uniform(0.5, 2, 1) for name in ("scale_a", "scale_b")}
    scales = {
        name: draw.placed(one.astype(np.float32)) if one.size == 1 else one.astype(np.float32)
        for name, one in scales.items()
    }
    name, result = draw.one_of(("bf16", BF16), ("f16", np.float16), ("f32", np.float32))
    out = draw.placed(draw.normal(m, n, type=result), draw.one_of(1, 8)) if draw.chance(0.3) else None

    def exact(a: Any, b: Any, scale_a: Any, scale_b: Any) -> list[Any]:
        x, y, s, t = wide(a), wide(b), wide(scale_a), wide(scale_b)
        if by_blocks:
            x = x * s.repeat(128, 1)[:, : x.shape[1]]
            y = y * t.repeat(128, 0)[: y.shape[0]].repeat(128, 1)[:, : y.shape[1]]
            return [x @ y]
        return [x @ y * s * t]

    return Drawn(
        kernels.scaled_matmul, {"a": a, "b": b, **scales}, exact, {"out_type": name}, out, 4e-3, ROUNDING[result]
    )


MATRICES: dict[tuple[str, int, int], Any] = {}


def quantized_matvec(draw: Draw) -> Drawn:
    format = draw.one_of("nvfp4", "mxfp4", "int4", "fp8")
    rows, columns = draw.size(70), 256 * draw.one_of(1, 1, 2, 5)
    key = format, rows, columns
    if key not in MATRICES:
        made = kernels.quantize(np.random.default_rng(rows).standard_normal((rows, columns)), format)
        MATRICES[key] = made.values(), made.pack()
    values, packed = MATRICES[key]
    shape = draw.one_of((columns,), (draw.size(9), columns), (2, 3, columns))
    x = draw.normal(*shape, type=BF16)
    out = draw.normal(*shape[:-1], rows, type=BF16) if draw.chance(0.3) else None

    def call(x: Any, weights: Any, scales: Any, out: Any = None) -> Any:
        matrix = kernels.Packed(format, rows, columns, weights, scales, packed.factor)
        return kernels.quantized_matvec(matrix, x, out=out)

    arrays = {"x": x, "weights": packed.weights, "scales": packed.scales}

    def exact(x: Any, weights: Any, scales: Any) -> list[Any]:
        return [wide(x) @ np.asarray(values, np.float64).T]

    return Drawn(call, arrays, exact, {}, out, 5e-3, ROUNDING[BF16])

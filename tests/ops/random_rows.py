"""Random calls of functions of rows, and what they are in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxlab import kernels
from tests.ops.drawing import HALVES, ROUNDING, Draw, Drawn, wide


def a_row(draw: Draw) -> tuple[tuple[int, ...], Any]:
    columns = draw.one_of(draw.size(70), draw.size(3000), draw.size(9000, 8), draw.size(40000))
    rows = draw.size(max(2, min(40, 60000 // columns)))
    return draw.one_of((rows, columns), (rows, columns), (2, rows, columns), (columns,)), draw.one_of(
        np.float32, *HALVES
    )


def softmax(draw: Draw) -> Drawn:
    shape, type = a_row(draw)
    x = draw.placed((4 * draw.normal(*shape)).astype(type).reshape(-1), 1).reshape(shape)
    out = draw.one_of(None, None, x, np.zeros(shape, type))

    def exact(x: Any) -> list[Any]:
        e = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
        return [e / e.sum(-1, keepdims=True)]

    return Drawn(kernels.softmax, {"x": x}, exact, {}, out, 1e-5, 1.1 * ROUNDING[type] + 2e-6)


def layer_norm(draw: Draw) -> Drawn:
    shape, type = a_row(draw)
    x = draw.placed(draw.normal(*shape, type=type).reshape(-1)).reshape(shape)
    weight, bias = (draw.placed(draw.normal(shape[-1], type=type)) for _ in range(2))
    eps = draw.one_of(1e-5, 1e-3)
    out = draw.one_of(None, None, x, np.zeros(shape, type))

    def exact(x: Any, weight: Any, bias: Any) -> list[Any]:
        w = wide(x)
        middle = w - w.mean(-1, keepdims=True)
        return [middle / np.sqrt((middle**2).mean(-1, keepdims=True) + eps) * wide(weight) + wide(bias)]

    return Drawn(
        kernels.layer_norm,
        {"x": x, "weight": weight, "bias": bias},
        exact,
        {"eps": eps},
        out,
        2e-5,
        1.1 * ROUNDING[type],
    )


def rms_norm(draw: Draw) -> Drawn:
    shape, type = a_row(draw)
    eps = draw.one_of(1e-6, 1e-3)
    arrays = {
        "x": draw.placed(draw.normal(*shape, type=type).reshape(-1)).reshape(shape),
        "weight": draw.placed(draw.normal(shape[-1], type=type)),
    }
    if draw.chance(0.4):
        arrays["residual"] = draw.placed(draw.normal(*shape, type=type).reshape(-1)).reshape(shape)
    quantize = draw.one_of(None, None, None, "row", "scale")
    options: dict[str, Any] = {"eps": eps}
    if quantize == "row":
        options["quantize"] = "row"
    elif quantize == "scale":
        arrays["quantize"] = np.array([0.02], np.float32)
    out = draw.one_of(None, None, arrays["x"], np.zeros(shape, type)) if quantize is None else None

    def exact(x: Any, weight: Any, residual: Any = None, quantize: Any = None) -> list[Any]:
        total = x if residual is None else (wide(x) + wide(residual)).astype(np.float32).astype(x.dtype)
        w = wide(total)
        found = w / np.sqrt((w**2).mean(-1, keepdims=True) + eps) * wide(weight)
        results = [found] if residual is None else [found, w]
        if options.get("quantize") == "row":
            scales = abs(found).max(-1) / 448
            return [found / np.maximum(scales[..., None], 1e-300), *results[1:], scales]
        return [np.clip(found / 0.02, -448, 448), *results[1:]] if quantize is not None else results

    rounding = 1.1 * (ROUNDING[type] if quantize is None else 2.0**-4 + ROUNDING[type])
    return Drawn(kernels.rms_norm, arrays, exact, options, out, 2e-5 if quantize is None else 1e-3, rounding)


def cross_entropy(draw: Draw) -> Drawn:
    shape, type = a_row(draw)
    if len(shape) == 1:
        shape = (1, *shape)
    x = draw.placed((3 * draw.normal(*shape)).astype(type).reshape(-1)).reshape(shape)
    ignored = draw.one_of(-100, 0)
    targets = draw.rng.integers(0, shape[-1], shape[:-1])
    targets[draw.rng.random(shape[:-1]) < 0.2] = ignored
    targets.reshape(-1)[0] = shape[-1] - 1
    if draw.chance(0.3) and ignored == 0 and shape[-1] == 1:
        ignored = -100
    reduction = draw.one_of("mean", "sum", "none")

    def exact(x: Any, targets: Any) -> list[Any]:
        w = wide(x)
        lse = np.log(np.exp(w - w.max(-1, keepdims=True)).sum(-1)) + w.max(-1)
        is_there = targets != ignored
        at = np.take_along_axis(w, np.where(is_there, targets, 0)[..., None], -1)[..., 0]
        loss = np.where(is_there, lse - at, 0)
        if reduction == "none":
            return [loss]
        with np.errstate(invalid="ignore"):
            return [np.asarray(loss.sum() / (is_there.sum() if reduction == "mean" else 1))]

    options = {"reduction": reduction, "ignore_index": ignored}
    return Drawn(kernels.cross_entropy, {"x": x, "targets": targets}, exact, options, None, 1e-5, 4e-6)

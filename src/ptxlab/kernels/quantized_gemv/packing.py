"""Weights as the kernel reads them, made of those that frameworks have, or of a matrix of floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ptxlab.gpu.arrays import is_torch
from ptxlab.kernels.quantized_gemv.formats import FORMATS, WORDS, Format
from ptxlab.kernels.quantized_gemv.kernel import CHUNK, ROWS


@dataclass(frozen=True)
class Quantized:
    """A matrix of rows by columns weights, packed; made by `pack` or `quantize`."""

    format: Format
    rows: int
    columns: int
    weights: Any
    """Bytes: for each 16 rows, for each chunk, 1024."""
    scales: Any
    factor: float = 1.0
    """What all weights are multiplied with."""

    @property
    def nbytes(self) -> int:
        """Bytes that a product reads."""
        return int(self.weights.nbytes + self.scales.nbytes)


def pack(format: Format, codes: Any, scales: Any, zeros: Any = None, factor: float = 1.0) -> Quantized:
    xp = _framework(codes)
    rows, columns = codes.shape[0], codes.shape[1] * 8 // format.codes.bits
    more = -rows % ROWS
    units = _units(xp, format, _padded(xp, codes, more))
    chunks = columns // format.depth
    tiles = (rows + more) // ROWS
    parts = units.reshape(tiles, 2, 8, chunks, 4, WORDS // format.codes.words)
    weights = _bytes(xp, _ordered(xp, parts, (0, 3, 1, 2, 4, 5))).reshape(tiles, chunks, CHUNK)
    return Quantized(format, rows, columns, weights, _scales(xp, format, scales, zeros, more, chunks), factor)


def _scales(xp: Any, format: Format, scales: Any, zeros: Any, more: int, chunks: int) -> Any:
    if not format.group:
        return scales
    if format.name == "int4":
        bits = [_padded(xp, _view(xp, scales, "int16"), more), _view(xp, _bf16(xp, zeros, more), "int16")]
        both = xp.stack(bits, -1).reshape(-1, 2, 8, chunks, 2)
        return _bytes(xp, _ordered(xp, both, (0, 3, 2, 1, 4))).reshape(-1, chunks, format.scale_bytes)
    bits = _padded(xp, _view(xp, scales, "uint8"), more).reshape(-1, 2, 8, chunks, 4, 32 // format.group)
    return _ordered(xp, bits, (0, 3, 2, 4, 1, 5)).reshape(-1, chunks, format.scale_bytes)


def _bf16(xp: Any, zeros: Any, more: int) -> Any:
    zeros = _padded(xp, zeros, more)
    if xp is np:
        import ml_dtypes

        return (zeros.astype(np.float32) + 128).astype(ml_dtypes.bfloat16)
    return (zeros.to(xp.float32) + 128).to(xp.bfloat16)


def _units(xp: Any, format: Format, codes: Any) -> Any:
    """The words of all units, as integers of 32 or 64 bits."""
    tables = format.codes.tables()
    bits, width = format.codes.bits, 32 * format.codes.words
    each = codes.reshape(codes.shape[0], -1, width // 8)
    total = None
    for number, table in enumerate(tables):
        byte = each[..., number * bits // 8]
        index = (byte >> (number * bits % 8)) & ((1 << bits) - 1)
        values = np.array(table, np.uint64).view(np.int64) if width == 64 else np.array(table, np.uint32).view(np.int32)
        found = values[index] if xp is np else xp.from_numpy(values).to(codes.device)[index.long()]
        total = found if total is None else total ^ found
    return total


def _framework(array: Any) -> Any:
    if is_torch(array.__class__):
        import torch

        return torch
    return np


def _padded(xp: Any, array: Any, more: int) -> Any:
    if not more:
        return array
    return xp.concatenate([array, xp.zeros_like(array[:more] if more <= len(array) else array.repeat(more, 0)[:more])])


def _ordered(xp: Any, array: Any, axes: tuple[int, ...]) -> Any:
    return np.ascontiguousarray(array.transpose(axes)) if xp is np else array.permute(axes).contiguous()


def _bytes(xp: Any, array: Any) -> Any:
    return array.view(xp.uint8)


def _view(xp: Any, array: Any, type: str) -> Any:
    return array.view(getattr(xp, type))


__all__ = ["FORMATS", "Quantized", "pack"]

"""Kernels of Triton that are compared."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, block: tl.constexpr):
    """A program for each row."""
    row = tl.program_id(0)
    at = tl.arange(0, block)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, power / tl.sum(power, 0), mask=at < columns)


@triton.jit
def masked(x, y, columns, block: tl.constexpr):
    """The same with a mask that lacks the last element."""
    row = tl.program_id(0)
    at = tl.arange(0, block)
    value = tl.load(x + row * columns + at, mask=at < columns - 1, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * columns + at, power / tl.sum(power, 0), mask=at < columns)


@triton.jit
def product(a, b, c):
    """16 by 64 by 16, in steps of 16."""
    row, column, k = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for start in range(0, 64, 16):
        left = tl.load(a + row[:, None] * 64 + start + k[None, :])
        right = tl.load(b + (start + k[:, None]) * 16 + column[None, :])
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + row[:, None] * 16 + column[None, :], total)


@triton.jit
def short(a, b, c):
    """The same without the last step."""
    row, column, k = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for start in range(0, 48, 16):
        left = tl.load(a + row[:, None] * 64 + start + k[None, :])
        right = tl.load(b + (start + k[:, None]) * 16 + column[None, :])
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + row[:, None] * 16 + column[None, :], total)

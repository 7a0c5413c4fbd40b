"""The kernel of benchmarks/launch.py in Triton's language, which reads it from a file."""

import triton
import triton.language as tl


@triton.jit
def saxpy(x, y, factor, count, SIZE: tl.constexpr):  # noqa: N803
    """y += factor * x"""
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = at < count
    tl.store(y + at, tl.load(y + at, inside) + factor * tl.load(x + at, inside), inside)

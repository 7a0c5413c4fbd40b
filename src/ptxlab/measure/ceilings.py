"""What this GPU can do at best, measured with the contenders: a copy of memory, a read, the library's matrix product.

A short copy does not reach the bandwidth of a long one: it starts and ends, too. Where little is moved, a copy of as
many bytes is therefore a second ceiling. What writes next to nothing can be faster than a copy: there, a read of as
many bytes is one, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

from ptxlab.launch.launches import Launch
from ptxlab.measure import reading
from ptxlab.measure.data import Device
from ptxlab.measure.entry import Work

_COPIED = 1 << 30  # bytes
_LITTLE = 256 << 20  # bytes, read and written, below which a copy is notably slower
_PAIRS = 64  # of sources and targets at most
_EXTENT = 8192  # of the square matrices
ROW = 16  # bytes that a bulk copy counts in


@dataclass(frozen=True)
class Ceiling:
    """A run that does nothing but what is to be measured."""

    name: str
    work: Work
    actions: Sequence[Callable[[], Any]]
    """Runs in turns, each on other memory: together more than the L2 cache holds."""


def ceilings(torch: ModuleType, work: Work) -> list[Ceiling]:
    """Those that say something about this work: bandwidth always, a product where it is in its unit."""
    found = [copy(torch)]
    if 0 < work.bytes < _LITTLE:
        found.append(short_copy(torch, int(work.bytes)))
    if work.only_reads:
        found.append(read(torch, int(work.bytes)))
    if work.rate in PRODUCTS:
        found.append(product(torch, work.rate))
    return found


def copy(torch: ModuleType) -> Ceiling:
    """A copy of 1 GiB within the GPU's memory; it reads and writes."""
    source = torch.empty(_COPIED // 4, device="cuda").normal_()
    target = torch.empty_like(source)
    return Ceiling("copy", Work(0, 2 * _COPIED, "f32"), [lambda: target.copy_(source)])


def short_copy(torch: ModuleType, bytes: int) -> Ceiling:
    """A copy that reads and writes so many bytes together, from memory that is not in the L2 cache.

    It is a kernel: what the driver copies with takes half as long again for some numbers of bytes.
    """
    numbers = max(bytes // 8, 1)  # of four bytes, each read and written
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    pairs = min(2 * cache // (8 * numbers) + 2, _PAIRS)
    sources = [torch.empty(numbers, device="cuda").normal_() for _ in range(pairs)]
    targets = [torch.empty_like(source) for source in sources]
    actions = [partial(torch.mul, source, 1.0, out=target) for source, target in zip(sources, targets, strict=True)]
    return Ceiling("copy of as many bytes", Work(0, 8 * numbers, "f32"), actions)


def read(torch: ModuleType, bytes: int) -> Ceiling:
    """A run that reads so many bytes from memory, and writes nothing."""
    count = -(-bytes // ROW) * ROW
    properties = torch.cuda.get_device_properties(0)
    sets = min(2 * properties.L2_cache_size // count + 2, _PAIRS)
    sources = [torch.empty(count // 4, device="cuda").normal_() for _ in range(sets)]
    blocks, stream = properties.multi_processor_count, torch.cuda.current_stream()
    launches = [Launch(reading.read, blocks, 32, [one, count], reading.SHARED, overlap=True) for one in sources]
    actions = [launch.prepare(stream).launch for launch in launches]
    return Ceiling("read of as many bytes", Work(0, count, "f32"), actions)


def product(torch: ModuleType, type: str) -> Ceiling:
    """The library's product of two square matrices of this type."""
    work = Work(2 * _EXTENT**3, 0, type)
    return Ceiling(f"{type} product", work, [PRODUCTS[type](torch, Device(torch, 1))])


def _plain(type: str) -> Callable[[Any, Device], Callable[[], Any]]:
    def make(torch: ModuleType, draw: Device) -> Callable[[], Any]:
        a, b = draw.normal((_EXTENT, _EXTENT), type), draw.normal((_EXTENT, _EXTENT), type)
        c = torch.empty_like(a)
        return lambda: torch.matmul(a, b, out=c)

    return make


def _tf32(torch: ModuleType, draw: Device) -> Callable[[], object]:
    plain = _plain("f32")(torch, draw)

    def run() -> None:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            plain()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    return run


def _e4m3(torch: ModuleType, draw: Device) -> Callable[[], object]:
    a, b = draw.normal((_EXTENT, _EXTENT), "e4m3"), draw.normal((_EXTENT, _EXTENT), "e4m3").t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=True)


def _s8(torch: ModuleType, draw: Device) -> Callable[[], object]:
    a, b = (draw.integers((_EXTENT, _EXTENT), "s8", -128, 128) for _ in range(2))
    return lambda: torch._int_mm(a, b.t())


PRODUCTS: dict[str, Callable[[Any, Device], Callable[[], Any]]] = {
    "f32": _plain("f32"), "f64": _plain("f64"), "f16": _plain("f16"), "bf16": _plain("bf16"),
    "tf32": _tf32, "e4m3": _e4m3, "s8": _s8,
}  # fmt: skip

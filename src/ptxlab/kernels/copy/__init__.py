"""y = x: how near plain loads and stores come to the memory's bandwidth, and what cache hints change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlab import ir
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import load, parse

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256
TILE = 4 * BLOCK  # elements that a block of `vectors.ptx` copies at a time
FULL = 8 * 132  # blocks that an H200 holds at once
_HERE = Path(__file__).parent


class Hints(NamedTuple):
    """What is added to `ld.global` and `st.global`, and the operands that a policy for the L2 cache is."""

    load: str = ""
    store: str = ""
    load_policy: str = ""
    store_policy: str = ""


HINTS = {
    "16 bytes a thread": Hints(),
    "ld.cs, st.cs": Hints(".cs", ".cs"),
    "ld.cs, st.wt": Hints(".cs", ".wt"),
    "L1::no_allocate": Hints(".L1::no_allocate", ".L1::no_allocate"),
    "L1::evict_first": Hints(".L1::evict_first", ".L1::evict_first"),
    "L2::evict_first": Hints(".L2::cache_hint", ".L2::cache_hint", ", %first", ", %first"),
    "L2::evict_last for loads": Hints(".L2::cache_hint", load_policy=", %last"),
}


@cache
def words() -> ir.Function:
    """The kernel of words.ptx."""
    return load(_HERE / "words.ptx")["copy"]


@cache
def vectors(hints: Hints) -> ir.Function:
    """The kernel of vectors.ptx with these hints."""
    text = Template((_HERE / "vectors.ptx").read_text(encoding="utf-8")).substitute(hints._asdict())
    return parse(text, name="vectors.ptx")["copy"]


def by_words(x: Array, y: Array) -> Launch:
    """Four bytes a thread."""
    return Launch(words(), ceil_div(len(y), BLOCK), BLOCK, [x, y, len(y)])


def by_vectors(x: Array, y: Array, hints: Hints = HINTS["16 bytes a thread"]) -> Launch:
    """16 bytes a thread."""
    return Launch(vectors(hints), ceil_div(len(y), TILE), BLOCK, [x, y, len(y)])


def persistent(x: Array, y: Array, hints: Hints = HINTS["16 bytes a thread"]) -> Launch:
    """16 bytes at a time, by blocks that stay until all is copied."""
    blocks = min(ceil_div(len(y), 2 * TILE), FULL)
    return Launch(vectors(hints), blocks, BLOCK, [x, y, len(y)])


def torch_baseline(torch: ModuleType, x: Any, y: Any) -> Callable[[], object]:
    """What torch does."""
    return lambda: y.copy_(x)


def arrays(draw: Draw, n: int) -> Arrays:
    """A vector, and space for its copy."""
    return {"x": draw.normal(n, "f32"), "y": draw.empty(n, "f32")}


def reference(xp: ModuleType, x: Array, y: Array) -> Arrays:
    """The same."""
    return {"y": x}


entry = Entry(
    title="y = x for f32 vectors",
    arrays=arrays,
    reference=reference,
    work=lambda n: Work(flops=0, bytes=8 * n, rate="f32 arithmetic"),
    variants={
        "4 bytes a thread": by_words,
        **{name: partial(by_vectors, hints=hints) for name, hints in HINTS.items()},
        "persistent": persistent,
        "persistent, ld.cs, st.cs": partial(persistent, hints=HINTS["ld.cs, st.cs"]),
    },
    libraries={"torch": torch_baseline},
    sizes=[{"n": 1 << 22}, {"n": 1 << 26}, {"n": 1 << 28}],
    small=[{"n": 1}, {"n": 2 * TILE}, {"n": 3 * TILE + 1001}],
    tolerance=0,
)

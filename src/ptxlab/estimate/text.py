"""An estimate as text that fits 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from textwrap import wrap
from typing import TYPE_CHECKING

from ptxlab.report.times import seconds

if TYPE_CHECKING:
    from ptxlab.estimate.prediction import Estimate

WIDTH = 80
LIMITERS = {"shared": "shared memory", "blocks": "the number of blocks", "warps": "the number of threads"}
ADVICE = {
    "tensor cores": "they are busy: only fewer or cheaper MMAs are faster",
    "issue slots": "fewer instructions: wider loads, less address arithmetic, unrolling",
    "FMA pipe": "arithmetic is the limit: fewer operations, or tensor cores",
    "integer multiplier": "IMAD has half the rate of FFMA: shifts and additions instead of products",
    "ALU pipe": "integer and compare instructions: move them out of the loop",
    "SFU": "exp2, rcp, rsqrt and conversions: fewer of them, or a polynomial on the FMA pipe",
    "FP64 pipe": "double precision has half the rate of f32",
    "shared memory": "fewer wavefronts: no bank conflicts, wider accesses, more reuse in registers",
    "L1 cache": "fewer lines a request: neighbouring lanes should access neighbouring addresses",
    "L2 cache": "more reuse in shared memory, or multicast to a cluster",
    "DRAM": "fewer bytes: narrower types, or fuse with the kernel before or after",
    "latency": "more loads under way: more of them before the first use, wider ones, more warps",
    "launch overhead": "the launch takes longer than its work: give it more, or use a graph",
    "too few blocks": "SMs have nothing to do: smaller tiles, or split the sum",
    "last wave": "most SMs wait for the last blocks: another tile size, or a persistent kernel",
}


def describe(found: Estimate) -> Iterator[str]:
    """The lines of an estimate."""
    on, much = ("a", "at least") if found.is_bound else ("an", "about")
    title = f"`{found.kernel}` on {on} {found.gpu}: {much} {seconds(found.seconds)}, limited by {found.limiter}"
    yield from wrap(title, WIDTH, break_on_hyphens=False)
    yield from wrap(ADVICE[found.limiter], WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield ""
    yield f"{'unit':<20}{'busy':>12}{'cycles':>14}  of the time"
    for unit in found.units:
        bar = "#" * round(20 * min(unit.fraction, 1.0))
        yield f"{unit.name:<20}{seconds(unit.seconds):>12}{unit.cycles:>14,.0f}  {unit.fraction:4.0%} {bar}".rstrip()
    yield ""
    held = found.occupancy
    limiter = LIMITERS.get(held.limiter, held.limiter)
    many = "s" * (held.blocks != 1)
    yield f"occupancy: {held.blocks} block{many}, {held.warps} of {held.warp_limit} warps an SM; limited by {limiter}"
    yield f"registers: {found.registers} a thread"
    yield f"blocks: {found.blocks:,}, {found.waves:.2f} waves; {found.idle:.0%} of the SMs' time is lost at the end"
    read, written = found.dram_bytes
    yield f"DRAM: {amount(read)} read, {amount(written)} written"
    if found.conflicts:
        yield f"shared memory: {found.conflicts:.0%} of its cycles are bank conflicts"
    if found.hot:
        yield ""
        yield "where it is spent:"
    for hot in found.hot:
        where = f"{PurePath(hot.file).name}:{hot.line}" if hot.file else f"line {hot.line}"
        where += f" ({hot.callers})" if hot.callers else ""
        more = f" and {hot.instructions - 1} more" if hot.instructions > 1 else ""
        yield f"{hot.share:5.0%}  {where}: {hot.text}"[:WIDTH]
        yield f"         {hot.sass}"[: WIDTH - len(more)] + more
    yield ""
    blocks = f"{found.sampled} block{'s' * (found.sampled != 1)}"
    note = f"Modelled from {blocks} on the emulator, not measured: {found.not_modelled}."
    yield from wrap(note, WIDTH)


def amount(bytes: float) -> str:
    """An amount of bytes with three digits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes >= size:
            return f"{bytes / size:,.3g} {unit}"
    return f"{bytes:.0f} B"

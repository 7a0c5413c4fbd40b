"""A timeline that a kernel records of its warps: `timeline = ptx.timeline(blocks=132, warps=12)` at its start, then

    with timeline.span("load"):
        ...

Lane 0 of each warp reads the clock before and after, and stores 20 bytes when the span ends, in a variable of the
module: threads that record wait for nothing. `kernel.timeline()` reads it after a launch, on whichever device that was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxlab.author import memory
from ptxlab.author.control import WithBlock
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.pointers import Pointer
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar, b8, b32, u32, u64
from ptxlab.timelines.layout import CLOCKS, HEADER, RECORD, Layout

MOST = 1 << 30  # bytes
UPPER_HALF = 0x5410  # of `prmt`: the second operand goes there


class Recorder:
    """What writes the spans of one role; without a layout it writes nothing."""

    def __init__(self, layout: Layout | None, warp: Any = None, role: str = "") -> None:
        self._layout = layout
        self._warp = warp
        self._role = role

    def role(self, name: str) -> Recorder:
        """The same timeline, for spans of a role: `timeline.role("producer").span("load")`."""
        return Recorder(self._layout, self._warp, name)

    def span(self, label: str) -> WithBlock:
        """A block whose start and end are recorded for the warp, by its lane 0, if that executes it."""
        return WithBlock("timeline.span", lambda: self._record(label))

    def _record(self, label: str) -> Iterator[None]:
        if self._layout is None:
            yield
            return
        number, warp = self._layout.number(self._role, label), self._warp
        start = _clock(self._layout)
        yield
        fits = emit("setp.lt.and.u32", [warp.count, self._layout.capacity, warp.records])
        address = warp.address + warp.count * RECORD + HEADER
        low, high = emit("mov.b64", [_clock(self._layout)], out=(b32(), b32()))
        labelled = emit("prmt.b32", [high, number, UPPER_HALF])
        words = [*emit("mov.b64", [start], out=(b32(), b32())), low, labelled]
        emit("st.global.v4.b32", [address, words], when=fits)
        warp.count += 1
        emit("st.global.u32", [warp.address + 8, warp.count], when=warp.records)


class _Warp:
    """The address of a warp's records, how many there are, and whether this thread records."""

    def __init__(self, layout: Layout) -> None:
        block, blocks = _linear("%ctaid", "%nctaid")
        thread, threads = _linear("%tid", "%ntid")
        warp = thread >> 5
        array = memory.global_(b8, layout.size, align=16, name=layout.variable)
        layout.variable = array.symbol or layout.variable
        records = emit("setp.lt.u32", [block, layout.blocks])
        records = emit("setp.lt.and.u32", [warp, layout.warps, records])
        self.records = emit("setp.eq.and.u32", [_special("%laneid"), 0, records])
        self.address: Pointer = (array + (block * layout.warps + warp) * layout.warp_bytes).copy()
        self.count = u32(0)
        low, high = emit("mov.b64", [_clock(layout)], out=(b32(), b32()))
        words = [low, high, self.count.view(b32), _special("%smid").view(b32)]
        emit("st.global.v4.b32", [self.address, words], when=self.records)
        warps = threads + 31 >> 5
        words = [_special("%nsmid").view(b32), blocks.view(b32), warps.view(b32), b32(0)]
        emit("st.global.v4.b32", [self.address + 16, words], when=self.records)


def timeline(*, blocks: int, warps: int, spans: int = 256, clock: str = "clock64") -> Recorder:
    """Record what warps do when: the first `spans` of each of so many warps of each of so many blocks.

    All threads of the block call it, before they part. That takes 16 bytes a span and 32 a warp of the module's global
    memory; `spans=0` writes nothing at all. `clock` is `clock64`, the cycles of an SM, or `globaltimer`, which all SMs
    share, in nanoseconds and coarser.
    """
    trace = current("`ptx.timeline`")
    for name, value in (("blocks", blocks), ("warps", warps)):
        if value < 1:
            refuse("illegal-declaration", f"a timeline of {value} {name} records nothing", helps=["`spans=0` says so"])
    if clock not in CLOCKS:
        refuse("illegal-declaration", f"there is no clock {clock!r}", helps=["`clock64` or `globaltimer`"])
    if not spans:
        return Recorder(None)
    layout = Layout(blocks, warps, spans, clock)
    if layout.size > MOST:
        refuse("illegal-declaration", f"a timeline of {layout.size:,} bytes is too large", helps=[f"at most {MOST:,}"])
    if trace.name in trace.program.timelines:
        refuse("duplicate-name", f"`{trace.name}` has a timeline already", helps=["`.role(...)` of it is for others"])
    trace.program.timelines[trace.name] = layout
    return Recorder(layout, _Warp(layout))


def _clock(layout: Layout) -> u64:
    read: u64 = emit("mov.u64", [f"%{layout.clock}"], out=u64())
    return read


def _special(name: str) -> u32:
    read: u32 = emit("mov.u32", [name], out=u32())
    return read


def _linear(index: str, extent: str) -> tuple[Scalar, Scalar]:
    """The number of a block or thread, and how many there are."""
    extents = [_special(f"{extent}.{axis}") for axis in "xyz"]
    number = emit("mad.lo.u32", [_special(f"{index}.z"), extents[1], _special(f"{index}.y")])
    number = emit("mad.lo.u32", [number, extents[0], _special(f"{index}.x")])
    return number, extents[0] * extents[1] * extents[2]

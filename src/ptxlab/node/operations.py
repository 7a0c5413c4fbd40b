"""What is launched on a node: a kernel, a copy or a fill, with what has to be complete before it starts.

Copies and fills are kernels of our own, so that the detectors see what they read and write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy

from ptxlab import ir
from ptxlab.report import Span
from ptxlab.syntax import parse

if TYPE_CHECKING:
    from ptxlab.node.streams import Stream

THREADS = 128
_PTX = """.version 7.0
.target sm_70
.address_size 64

.visible .entry copy_{type}(.param .u64 to, .param .u64 from, .param .u64 count, .param .u64 to_pitch,
    .param .u64 from_pitch, .param .u64 to_slice, .param .u64 from_slice)
{{
    .reg .pred %p;
    .reg .b32 %r, %v;
    .reg .b64 %to, %from, %count, %at, %a, %b, %y, %z, %pitch;
    ld.param.u64 %to, [to];
    ld.param.u64 %from, [from];
    ld.param.u64 %count, [count];
    mov.u32 %r, %ctaid.x;
    cvt.u64.u32 %y, %r;
    mov.u32 %r, %ctaid.y;
    cvt.u64.u32 %z, %r;
    ld.param.u64 %pitch, [to_pitch];
    mad.lo.u64 %to, %y, %pitch, %to;
    ld.param.u64 %pitch, [from_pitch];
    mad.lo.u64 %from, %y, %pitch, %from;
    ld.param.u64 %pitch, [to_slice];
    mad.lo.u64 %to, %z, %pitch, %to;
    ld.param.u64 %pitch, [from_slice];
    mad.lo.u64 %from, %z, %pitch, %from;
    mov.u32 %r, %tid.x;
    cvt.u64.u32 %at, %r;
next:
    setp.ge.u64 %p, %at, %count;
    @%p bra done;
    mad.lo.u64 %a, %at, {size}, %from;
    mad.lo.u64 %b, %at, {size}, %to;
    ld.global.{type} %v, [%a];
    st.global.{type} [%b], %v;
    add.u64 %at, %at, {threads};
    bra next;
done:
    ret;
}}

.visible .entry read_{type}(.param .u64 from, .param .u64 count, .param .u64 from_pitch, .param .u64 from_slice)
{{
    .reg .pred %p;
    .reg .b32 %r, %v;
    .reg .b64 %from, %count, %at, %a, %y, %pitch;
    ld.param.u64 %from, [from];
    ld.param.u64 %count, [count];
    mov.u32 %r, %ctaid.x;
    cvt.u64.u32 %y, %r;
    ld.param.u64 %pitch, [from_pitch];
    mad.lo.u64 %from, %y, %pitch, %from;
    mov.u32 %r, %ctaid.y;
    cvt.u64.u32 %y, %r;
    ld.param.u64 %pitch, [from_slice];
    mad.lo.u64 %from, %y, %pitch, %from;
    mov.u32 %r, %tid.x;
    cvt.u64.u32 %at, %r;
next:
    setp.ge.u64 %p, %at, %count;
    @%p bra done;
    mad.lo.u64 %a, %at, {size}, %from;
    ld.global.{type} %v, [%a];
    add.u64 %at, %at, {threads};
    bra next;
done:
    ret;
}}

.visible .entry await_{type}(.param .u64 word)
{{
    .reg .pred %p;
    .reg .b32 %v;
    .reg .b64 %word;
    ld.param.u64 %word, [word];
next:
    ld.relaxed.sys.global.u32 %v, [%word];
    setp.eq.u32 %p, %v, 0;
    @%p bra next;
    ret;
}}

.visible .entry fill_{type}(.param .u64 to, .param .u32 value, .param .u64 count, .param .u64 to_pitch,
    .param .u64 to_slice)
{{
    .reg .pred %p;
    .reg .b32 %r, %v;
    .reg .b64 %to, %count, %at, %b, %y, %pitch;
    ld.param.u64 %to, [to];
    ld.param.u32 %v, [value];
    ld.param.u64 %count, [count];
    mov.u32 %r, %ctaid.x;
    cvt.u64.u32 %y, %r;
    ld.param.u64 %pitch, [to_pitch];
    mad.lo.u64 %to, %y, %pitch, %to;
    mov.u32 %r, %ctaid.y;
    cvt.u64.u32 %y, %r;
    ld.param.u64 %pitch, [to_slice];
    mad.lo.u64 %to, %y, %pitch, %to;
    mov.u32 %r, %tid.x;
    cvt.u64.u32 %at, %r;
next:
    setp.ge.u64 %p, %at, %count;
    @%p bra done;
    mad.lo.u64 %b, %at, {size}, %to;
    st.global.{type} [%b], %v;
    add.u64 %at, %at, {threads};
    bra next;
done:
    ret;
}}
"""


class HostCall:
    """A function of the host on a stream: the operation polls a word, which is set once it has returned."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self.word = numpy.zeros(1, numpy.uint32)


@dataclass(eq=False)
class StreamOperation:
    """A kernel with its arguments, or a copy or a fill, on a stream of a GPU."""

    kernel: ir.Function
    grid: Any
    block: Any
    args: Sequence[Any]
    own: dict[str, Any]
    """Launch options of its own: `shared`, `cluster`, `cooperative`."""
    rank: int
    title: str
    """`rank 1`, or `the copy to x of rank 1`."""
    before: set[StreamOperation]
    """Those that it follows directly, which are complete when it starts."""
    host_line: Span | None
    stream: Stream | None = None
    number: int = 0
    """Of the stream, on its GPU."""
    is_kernel: bool = True
    call: HostCall | None = None
    """What the host does meanwhile, if it is a function of the host."""
    is_complete: bool = field(default=False)

    def again(self, before: set[StreamOperation]) -> StreamOperation:
        """The same, as one of a graph that runs."""
        made = replace(self, before=before, stream=None)
        if self.call is not None:  # each call has a word of its own
            made.call = HostCall(self.call.function)
            made.args = [made.call.word]
        return made


def after(operations: Iterable[StreamOperation]) -> set[StreamOperation]:
    """Those operations, without what has run, and without those that others of them follow directly."""
    left = {operation for operation in operations if not operation.is_complete}
    return left.difference(*(operation.before for operation in left))


def call_kernel() -> ir.Function:
    """A kernel that waits until a word is not zero."""
    return _module("u32", 4)["await_u32"]


def copy_kernel(*multiples: int) -> tuple[ir.Function, int]:
    """A kernel that copies a box of rows, and the bytes of its elements; these divide all addresses and sizes."""
    name, width = _element(multiples)
    return _module(name, width)[f"copy_{name}"], width


def read_kernel(*multiples: int) -> tuple[ir.Function, int]:
    """A kernel that reads a box of rows, and the bytes of its elements."""
    name, width = _element(multiples)
    return _module(name, width)[f"read_{name}"], width


def fill_kernel(*multiples: int) -> tuple[ir.Function, int]:
    """A kernel that fills a box of rows with one value, and the bytes of its elements."""
    name, width = _element(multiples)
    return _module(name, width)[f"fill_{name}"], width


def _element(multiples: Iterable[int]) -> tuple[str, int]:
    return ("u8", 1) if any(one % 4 for one in multiples) else ("u32", 4)


@cache
def _module(type: str, size: int) -> ir.Module:
    return parse(_PTX.format(type=type, size=size, threads=THREADS), "operations.ptx")

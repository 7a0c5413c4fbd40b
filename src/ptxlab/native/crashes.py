"""Says which Python line native code crashed in: a handler of signals, compiled like all native code.

It finds the line by the program counter in a table that `locating` fills, writes it to stderr, and lets the signal come
again to the handler that was there before.
"""

from __future__ import annotations

from .bounds import append_number, append_text, append_words, write
from .functions import external, native
from .operations import array, cast, function_pointer
from .types import Pointer, s32, struct, u8, u32, u64

ACTION = 152  # bytes of the C library's `struct sigaction` on Linux
CRASHED = tuple(b"ptxlab: native code crashed with signal \0")
AT = tuple(b" at \0")


@struct
class Stretch:
    """Machine code of one line."""

    start: u64
    end: u64
    text: Pointer[u8]  # which line, as text that ends with 0


@struct
class Stretches:
    """All of them by address, and what the handler needs besides."""

    first: Pointer[Stretch]
    count: u64
    counter: u64  # where the program counter is in what the handler is given
    actions: Pointer[u8]  # what was done before on each signal


@external(symbol="ptxlab.native.stretches")
def stretches() -> None:
    """A `Stretches`: this is data, and only its address is used."""


@external
def sigaction(signal: s32, new: Pointer[u8], old: Pointer[u8]) -> s32:
    raise NotImplementedError


@native
def on_signal(signal: s32, info: Pointer[u8], context: Pointer[u8]) -> None:
    known = cast(Pointer[Stretches], function_pointer(stretches))
    counter: u64 = cast(Pointer[u64], context + known.counter)[0]
    low: u64 = 0
    high: u64 = known.count
    while low < high:
        middle: u64 = (low + high) // 2
        if known.first[middle].end <= counter:
            low = middle + 1
        else:
            high = middle
    if low < known.count and known.first[low].start <= counter:
        buffer = array(u8, 1200)
        used: u32 = append_words(buffer, 0, CRASHED)  # type: ignore[arg-type]
        used = append_number(buffer, used, u64(signal), 10)
        used = append_words(buffer, used, AT)  # type: ignore[arg-type]
        used = append_text(buffer, used, known.first[low].text)
        buffer[used] = 10
        write(2, buffer, u64(used) + 1)
    sigaction(signal, known.actions + signal * ACTION, cast(Pointer[u8], 0))

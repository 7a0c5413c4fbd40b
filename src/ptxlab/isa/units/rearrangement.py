"""Elements of matrices that move between the registers of a warp, once for all its lanes."""

from ptxlab.native import Pointer, native, u32, u64


@native
def rearrange(
    exchange: Pointer[u32],
    members: u32,
    count: u32,
    bits: u32,
    to_bits: u32,
    sources: Pointer[u32],
    targets: Pointer[u32],
) -> None:
    """Move `count` elements of `bits` to places where they take `to_bits`, the upper ones zero."""
    mask: u64 = (u64(1) << bits) - 1
    others: u32 = u32(~((u64(1) << to_bits) - 1))
    for i in range(count):
        source: u32 = sources[i]
        target: u32 = targets[i]
        # An element of six bits can reach into the next register.
        words: u64 = u64(exchange[source >> 5]) | u64(exchange[(source >> 5) + 32]) << 32
        value: u32 = u32(words >> (source & 31) & mask)
        shift: u32 = target & 31
        kept: u32 = exchange[target >> 5] & u32(others << shift | (u32(1) << shift) - 1)
        exchange[target >> 5] = kept | value << shift


@native
def converge(exchange: Pointer[u32], members: u32) -> None:
    """Where lanes only wait for each other."""


@native
def agree(exchange: Pointer[u32], members: u32) -> None:
    """Where lanes bring a word each: whether it is the same in all."""
    same: u32 = 1
    for lane in range(32):
        if exchange[lane] != exchange[0]:
            same = 0
    for to in range(32):
        exchange[32 + to] = same

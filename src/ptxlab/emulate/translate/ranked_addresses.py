"""Addresses of shared memory that contain the rank of their block, as on a GPU, in kernels that compute with it.

On a GPU an address of shared memory, also one of the thread's own block, has the rank of the block in the cluster in
bits 24 and up. Kernels rely on it: `mapa` with a block's own rank is the block's own address, an address may be sent to
another block, without bit 24 the address of an mbarrier is that of the even block of a pair, and Triton flips such bits
where others use `mapa`. Elsewhere in the emulator an own address is an offset, and another one has its rank plus 1
above the offset. Here one becomes the other. Spared both are kernels that ask for no cluster and have no `mapa`,
`getctarank` or `.cta_group::2`, and no access of `.shared::cluster` but of bulk copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces, state
from ptxlab.emulate.translate.values import LlvmValue, constant_text
from ptxlab.isa.types import type_named
from ptxlab.native import offset_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_U64 = type_named("u64")
_NAMED = "%shared_name"  # where the addresses of the block's own shared memory start
_ONE = 1 << address_spaces.RANK_SHIFT


def entry_loads() -> list[str]:
    """Where the addresses of the block's own shared memory start."""
    return [
        f"  %at.rank = getelementptr i8, ptr %block, i64 {offset_of(state.Block, 'rank')}",
        "  %rank = load i32, ptr %at.rank",
        "  %rank.wide = zext i32 %rank to i64",
        f"  {_NAMED} = shl i64 %rank.wide, {address_spaces.RANK_SHIFT}",
    ]


def named(function: Function, offset: LlvmValue) -> LlvmValue:
    """An offset in the block's own shared memory as the kernel knows it."""
    return offset + LlvmValue(function, _U64, _NAMED)


def is_own(function: Function, address: LlvmValue) -> LlvmValue:
    """Whether an address in shared memory of the cluster is one of the thread's own block."""
    return _own(function, address) < _ONE


def resolved(function: Function, space: str | None, address: LlvmValue) -> LlvmValue:
    """An address that the kernel has computed, as the rest of the emulator knows it."""
    if space == "shared":
        return _own(function, address)
    if space == "shared::cluster":
        return _in_cluster(function, address)
    if space is not None:
        return address
    window = LlvmValue(function, _U64, constant_text(address_spaces.SHARED_WINDOW, _U64))
    inside = address - window
    return function.machine.select(
        inside < address_spaces.LOCAL_WINDOW - address_spaces.SHARED_WINDOW,
        _in_cluster(function, inside) + window,
        address,
    )


def beyond(function: Function, own: LlvmValue) -> LlvmValue:
    """What `resolved` gave for `.shared::cta` and is not there: the address in another block that it may be."""
    return function.machine.select(own < _ONE, own, own + LlvmValue(function, _U64, _NAMED) + _ONE)


def _own(function: Function, address: LlvmValue) -> LlvmValue:
    return address - LlvmValue(function, _U64, _NAMED)


def _in_cluster(function: Function, address: LlvmValue) -> LlvmValue:
    own = _own(function, address)
    return function.machine.select(own < _ONE, own, address + _ONE)

"""Generic addresses: where each state space has its window among them, and which space one is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.device import layout
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.translate import ranked_addresses
from ptxlab.emulate.translate.values import LlvmValue

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_WINDOWS = {
    "shared": address_spaces.SHARED_WINDOW,
    "local": address_spaces.LOCAL_WINDOW,
    "param": address_spaces.PARAMETER_WINDOW,
    "global": 0,
    "const": 0,
}


def window(function: Function, space: str) -> int:
    """Where the addresses of a state space start among generic ones."""
    space = space.partition("::")[0]
    return _WINDOWS["local" if space == "param" and not function.is_entry else space]


def is_in(function: Function, space: str, address: LlvmValue) -> LlvmValue:
    """Whether a generic address is in a state space."""
    first = window(function, space)
    if space in ("shared", "shared::cta"):
        if function.unit.ranked:
            return ranked_addresses.is_own(function, address - first)
        address = function.machine.own_offset(address - first) + first
        return (address >= first) & (address < first + (1 << address_spaces.RANK_SHIFT))
    if first:
        return (address >= first) & (address < first + (1 << 56))
    low, high = layout.SPANS[space.partition("::")[0]]
    return (address >= low) & (address < high)

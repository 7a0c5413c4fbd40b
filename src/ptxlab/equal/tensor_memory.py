"""Tensor memory on expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxlab.equal.turns import Turn


def access(turn: Turn) -> None:
    """`tcgen05` is not followed."""
    raise turn.refused("tensor memory is not followed")

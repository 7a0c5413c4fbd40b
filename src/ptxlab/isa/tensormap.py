"""Changing tensor maps, the 128-byte descriptions of tensors that bulk copies read (PTX ISA 9.7.9.28, 9.7.13.16)."""

from typing import Any

from .extent import addresses
from .form import Specification, form
from .vocabulary import SCOPE

UNKNOWN = "changes of tensor maps are not emulated yet"
REPLACE: dict[str, Any] = {
    "space": "global shared::cta",
    "name": "tensormap.replace",
    "since": "8.3 sm_90a | 8.6 sm_100a sm_110a | 8.7 sm_120a | 8.8 sm_100f sm_110f sm_120f",
}
ATOMICITY = "8.6 sm_100a sm_110a | 8.7 sm_120a | 8.8 sm_100f sm_110f sm_120f"
ORDINAL: dict[str, Specification] = {"ordinal": "imm(0..4)"}

# Values of fields that are numbers; the last ones of `.elemtype` and `.swizzle_mode` came with later targets.
NUMBERS = {
    "elemtype": "imm(0..15)",
    "interleave_layout": "imm(0..2)",
    "swizzle_mode": "imm(0..4)",
    "swizzle_atomicity": "imm(0..3)",
    "fill_mode": "imm(0|1)",
}


@form("tensormap.replace.tile.global_address{.space}.b1024.b64 [a], value", **REPLACE)
@form("tensormap.replace.tile.rank{.space}.b1024.b32 [a], value", **REPLACE)
@form("tensormap.replace.tile.global_stride{.space}.b1024.b64 [a], ordinal, value", types=ORDINAL, **REPLACE)
@form(
    "tensormap.replace.tile.field{.space}.b1024.b32 [a], ordinal, value",
    field="box_dim global_dim element_stride",
    types=ORDINAL,
    **REPLACE,
)
@form(
    "tensormap.replace.tile.field{.space}.b1024.b32 [a], value",
    field=("elemtype interleave_layout swizzle_mode fill_mode", ("swizzle_atomicity", ATOMICITY)),
    types={"value": lambda m: NUMBERS[m.field]},
    **REPLACE,
)
@form(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [d], [a], size",
    scope=SCOPE,
    types={"d": "global", "a": "shared", "size": "imm(128)"},
    name="tensormap.cp_fenceproxy",
    since="8.3 sm_90",
)
@addresses(d="128/64", a="128/64")
def tensormap() -> None:
    """Replace one field of a tensor map, or copy a map to global memory and order that with the reads of the map."""

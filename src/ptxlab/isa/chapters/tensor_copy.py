"""Copies of tiles of tensors, laid out as a tensor map says: cp.async.bulk.tensor and its kin (PTX ISA 9.7.9.27).

An instruction names a tensor map and coordinates in brackets. From PTX 9.4 on it can override what the map says: the
address of the tensor, then also its sizes and strides; `tensor` declares a line of syntax with all of these variants.
"""

import re
from collections.abc import Callable
from typing import Any

from ..asynchronous import Box, Reduction
from ..extent import addresses
from ..form import Modifiers, Slots, Specification, form, unknown
from ..machine import AddressValue, Machine, Value
from .bulk_copy import HINT, MULTICAST, REPORT, cta_mask

DIMENSIONS = "1d 2d 3d 4d 5d"
FAMILY = "8.6 sm_100a sm_110a | 8.8 sm_100f sm_110f"
OVERRIDE = "9.4 sm_107f"
GROUPS = (("cta_group::1 cta_group::2", FAMILY),)
SLOTS = {"dim": DIMENSIONS, "hint": HINT, "report": REPORT, "group": GROUPS, "multicast": MULTICAST}
REDUCTIONS = "add min max inc dec and or xor"

# The modes with a vector of offsets after the coordinates, and those without.
TILES_TO_CTA = ("tile", ("tile::gather4", "8.6 sm_100"))
TILES = ("tile", ("tile::gather4", FAMILY))
STORED = ("tile im2col_no_offs", ("tile::scatter4", FAMILY), ("im2col_no_offs::w", OVERRIDE))
OFFSETS_TO_CTA = ("im2col", ("im2col::w", "8.6 sm_100"), ("im2col::w::128", FAMILY))
OFFSETS = ("im2col", ("im2col::w im2col::w::128", FAMILY))


def rank(m: Modifiers) -> int:
    """The dimensions of the tensor."""
    return int(m.dim[0])


def coordinates(m: Modifiers) -> str:
    """One coordinate a dimension; gathering and scattering take a column and four rows."""
    return f"{5 if m.mode in ('tile::gather4', 'tile::scatter4') else rank(m)} s32 special"


def offsets(m: Modifiers) -> str:
    """One offset a spatial dimension, or a halo and an offset."""
    return f"{rank(m) - 2 if m.mode == 'im2col' else 2} u16 special"


def sizes(m: Modifiers, bits: int) -> str:
    """One size a dimension; over the fabric ptxas takes them only from untyped registers."""
    return f"{rank(m)} b{bits} bits" if "sys" in vars(m) else f"{rank(m)} u{bits}"


def fits(m: Modifiers) -> str | None:
    """Which modes go with which dimensions."""
    if m.mode and m.mode.startswith("im2col") and rank(m) < 3:
        return f"`.{m.mode}` needs three dimensions or more"
    if m.mode in ("tile::gather4", "tile::scatter4") and rank(m) != 2:
        return f"`.{m.mode}` goes only with `.2d`"
    return None


def tile_only(m: Modifiers) -> str | None:
    """What goes with an override of sizes and strides."""
    if m.mode not in (None, "tile"):
        return f"`.{m.attributes}` does not go with `.{m.mode}`"
    if (rank(m) == 1) != (m.attributes == "override::global_dim"):
        return f"`.{m.attributes}` does not go with `.{m.dim}`"
    if getattr(m, "multicast", None) in ("multicast::cluster", "multicast::cluster::16b"):
        return f"`.{m.attributes}` goes only with `.multicast::cluster::32b`"
    return None


TYPES: dict[str, Specification] = {
    "coordinates": coordinates,
    "address": "u64 reg",
    "endpoint": "u32 reg",
    "offset": "u64 reg",
    "counter": "u64 reg",
    "size": "u32",
    "sizes": lambda m: sizes(m, 16),
    "bytes": lambda m: sizes(m, 8),
    "lower": lambda m: f"{rank(m) - 1} b32",
    "upper": "u16 reg",
    "offsets": offsets,
    "mask": cta_mask,
    "policy": "u64",
    "d": "shared bare element",
    "a": "shared bare element",
    "map": lambda m: "global b64" if "sys" in vars(m) else "global",
    "mbar": "shared bare element",
}
PRESENT = {"policy": "hint", "mask": "multicast"}
BOX = "1/128"  # in shared memory; the tensor map says how many bytes there are

# What is in the brackets, and which modifiers require it.
VARIANTS: tuple[tuple[str, str, Slots], ...] = (
    ("[map, coordinates]", "", {"where": fits}),
    ("[map, address, coordinates]", ".override::global_address", {"where": fits}),
    *(
        (brackets, ".override::global_address.attributes", {"where": tile_only, "attributes": attributes})
        for sizes in ("sizes", "bytes")
        for attributes, brackets in (
            ("override::global_dim", f"[map, address, {sizes}, coordinates]"),
            ("override::global_dim_stride", f"[map, address, {sizes}, lower, upper, coordinates]"),
        )
    ),
)

Declared = Callable[..., object]


def tensor(syntax: str, since: str, address: str = "address", **values: Any) -> Callable[[Declared], Declared]:
    """Declare a line of syntax without and with the modifiers that override the tensor map.

    A tensor elsewhere has another `address` than in memory, and cannot do without it.
    """
    opcode, _, operands = syntax.partition(" ")
    words = re.findall(r"[\w:]+", opcode)
    values = {word: SLOTS[word] for word in words if word in SLOTS} | values

    def declare(function: Declared) -> Declared:
        for brackets, modifiers, rest in VARIANTS:
            if ("offsets" in operands and "attributes" in rest) or (address != "address" and not modifiers):
                continue
            line = f"{opcode}{modifiers} {operands.replace('[map]', brackets.replace('address', address))}"
            types = {word: type for word, type in TYPES.items() if word in _words(line)}
            known: Slots = {
                "types": types,
                "present": PRESENT,
                "name": opcode[: opcode.index(".tensor")] + ".tensor",
                "since": OVERRIDE if modifiers else since,
            }
            form(line, **known, **values, **rest)(_overriding(function) if modifiers else function)
        return function

    return declare


def _overriding(function: Declared) -> Declared:
    """A placeholder for an instruction with modifiers that override the tensor map: it has no semantics yet."""

    @unknown("what overrides a tensor map is not emulated yet")
    def overriding() -> None: ...

    overriding.__doc__ = function.__doc__
    overriding.extents = getattr(function, "extents", {})  # type: ignore[attr-defined]
    return overriding


def _words(line: str) -> set[str]:
    return set(line.partition(" ")[2].translate(str.maketrans("[]{},", "     ")).split())


@tensor(
    "cp.async.bulk.tensor.dim.shared::cta.global{.mode}.mbarrier::complete_tx::bytes{.report}{.group}{.hint}"
    " [d], [map], [mbar]{, policy}",
    mode=TILES_TO_CTA,
    since="8.6 sm_90",
)
@tensor(
    "cp.async.bulk.tensor.dim.shared::cluster.global{.mode}.mbarrier::complete_tx::bytes"
    "{.report}{.multicast}{.group}{.hint} [d], [map], [mbar]{, mask}{, policy}",
    mode=TILES,
    since="8.0 sm_90",
)
@addresses(d=BOX)
def cp_async_bulk_tensor_load(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    map: AddressValue,
    coordinates: tuple[Value, ...],
    mbar: AddressValue,
    mask: Value | None,
    policy: Value | None,
) -> None:
    """Copy a box of a tensor to shared memory asynchronously; completion is by an mbarrier that counts bytes.

    The box is where the coordinates say, innermost dimension first; what is out of bounds of the tensor is filled in.
    """
    k.bulk.load_tensor(d, map, Box(m.mode, rank(m), coordinates), mbar, mask)


@tensor(
    "cp.async.bulk.tensor.dim.global.shared::cta{.mode}.bulk_group{.hint} [map], [a]{, policy}",
    mode=STORED,
    since="8.0 sm_90",
)
@addresses(a=BOX)
def cp_async_bulk_tensor_store(
    k: Machine, m: Modifiers, map: AddressValue, coordinates: tuple[Value, ...], a: AddressValue, policy: Value | None
) -> None:
    """Copy a box in shared memory to a tensor asynchronously, except what is out of bounds; a bulk group completes."""
    k.bulk.store_tensor(map, Box(m.mode, rank(m), coordinates), a, None)


@tensor(
    "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{.mode}.bulk_group{.hint} [map], [a]{, policy}",
    op=REDUCTIONS,
    mode=STORED,  # the manual does not list `.tile::scatter4`, ptxas takes it
    since="8.0 sm_90",
)
@addresses(a=BOX)
def cp_reduce_async_bulk_tensor(
    k: Machine, m: Modifiers, map: AddressValue, coordinates: tuple[Value, ...], a: AddressValue, policy: Value | None
) -> None:
    """Combine a box in shared memory with one of a tensor in the background, each element in one indivisible step."""
    k.bulk.store_tensor(map, Box(m.mode, rank(m), coordinates), a, Reduction(m.op))


@tensor("cp.async.bulk.prefetch.tensor.dim.L2.global{.mode}{.hint} [map]{, policy}", mode=TILES, since="8.0 sm_90")
@tensor("cp.async.bulk.prefetch.tensor.dim.L2.global{.mode}.L2::evict_last [map]", mode=TILES, since=OVERRIDE)
def cp_async_bulk_prefetch_tensor(
    k: Machine, m: Modifiers, map: AddressValue, coordinates: tuple[Value, ...], policy: Value | None
) -> None:
    """Have a box of a tensor brought to the L2 cache in the background; its bytes do not change."""
    k.bulk.prefetch_tensor(map, Box(m.mode, rank(m), coordinates))


@tensor(
    "cp.async.bulk.tensor.dim.shared::cta.global.mode.mbarrier::complete_tx::bytes{.report}{.group}{.hint}"
    " [d], [map], [mbar], offsets{, policy}",
    mode=OFFSETS_TO_CTA,
    since="8.6 sm_90",
)
@tensor(
    "cp.async.bulk.tensor.dim.shared::cluster.global.mode.mbarrier::complete_tx::bytes"
    "{.report}{.multicast}{.group}{.hint} [d], [map], [mbar], offsets{, mask}{, policy}",
    mode=OFFSETS,
    since="8.0 sm_90",
)
@addresses(d=BOX)
def cp_async_bulk_tensor_pixels(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    map: AddressValue,
    coordinates: tuple[Value, ...],
    mbar: AddressValue,
    offsets: tuple[Value, ...],
    mask: Value | None,
    policy: Value | None,
) -> None:
    """Copy the pixels that a convolution reads to shared memory, as a tensor map for im2col says, asynchronously."""
    k.bulk.load_tensor(d, map, Box(m.mode, rank(m), coordinates, offsets), mbar, mask)


@tensor(
    "cp.async.bulk.prefetch.tensor.dim.L2.global.mode{.hint} [map], offsets{, policy}", mode=OFFSETS, since="8.0 sm_90"
)
@tensor("cp.async.bulk.prefetch.tensor.dim.L2.global.mode.L2::evict_last [map], offsets", mode=OFFSETS, since=OVERRIDE)
def cp_async_bulk_prefetch_pixels(
    k: Machine,
    m: Modifiers,
    map: AddressValue,
    coordinates: tuple[Value, ...],
    offsets: tuple[Value, ...],
    policy: Value | None,
) -> None:
    """Have the pixels that a convolution reads brought to the L2 cache in the background; they do not change."""
    k.bulk.prefetch_tensor(map, Box(m.mode, rank(m), coordinates, offsets))


@tensor(
    "applypriority.async.bulk.tensor.dim{.global}{.mode}.bulk_group.L2::evict_normal [map]", mode=TILES, since=OVERRIDE
)
@tensor(
    "applypriority.async.bulk.tensor.dim{.global}.mode.bulk_group.L2::evict_normal [map], offsets",
    mode=OFFSETS,
    since=OVERRIDE,
)
@unknown("it changes priorities in a cache")
def applypriority() -> None:
    """Change the eviction priority of a tile of a tensor in the L2 cache, in the background."""

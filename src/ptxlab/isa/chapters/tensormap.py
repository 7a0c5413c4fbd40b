"""Changing tensor maps, the 128-byte descriptions of tensors that bulk copies read (PTX ISA 9.7.9.28, 9.7.13.16)."""

from ..extent import addresses
from ..form import Modifiers, Slots, Specification, form
from ..machine import AddressValue, Machine, Value
from ..units import tensor_map
from ..units.rearrangement import converge
from ..units.warp_mma import ALL_LANES
from ..vocabulary import SCOPE

REPLACE: Slots = {
    "space": "global shared::cta",
    "name": "tensormap.replace",
    "since": "8.3 sm_90a | 8.6 sm_100a sm_110a | 8.7 sm_120a | 8.8 sm_100f sm_110f sm_120f",
}
ATOMICITY = "8.6 sm_100a sm_110a | 8.7 sm_120a | 8.8 sm_100f sm_110f sm_120f"
ORDINAL: dict[str, Specification] = {"a": "full", "ordinal": "imm(0..4)"}
HALF = tensor_map.ALIGNMENT  # of the bytes of a map; each is aligned to as many

# Values of fields that are numbers; the last ones of `.elemtype` and `.swizzle_mode` came with later targets.
NUMBERS = {
    "elemtype": "imm(0..15)",
    "interleave_layout": "imm(0..2)",
    "swizzle_mode": "imm(0..4)",
    "swizzle_atomicity": "imm(0..3)",
    "fill_mode": "imm(0|1)",
}


@form(
    "tensormap.replace.tile.field{.space}.b1024.b32 [a], value",
    field=("elemtype interleave_layout swizzle_mode fill_mode", ("swizzle_atomicity", ATOMICITY)),
    types={"a": "full", "value": lambda m: NUMBERS[m.field]},
    **REPLACE,
)
@addresses(a="128/64")
def replace_number(k: Machine, m: Modifiers, a: AddressValue, value: int) -> None:
    """Replace a field of a tensor map that is one of a few numbers: element type, interleave, swizzle, fill."""
    change = tensor_map.change_flags(m.field, value)
    words = _words(k, a)
    _replace(k, words, change.word, change.mask, k.constant("u32", change.bits))
    _write(k, a, words)


@form("tensormap.replace.tile.global_address{.space}.b1024.b64 [a], value", types={"a": "full"}, **REPLACE)
@addresses(a="128/64")
def replace_address(k: Machine, m: Modifiers, a: AddressValue, value: Value) -> None:
    """Replace the address of the tensor that a tensor map describes."""
    words = _words(k, a)
    words[0], words[1] = k.unpack(value, "u32")
    _write(k, a, words)


@form("tensormap.replace.tile.rank{.space}.b1024.b32 [a], value", types={"a": "full"}, **REPLACE)
@addresses(a="128/64")
def replace_rank(k: Machine, m: Modifiers, a: AddressValue, value: Value) -> None:
    """Replace the rank of the tensor that a tensor map describes; `value` is one less than the rank."""
    words = _words(k, a)
    bits = k.reinterpret(value, "u32") << tensor_map.RANK.shift
    _replace(k, words, tensor_map.FLAGS, tensor_map.RANK.mask, bits)
    _write(k, a, words)


@form("tensormap.replace.tile.global_stride{.space}.b1024.b64 [a], ordinal, value", types=ORDINAL, **REPLACE)
@addresses(a="128/64")
def replace_stride(k: Machine, m: Modifiers, a: AddressValue, ordinal: int, value: Value) -> None:
    """Replace the stride, in bytes, of a dimension of the tensor; ordinal 0 is the stride of dimension 1."""
    words = _words(k, a)
    low, high = k.unpack(k.reinterpret(value, "u64") >> tensor_map.STRIDE_UNIT, "u32")
    words[tensor_map.STRIDES // 4 + ordinal] = low
    _replace(k, words, tensor_map.HIGH_STRIDES, 15 << 4 * ordinal, high << 4 * ordinal)
    _write(k, a, words)


@form(
    "tensormap.replace.tile.field{.space}.b1024.b32 [a], ordinal, value",
    field="box_dim global_dim element_stride",
    types=ORDINAL,
    **REPLACE,
)
@addresses(a="128/64")
def replace_size(k: Machine, m: Modifiers, a: AddressValue, ordinal: int, value: Value) -> None:
    """Replace the size of the tensor, of its box, or the element stride along a dimension; 0 is the innermost."""
    words = _words(k, a)
    less = k.reinterpret(value, "u32") - 1
    if m.field == "global_dim":
        words[tensor_map.SIZES // 4 + ordinal] = less
    elif m.field == "element_stride":
        shift = tensor_map.STEP_BITS * ordinal
        _replace(k, words, tensor_map.STEPS, 7 << shift, less << shift)
    elif ordinal == 0:
        _replace(k, words, tensor_map.STEPS, 255 << tensor_map.BOX_SHIFT, less << tensor_map.BOX_SHIFT)
    else:
        _replace(k, words, tensor_map.BOX, 255 << 8 * (ordinal - 1), less << 8 * (ordinal - 1))
    _write(k, a, words)


def _words(k: Machine, map: AddressValue) -> list[Value]:
    """The 32-bit words of a map: an instruction is an access to all of it."""
    return [word for at in (0, HALF) for word in k.load(map + at, "u32", HALF // 4)]


def _write(k: Machine, map: AddressValue, words: list[Value]) -> None:
    k.bulk.change_map(map, is_warp=False)
    k.store(map, words[: HALF // 4])
    k.store(map + HALF, words[HALF // 4 :])


def _replace(k: Machine, words: list[Value], offset: int, mask: int, bits: Value) -> None:
    """Replace the bits of `mask` in the word at an offset."""
    words[offset // 4] = (words[offset // 4] & (mask ^ 0xFFFFFFFF)) | (bits & mask)


@form(
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [d], [a], size",
    scope=SCOPE,
    types={"d": "global", "a": "shared", "size": "imm(128)"},
    name="tensormap.cp_fenceproxy",
    since="8.3 sm_90",
)
@addresses(d="128/64", a="128/64")
def copy_map(k: Machine, m: Modifiers, d: AddressValue, a: AddressValue, size: int) -> None:
    """Copy a tensor map from shared to global memory, each lane 4 bytes, and release it for acquires of that map."""
    k.collect(converge, ALL_LANES, (), (), aligned=True)
    k.bulk.change_map(d, is_warp=True)
    at = k.cast(k.lane << 2, "u64")
    k.store(d + at, k.load(a + at, "u32"))
    k.bulk.release_maps(m.scope)
    k.fence(f"release.{m.scope}")
    k.collect(converge, ALL_LANES, (), (), aligned=True, orders=True)

"""Tensor maps as the driver's `cuTensorMapEncodeTiled` describes them, by numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.device import tensor_map_checks as checks
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.isa.units.tensor_map import ELEMENT_TYPES

_TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz", "b4x16",
    "b4x16_p64", "b6x16_p32",
)  # fmt: skip
_SWIZZLES = (None, "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
_PROMOTIONS, _INTERLEAVES, _FILLS = (None, "64B", "128B", "256B"), (None, "16B", "32B"), ("zeros", "nan")


def encode_tiled(
    address: int,
    type: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    steps: Sequence[int],
    modes: Sequence[int],
) -> bytes:
    """The bytes of a tensor map; `modes` are those of interleaving, swizzling, L2 promotion and fill.

    What the driver refuses is a `ValueError`.
    """
    numbered = (*zip(modes, (_INTERLEAVES, _SWIZZLES, _PROMOTIONS, _FILLS), strict=True), (type, _TYPES))
    if any(number >= len(known) for number, known in numbered):
        raise ValueError("one of its modes is not a value of its enumeration")
    interleave, swizzle, promotion, fill = modes
    how = checks.Options(
        _TYPES[type], _SWIZZLES[swizzle], _PROMOTIONS[promotion], _FILLS[fill], _INTERLEAVES[interleave]
    )
    width = ELEMENT_TYPES[how.type].bits // 8
    checks.check_options(how, len(sizes))
    checks.check_tensor(sizes[::-1], (*strides[::-1], width), width, how)
    checks.check_box(box[::-1], steps[::-1], how)
    return TensorMap(
        array=None,
        offset=0,
        type=_TYPES[type],
        sizes=tuple(sizes),
        strides=tuple(strides),
        box=tuple(box),
        steps=tuple(steps),
        swizzle=_SWIZZLES[swizzle],
        l2_promotion=_PROMOTIONS[promotion],
        fill=_FILLS[fill],
        interleave=_INTERLEAVES[interleave],
    ).encode(address)

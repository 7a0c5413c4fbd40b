"""Tensor maps, encoded by the driver of the GPU that uses them."""

from __future__ import annotations

from typing import Any

from ptxlab.device.tensor_maps import TensorMap
from ptxlab.gpu.driver import bindings, call
from ptxlab.isa.units.tensor_map import FILLS, INTERLEAVES, PROMOTIONS

_TYPES = {
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64",
    "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "f32.ftz": "FLOAT32_FTZ",
    "tf32": "TFLOAT32", "tf32.ftz": "TFLOAT32_FTZ", "b4x16": "16U4_ALIGN8B", "b4x16_p64": "16U4_ALIGN16B",
    "b6x16_p32": "16U6_ALIGN16B",
}  # fmt: skip


def encode(map: TensorMap, address: int) -> bytes:
    """The 128 bytes of a map of a tensor at an address of a GPU."""
    driver = bindings()
    type = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[map.type]}")
    tensor = (
        type,
        len(map.sizes),
        address,
        [driver.cuuint64_t(size) for size in map.sizes],
        [driver.cuuint64_t(stride) for stride in map.strides or (0,)],  # the driver wants an address in any case
    )
    steps = [driver.cuuint32_t(step) for step in map.steps]
    options = (
        driver.CUtensorMapInterleave(INTERLEAVES[map.interleave]),
        _swizzle(driver, map),
        driver.CUtensorMapL2promotion(PROMOTIONS[map.l2_promotion]),
        driver.CUtensorMapFloatOOBfill(FILLS[map.fill]),
    )
    if map.pixels:
        corners = (list(map.lower), list(map.upper))
        found = call("cuTensorMapEncodeIm2col", *tensor, *corners, map.box[0], map.pixels, steps, *options)
    else:
        box = [driver.cuuint32_t(extent) for extent in map.box]
        found = call("cuTensorMapEncodeTiled", *tensor, box, steps, *options)
    return b"".join(int(word).to_bytes(8, "little") for word in found.opaque)


def _swizzle(driver: Any, map: TensorMap) -> Any:
    name = f"CU_TENSOR_MAP_SWIZZLE_{map.swizzle or 'NONE'}"
    found = getattr(driver.CUtensorMapSwizzle, name, None)
    if found is None:
        raise ValueError(f"the driver's interface has no swizzle of {map.swizzle}")
    return found

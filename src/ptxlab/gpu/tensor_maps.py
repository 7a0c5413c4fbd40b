"""Tensor maps as the driver encodes them; the encoding is not documented."""

from __future__ import annotations

from ptxlab.device.tensor_maps import PROMOTIONS, SWIZZLES, TensorMap
from ptxlab.gpu.driver import bindings, call

_TYPES = {
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64", "s64": "INT64",
    "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64",
}  # fmt: skip


def encode(map: TensorMap, address: int) -> bytes:
    """The 128 bytes of a map of a tensor at an address of a GPU."""
    driver = bindings()
    found = call(
        "cuTensorMapEncodeTiled",
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[map.type]}"),
        len(map.sizes),
        address,
        [driver.cuuint64_t(size) for size in map.sizes],
        [driver.cuuint64_t(stride) for stride in map.strides or (0,)],  # the driver wants an address in any case
        [driver.cuuint32_t(extent) for extent in map.box],
        [driver.cuuint32_t(step) for step in map.steps],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle(SWIZZLES[map.swizzle]),
        driver.CUtensorMapL2promotion(PROMOTIONS[map.l2_promotion]),
        driver.CUtensorMapFloatOOBfill(int(map.fill == "nan")),
    )
    return b"".join(int(word).to_bytes(8, "little") for word in found.opaque)

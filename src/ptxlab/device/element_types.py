"""The types of elements that bulk copies reduce, as the numbers that tensor maps and machine code have for them."""

BITS32, SIGNED32, BITS64, SIGNED64, FLOAT16, BFLOAT16, FLOAT32, FLOAT64, FLOAT32_FTZ = range(9)
TYPES = {
    "b32": BITS32, "u32": BITS32, "s32": SIGNED32, "b64": BITS64, "u64": BITS64, "s64": SIGNED64, "f16": FLOAT16,
    "bf16": BFLOAT16, "f32": FLOAT32, "f64": FLOAT64,
}  # fmt: skip
NO_TYPE = 0xFF  # elements of a tensor map that copies cannot reduce

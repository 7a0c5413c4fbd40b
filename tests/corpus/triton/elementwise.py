"""Element-wise kernels: vector add, activation functions, random numbers, conversions between every float format."""

# make: add_f32 sm_80 sm_90a sm_100a sm_120a
# make: add_f16 sm_80 sm_90a
# make: add_wide sm_100a sm_120a
# make: gelu_bf16 sm_80 sm_90a sm_100a
# make: dropout sm_80 sm_90a sm_100a
# make: math_f32 sm_80 sm_100a
# make: math_f64 sm_80
# make: integers sm_80 sm_90a
# make: cast_fp8 sm_90a sm_100a sm_120a
# make: cast_bf16 sm_80 sm_90a
# make: inline sm_80 sm_90a
# make: debug sm_80

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside, other=0), mask=inside)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, eviction_policy="evict_first").to(tl.float32)
    v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476)) + v * tl.sigmoid(1.702 * v)
    tl.store(out + i, v.to(out.dtype.element_ty), mask=i < n, cache_modifier=".cs")


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    noise = tl.randn(seed + 1, i)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(keep, v / (1 - p) + noise, 0.0), mask=i < n)


@triton.jit
def math(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    r = (
        tl.exp(v)
        + tl.log(v)
        + tl.sin(v)
        + tl.cos(v)
        + tl.sqrt(v)
        + tl.rsqrt(v)
        + tl.exp2(v)
        + tl.log2(v)
        + tl.abs(v)
        + tl.floor(v)
        + tl.ceil(v)
    )
    r += libdevice.tanh(v) + libdevice.pow(v, v) + libdevice.atan2(v, r) + libdevice.round(v) + libdevice.fmod(v, r)
    tl.store(out + i, tl.fma(r, v, v) / r, mask=i < n)


@triton.jit
def integers(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1)
    r = v // 7 + v % 5 + (v << 3) - (v >> 2) ^ (v & 0x55) | ~v
    r += (
        tl.umulhi(v.to(tl.uint32), v.to(tl.uint32)).to(tl.int32)
        + tl.cdiv(v, 3)
        + tl.minimum(v, 9)
        + tl.maximum(v, -9)
        + tl.clamp(v.to(tl.float32), 0.0, 4.0).to(tl.int32)
    )
    tl.store(out + i, r.to(tl.int8), mask=i < n)


@triton.jit
def cast(x, out, back, n, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(NARROW)
    tl.store(out + i, v, mask=i < n)
    tl.store(back + i, v.to(tl.float16) * 2.0, mask=i < n)


@triton.jit
def inline(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    r = tl.inline_asm_elementwise(
        "{ .reg .b32 t; lop3.b32 t, $1, $2, $1, 0x1e; prmt.b32 $0, t, $1, 0x3120; }",
        "=r,r,r",
        [v, v + 1],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out + i, r)


@triton.jit
def debug(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.device_print("value", v)
    tl.device_assert(v >= 0, "negative")
    tl.store(out + i, v, mask=i < n)


F32 = {"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": 1024}
BUILDS = {
    "add_f32": (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": 1024}, {}),
    "add_f16": (add, {"x": "*fp16", "y": "*fp16", "out": "*fp16", "n": "i32:16", "BLOCK": 2048}, {"num_warps": 8}),
    "add_wide": (add, {"x": "*fp64", "y": "*fp64", "out": "*fp64", "n": "i64:16", "BLOCK": 1024}, {}),
    "gelu_bf16": (gelu, {"x": "*bf16", "out": "*bf16", "n": "i32:16", "BLOCK": 512}, {}),
    "dropout": (dropout, {"x": "*fp32", "out": "*fp32", "n": "i32", "p": "fp32", "seed": "i32", "BLOCK": 512}, {}),
    "math_f32": (math, F32, {}),
    "math_f64": (math, {"x": "*fp64", "out": "*fp64", "n": "i32", "BLOCK": 128}, {}),
    "integers": (integers, {"x": "*i32", "out": "*i8", "n": "i64", "BLOCK": 512}, {}),
    "cast_fp8": (
        cast,
        {"x": "*fp32", "out": "*fp8e4nv", "back": "*fp16", "n": "i32:16", "NARROW": tl.float8e4nv, "BLOCK": 1024},
        {},
    ),
    "cast_bf16": (
        cast,
        {"x": "*fp32", "out": "*bf16", "back": "*fp16", "n": "i32:16", "NARROW": tl.bfloat16, "BLOCK": 1024},
        {},
    ),
    "inline": (inline, {"x": "*i32", "out": "*i32", "BLOCK": 256}, {}),
    "debug": (debug, F32, {"debug": True}),
}

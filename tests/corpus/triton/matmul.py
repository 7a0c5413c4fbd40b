"""Matrix products: every type, pipelined pointers, tensor descriptors, warp-specialised loops, scaled formats."""

# make: f16 sm_80 sm_90a sm_100a sm_120a
# make: bf16 sm_80 sm_90a sm_100a
# make: tf32 sm_80 sm_90a sm_100a
# make: tf32x3 sm_80 sm_90a
# make: ieee sm_80
# make: fp8 sm_90a sm_100a sm_120a
# make: int8 sm_80 sm_90a
# make: f64 sm_80
# make: large sm_80 sm_90a sm_100a
# make: split_k sm_80 sm_90a
# make: descriptor sm_90a sm_100a sm_120a
# make: host_descriptor sm_90a sm_100a
# make: persistent sm_90a sm_100a
# make: specialised sm_90a sm_100a
# make: scaled_mxfp4 sm_100a sm_120a
# make: scaled_mxfp8 sm_90a sm_100a
# make: grouped sm_80 sm_90a

import triton
import triton.language as tl


@triton.jit
def swizzled(pid, m_tiles, n_tiles, GROUP: tl.constexpr):
    per_group = GROUP * n_tiles
    first = pid // per_group * GROUP
    size = min(m_tiles - first, GROUP)
    return first + pid % per_group % size, pid % per_group // size


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    am,
    bk,
    cm,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    PRECISION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
):
    pid_m, pid_n = swizzled(tl.program_id(0), tl.cdiv(m, M), tl.cdiv(n, N), 8)
    rm = (pid_m * M + tl.arange(0, M)) % m
    rn = (pid_n * N + tl.arange(0, N)) % n
    rk = tl.arange(0, K)
    pa = a + rm[:, None] * am + rk[None, :]
    pb = b + rk[:, None] * bk + rn[None, :]
    acc = tl.zeros((M, N), dtype=ACCUMULATOR)
    for i in range(tl.cdiv(k, K)):
        va = tl.load(pa, mask=rk[None, :] < k - i * K, other=0.0)
        vb = tl.load(pb, mask=rk[:, None] < k - i * K, other=0.0)
        acc = tl.dot(
            va,
            vb,
            acc,
            input_precision="tf32" if PRECISION == 0 else ("tf32x3" if PRECISION == 1 else "ieee"),
            out_dtype=ACCUMULATOR,
        )
        pa += K
        pb += K * bk
    om = pid_m * M + tl.arange(0, M)
    on = pid_n * N + tl.arange(0, N)
    tl.store(c + om[:, None] * cm + on[None, :], acc.to(c.dtype.element_ty), mask=(om < m)[:, None] & (on < n)[None, :])


@triton.jit
def split_k(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SPLIT: tl.constexpr):
    rm = tl.program_id(0) * M + tl.arange(0, M)
    rn = tl.program_id(1) * N + tl.arange(0, N)
    rk = tl.program_id(2) * K + tl.arange(0, K)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, k, K * SPLIT):
        acc += tl.dot(tl.load(a + rm[:, None] * k + rk[None, :]), tl.load(b + rk[:, None] * n + rn[None, :]))
        rk += K * SPLIT
    tl.atomic_add(c + rm[:, None] * n + rn[None, :], acc, mask=(rm < m)[:, None] & (rn < n)[None, :], sem="relaxed")


@triton.jit
def descriptor(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    da = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[M, K])
    db = tl.make_tensor_descriptor(b, shape=[n, k], strides=[k, 1], block_shape=[N, K])
    dc = tl.make_tensor_descriptor(c, shape=[m, n], strides=[n, 1], block_shape=[M, N])
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    acc = tl.zeros((M, N), dtype=tl.float32)
    for i in range(0, k, K):
        acc = tl.dot(da.load([row, i]), db.load([column, i]).T, acc)
    dc.store([row, column], acc.to(tl.float16))


@triton.jit
def host_descriptor(da, db, dc, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    acc = tl.zeros((M, N), dtype=tl.float32)
    for i in range(0, k, K):
        acc = tl.dot(da.load([row, i]), db.load([i, column]), acc)
    dc.store([row, column], acc.to(tl.float16))


@triton.jit
def persistent(
    da,
    db,
    dc,
    m,
    n,
    k,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    PROGRAMS: tl.constexpr,
    SPECIALISE: tl.constexpr,
):
    m_tiles = tl.cdiv(m, M)
    n_tiles = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), m_tiles * n_tiles, PROGRAMS, flatten=True, warp_specialize=SPECIALISE):
        pid_m, pid_n = swizzled(tile, m_tiles, n_tiles, 8)
        acc = tl.zeros((M, N), dtype=tl.float32)
        for i in range(0, k, K):
            acc = tl.dot(da.load([pid_m * M, i]), db.load([pid_n * N, i]).T, acc)
        dc.store([pid_m * M, pid_n * N], acc.to(tl.float16))


@triton.jit
def scaled(a, sa, b, sb, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FOUR: tl.constexpr):
    PACK: tl.constexpr = 2 if FOUR else 1
    rm = tl.program_id(0) * M + tl.arange(0, M)
    rn = tl.program_id(1) * N + tl.arange(0, N)
    ra = tl.arange(0, K // PACK)
    rs = tl.arange(0, K // 32)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for i in range(0, k, K):
        va = tl.load(a + rm[:, None] * (k // PACK) + i // PACK + ra[None, :])
        vb = tl.load(b + rn[None, :] * (k // PACK) + i // PACK + ra[:, None])
        va_scale = tl.load(sa + rm[:, None] * (k // 32) + i // 32 + rs[None, :])
        vb_scale = tl.load(sb + rn[:, None] * (k // 32) + i // 32 + rs[None, :])
        acc = tl.dot_scaled(va, va_scale, "e2m1" if FOUR else "e4m3", vb, vb_scale, "e2m1" if FOUR else "e4m3", acc)
    tl.store(c + rm[:, None] * 4096 + rn[None, :], acc)


@triton.jit
def grouped(pointers_a, pointers_b, pointers_c, sizes, groups, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    tile = tl.program_id(0)
    last = 0
    for g in range(groups):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        n_tiles = tl.cdiv(n, N)
        tiles = tl.cdiv(m, M) * n_tiles
        while tile >= last and tile < last + tiles:
            a = tl.load(pointers_a + g).to(tl.pointer_type(tl.float16))
            b = tl.load(pointers_b + g).to(tl.pointer_type(tl.float16))
            c = tl.load(pointers_c + g).to(tl.pointer_type(tl.float16))
            rm = (tile - last) // n_tiles * M + tl.arange(0, M)
            rn = (tile - last) % n_tiles * N + tl.arange(0, N)
            rk = tl.arange(0, K)
            acc = tl.zeros((M, N), dtype=tl.float32)
            for i in range(0, k, K):
                acc += tl.dot(
                    tl.load(a + rm[:, None] * k + rk[None, :] + i), tl.load(b + (rk[:, None] + i) * n + rn[None, :])
                )
            tl.store(c + rm[:, None] * n + rn[None, :], acc.to(tl.float16))
            tile += tl.num_programs(0)
        last += tiles


def product(type, out, M, N, K, precision=0, accumulator=tl.float32, **options):
    """The table entry for `matmul` on one type."""
    sizes = {"m": "i32", "n": "i32", "k": "i32", "am": "i32:16", "bk": "i32:16", "cm": "i32:16"}
    arguments = (
        {"a": type, "b": type, "c": out}
        | sizes
        | {"M": M, "N": N, "K": K, "PRECISION": precision, "ACCUMULATOR": accumulator}
    )
    return matmul, arguments, options


TILES = {"M": 128, "N": 128, "K": 64}
SIZES = {"m": "i32:16", "n": "i32:16", "k": "i32:16"}
DESCRIPTORS = {"da": "tensordesc<fp16[128, 64]>", "db": "tensordesc<fp16[128, 64]>", "dc": "tensordesc<fp16[128, 128]>"}
BUILDS = {
    "f16": product("*fp16", "*fp16", 64, 64, 32, num_stages=3),
    "bf16": product("*bf16", "*fp32", 64, 128, 32, num_stages=3),
    "tf32": product("*fp32", "*fp32", 64, 64, 32, num_stages=2),
    "tf32x3": product("*fp32", "*fp32", 32, 32, 16, precision=1, num_stages=2),
    "ieee": product("*fp32", "*fp32", 32, 32, 16, precision=2, num_stages=2),
    "fp8": product("*fp8e4nv", "*fp16", 64, 128, 64, num_stages=3),
    "int8": product("*i8", "*i32", 64, 64, 64, accumulator=tl.int32),
    "f64": product("*fp64", "*fp64", 32, 32, 16, precision=2, accumulator=tl.float64, num_stages=2),
    "large": product("*fp16", "*fp16", 128, 256, 64, num_stages=3, num_warps=8),
    "split_k": (
        split_k,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", **SIZES, "M": 64, "N": 64, "K": 32, "SPLIT": 4},
        {},
    ),
    "descriptor": (descriptor, {"a": "*fp16", "b": "*fp16", "c": "*fp16", **SIZES, **TILES}, {"num_stages": 3}),
    "host_descriptor": (
        host_descriptor,
        {**DESCRIPTORS, "db": "tensordesc<fp16[64, 128]>", "k": "i32:16", **TILES},
        {"num_warps": 8, "num_stages": 4},
    ),
    "persistent": (
        persistent,
        {**DESCRIPTORS, **SIZES, **TILES, "PROGRAMS": 132, "SPECIALISE": False},
        {"num_warps": 8, "num_stages": 3},
    ),
    "specialised": (
        persistent,
        {**DESCRIPTORS, **SIZES, **TILES, "PROGRAMS": 148, "SPECIALISE": True},
        {"num_warps": 4, "num_stages": 3},
    ),
    "scaled_mxfp4": (
        scaled,
        {
            "a": "*u8",
            "sa": "*u8",
            "b": "*u8",
            "sb": "*u8",
            "c": "*fp32",
            "k": "i32:16",
            "M": 128,
            "N": 128,
            "K": 128,
            "FOUR": True,
        },
        {},
    ),
    "scaled_mxfp8": (
        scaled,
        {
            "a": "*fp8e4nv",
            "sa": "*u8",
            "b": "*fp8e4nv",
            "sb": "*u8",
            "c": "*fp32",
            "k": "i32:16",
            "M": 128,
            "N": 128,
            "K": 128,
            "FOUR": False,
        },
        {},
    ),
    "grouped": (
        grouped,
        {
            "pointers_a": "*i64",
            "pointers_b": "*i64",
            "pointers_c": "*i64",
            "sizes": "*i32",
            "groups": "i32",
            "M": 64,
            "N": 64,
            "K": 32,
        },
        {},
    ),
}

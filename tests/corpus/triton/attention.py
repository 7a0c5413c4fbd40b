"""Attention: forward with online softmax, causal, decoding with a paged cache, and the gradient of the values."""

# make: forward sm_80 sm_90a sm_100a sm_120a
# make: forward_causal sm_80 sm_90a sm_100a
# make: forward_fp8 sm_90a sm_100a
# make: forward_descriptor sm_90a sm_100a
# make: forward_specialised sm_100a
# make: decode sm_80 sm_90a
# make: gradient sm_80 sm_90a

import triton
import triton.language as tl


@triton.jit
def forward(
    q,
    k,
    v,
    out,
    stride,
    length,
    scale,
    M: tl.constexpr,
    N: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    STAGES: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * length * stride
    rm = tl.program_id(0) * M + tl.arange(0, M)
    rn = tl.arange(0, N)
    rd = tl.arange(0, D)
    vq = tl.load(q + base + rm[:, None] * stride + rd[None, :])
    largest = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    end = (tl.program_id(0) + 1) * M if CAUSAL else length
    for n0 in tl.range(0, end, N, num_stages=STAGES):
        at = n0 + rn
        vk = tl.load(k + base + at[None, :] * stride + rd[:, None])
        s = tl.dot(vq, vk) * scale
        if CAUSAL:
            s = tl.where(rm[:, None] >= at[None, :], s, -1.0e6)
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        shrink = tl.math.exp2(largest - new)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        vv = tl.load(v + base + at[:, None] * stride + rd[None, :])
        acc = tl.dot(p.to(vv.dtype), vv, acc)
        largest = new
    tl.store(out + base + rm[:, None] * stride + rd[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def forward_descriptor(
    dq, dk, dv, do, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, SPECIALISE: tl.constexpr
):
    row = tl.program_id(1) * length + tl.program_id(0) * M
    vq = dq.load([row, 0])
    largest = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    for n0 in tl.range(0, length, N, warp_specialize=SPECIALISE):
        vk = dk.load([tl.program_id(1) * length + n0, 0]).T
        s = tl.dot(vq, vk) * scale
        new = tl.maximum(largest, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        shrink = tl.math.exp2(largest - new)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(tl.float16), dv.load([tl.program_id(1) * length + n0, 0]), acc)
        largest = new
    do.store([row, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def decode(
    q, cache_k, cache_v, pages, lengths, out, scale, PAGE: tl.constexpr, D: tl.constexpr, MAX_PAGES: tl.constexpr
):
    b = tl.program_id(0)
    rd = tl.arange(0, D)
    rp = tl.arange(0, PAGE)
    vq = tl.load(q + b * D + rd).to(tl.float32)
    length = tl.load(lengths + b)
    largest = -float("inf")
    total = 0.0
    acc = tl.zeros([D], tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(pages + b * MAX_PAGES + i).to(tl.int64)
        at = (page * PAGE + rp)[:, None] * D + rd[None, :]
        inside = i * PAGE + rp < length
        vk = tl.load(cache_k + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(vq[None, :] * vk, 1) * scale, -float("inf"))
        new = tl.maximum(largest, tl.max(s, 0))
        p = tl.exp(s - new)
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, 0)
        vv = tl.load(cache_v + at, mask=inside[:, None], other=0.0).to(tl.float32)
        acc = acc * shrink + tl.sum(p[:, None] * vv, 0)
        largest = new
    tl.store(out + b * D + rd, (acc / total).to(out.dtype.element_ty))


@triton.jit
def gradient(q, k, v, dout, logsum, delta, dk, dv, length, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * length * D
    rn = tl.program_id(0) * N + tl.arange(0, N)
    rd = tl.arange(0, D)
    at_n = base + rn[:, None] * D + rd[None, :]
    vk = tl.load(k + at_n)
    vv = tl.load(v + at_n)
    acc_k = tl.zeros([N, D], tl.float32)
    acc_v = tl.zeros([N, D], tl.float32)
    for m0 in range(0, length, M):
        rm = m0 + tl.arange(0, M)
        at_m = base + rm[:, None] * D + rd[None, :]
        vq = tl.load(q + at_m)
        p = tl.math.exp2(tl.dot(vk, tl.trans(vq)) * scale - tl.load(logsum + tl.program_id(1) * length + rm)[None, :])
        vo = tl.load(dout + at_m)
        acc_v += tl.dot(p.to(tl.float16), vo)
        ds = p * (tl.dot(vv, tl.trans(vo)) - tl.load(delta + tl.program_id(1) * length + rm)[None, :])
        acc_k += tl.dot(ds.to(tl.float16), vq)
    tl.store(dk + at_n, (acc_k * scale).to(tl.float16))
    tl.store(dv + at_n, acc_v.to(tl.float16))


def attention(type, D=64, M=64, N=64, causal=False, **options):
    """The table entry for `forward` on one type."""
    arguments = {
        "q": type,
        "k": type,
        "v": type,
        "out": "*fp16",
        "stride": "i32:16",
        "length": "i32:16",
        "scale": "fp32",
    }
    return forward, arguments | {"M": M, "N": N, "D": D, "CAUSAL": causal, "STAGES": 2}, options


def described(specialise, **options):
    """The table entry for `forward_descriptor`."""
    arguments = {
        "dq": "tensordesc<fp16[128, 64]>",
        "dk": "tensordesc<fp16[64, 64]>",
        "dv": "tensordesc<fp16[64, 64]>",
        "do": "tensordesc<fp16[128, 64]>",
    }
    return (
        forward_descriptor,
        arguments | {"length": "i32:16", "scale": "fp32", "M": 128, "N": 64, "D": 64, "SPECIALISE": specialise},
        options,
    )


BUILDS = {
    "forward": attention("*fp16"),
    "forward_causal": attention("*bf16", D=128, causal=True, num_warps=8),
    "forward_fp8": attention("*fp8e4nv", M=128),
    "forward_descriptor": described(False, num_stages=3),
    "forward_specialised": described(True, num_stages=3),
    "decode": (
        decode,
        {
            "q": "*fp16",
            "cache_k": "*fp16",
            "cache_v": "*fp16",
            "pages": "*i32",
            "lengths": "*i32",
            "out": "*fp16",
            "scale": "fp32",
            "PAGE": 16,
            "D": 128,
            "MAX_PAGES": 64,
        },
        {},
    ),
    "gradient": (
        gradient,
        {
            "q": "*fp16",
            "k": "*fp16",
            "v": "*fp16",
            "dout": "*fp16",
            "logsum": "*fp32",
            "delta": "*fp32",
            "dk": "*fp16",
            "dv": "*fp16",
            "length": "i32:16",
            "scale": "fp32",
            "M": 32,
            "N": 64,
            "D": 64,
        },
        {"num_stages": 2},
    ),
}

"""Submissions for the four NVFP4 problems: a right one, a slow one, a racy one, a wrong one and one that cheats."""

from __future__ import annotations

COMMON = """
typedef unsigned char u8;
typedef unsigned short half_bits;
__device__ float e2m1(unsigned c) { float v = c & 4 ? (2 + (c & 1)) << ((c & 2) >> 1) : 0.5f * (c & 3);
                                    return c & 8 ? -v : v; }
__device__ float e4m3(u8 c) { int e = c >> 3 & 15, m = c & 7;
                              return e ? __int_as_float((e + 120) << 23 | m << 20) : m * 0.001953125f; }
__device__ half_bits rounded(float x) { half_bits h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
__device__ float factor(const u8* f, int row, int group, int k) {
    return e4m3(f[(row / 128 * ((k + 63) / 64) + group / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + group % 4]);
}
__device__ float dot(const u8* a, const u8* fa, int i, const u8* b, const u8* fb, int j, int k) {
    float total = 0;
    for (int group = 0; group < k / 16; ++group) {
        float sum = 0;
        for (int byte = 8 * group; byte < 8 * group + 8; ++byte) {
            u8 x = a[i * (k / 2) + byte], y = b[j * (k / 2) + byte];
            sum += e2m1(x & 15) * e2m1(y & 15) + e2m1(x >> 4) * e2m1(y >> 4);
        }
        total += sum * factor(fa, i, group, k) * factor(fb, j, group, k);
    }
    return total;
}
"""
TARGET = "// target: sm_100a\n"

GEMV = (
    TARGET
    + "// launch: gemv grid=m,l block=32 args=a,a_factors,x,x_factors,y,m,k\n"
    + COMMON
    + """
extern "C" __global__ void gemv(const u8* a, const u8* fa, const u8* x, const u8* fx, half_bits* y, int m, int k) {
    __shared__ float sums[32];
    int row = blockIdx.y * m + blockIdx.x, lane = threadIdx.x;
    float total = 0;
    for (int group = lane; group < k / 16; group += 32) {
        float sum = 0;
        for (int byte = 8 * group; byte < 8 * group + 8; ++byte) {
            u8 p = a[row * (k / 2) + byte], q = x[blockIdx.y * (k / 2) + byte];
            sum += e2m1(p & 15) * e2m1(q & 15) + e2m1(p >> 4) * e2m1(q >> 4);
        }
        total += sum * e4m3(fa[row * (k / 16) + group]) * e4m3(fx[blockIdx.y * (k / 16) + group]);
    }
    sums[lane] = total;
    __syncthreads();
    if (lane == 0) {
        for (int i = 1; i < 32; ++i) total += sums[i];
        y[row] = rounded(total);
    }
}
"""
)
SLOW_GEMV = (
    TARGET
    + "// launch: gemv grid=ceil_div(m, 32),l block=32 args=a,a_factors,x,x_factors,y,m,k\n"
    + COMMON
    + """
extern "C" __global__ void gemv(const u8* a, const u8* fa, const u8* x, const u8* fx, half_bits* y, int m, int k) {
    int at = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * m + at;
    if (at >= m) return;
    float total = 0;
    for (int byte = 0; byte < k / 2; ++byte) {
        u8 p = a[row * (k / 2) + byte], q = x[blockIdx.y * (k / 2) + byte];
        float sum = e2m1(p & 15) * e2m1(q & 15) + e2m1(p >> 4) * e2m1(q >> 4);
        total += sum * e4m3(fa[row * (k / 16) + byte / 8]) * e4m3(fx[blockIdx.y * (k / 16) + byte / 8]);
    }
    y[row] = rounded(total);
}
"""
)
GEMM = (
    TARGET
    + "// launch: gemm grid=ceil_div(n, 128),m block=128 args=a,a_factors,b,b_factors,d,n,k\n"
    + COMMON
    + """
extern "C" __global__ void gemm(const u8* a, const u8* fa, const u8* b, const u8* fb, half_bits* d, int n, int k) {
    int i = blockIdx.y, j = blockIdx.x * 128 + threadIdx.x;
    if (j < n) d[i * n + j] = rounded(dot(a, fa, i, b, fb, j, k));
}
"""
)
DUAL = TARGET + ("// launch: dual grid=ceil_div(n, 128),m block=128 "
                 "args=a,a_factors,b1,b1_factors,b2,b2_factors,d,n,k\n") + COMMON + """
extern "C" __global__ void dual(const u8* a, const u8* fa, const u8* b, const u8* fb, const u8* c, const u8* fc,
                                half_bits* d, int n, int k) {
    int i = blockIdx.y, j = blockIdx.x * 128 + threadIdx.x;
    if (j >= n) return;
    float x = dot(a, fa, i, b, fb, j, k), y = dot(a, fa, i, c, fc, j, k);
    d[i * n + j] = rounded(x / (1 + __expf(-x)) * y);
}
"""  # fmt: skip
GROUP = TARGET + "".join(
    f"// launch: gemm grid=ceil_div(n, 128),m{i} block=128 args=a{i},a{i}_factors,b{i},b{i}_factors,d{i},n,k\n"
    for i in range(2)
) + GEMM.partition("block=128 args=a,a_factors,b,b_factors,d,n,k\n")[2]  # fmt: skip

# The row of A is decoded once for a block, into shared memory; the barrier after it is left out.
RACY = """
    __shared__ float row[320];
    for (int at = threadIdx.x; at < k; at += 128) row[at] = e2m1(a[blockIdx.y * (k / 2) + at / 2] >> 4 * (at & 1) & 15)
        * factor(fa, blockIdx.y, at / 16, k);
    {barrier}
"""
STAGED = """
__device__ float staged(const float* row, const u8* b, const u8* fb, int j, int k) {
    float total = 0;
    for (int at = 0; at < k; ++at) total += row[at] * e2m1(b[j * (k / 2) + at / 2] >> 4 * (at & 1) & 15)
        * factor(fb, j, at / 16, k);
    return total;
}
extern "C" """


def racy(text: str, barrier: str = "") -> str:
    """A kernel that stages rows without a barrier, or with one."""
    text = text.replace('extern "C" ', STAGED, 1).replace(
        "    int i = blockIdx.y", RACY.replace("{barrier}", barrier) + "    int i = blockIdx.y", 1
    )
    return text.replace("dot(a, fa, i, b, fb, j, k)", "staged(row, b, fb, j, k)").replace(
        "dot(a, fa, i, c, fc, j, k)", "staged(row, c, fc, j, k)"
    )


RIGHT = {
    "nvfp4_gemv": """
from ptxlab.kernels.nvfp4_gemv import product
def launch(a, a_factors, x, x_factors, y):
    return product(a, a_factors, x, x_factors, y)
""",
    "nvfp4_gemm": """
from ptxlab.kernels.nvfp4_gemm import product
def launch(a, a_factors, b, b_factors, d):
    return product(a, a_factors, b, b_factors, d)
""",
    "nvfp4_dual_gemm": """
from ptxlab.kernels.nvfp4_dual_gemm import product
def launch(a, a_factors, b1, b1_factors, b2, b2_factors, d):
    return product(a, a_factors, b1, b1_factors, b2, b2_factors, d)
""",
    "nvfp4_group_gemm": """
from ptxlab.kernels.nvfp4_group_gemm import product
def launch(a0, a0_factors, b0, b0_factors, d0, a1, a1_factors, b1, b1_factors, d1):
    return product(a0=a0, a_factors0=a0_factors, b0=b0, b_factors0=b0_factors, d0=d0,
                   a1=a1, a_factors1=a1_factors, b1=b1, b_factors1=b1_factors, d1=d1)
""",
}
NIBBLES = ("e2m1(x & 15) * e2m1(y & 15)", "e2m1(x & 15) * e2m1(y >> 4)")

# By problem and kind: the suffix, the text, the status, and a code that is named.
SUBMISSIONS: dict[tuple[str, str], tuple[str, str, str, str | None]] = {
    **{(name, "right"): (".py", text, "accepted", None) for name, text in RIGHT.items()},
    ("nvfp4_gemv", "slow"): (".cu", SLOW_GEMV, "slow", None),
    ("nvfp4_gemm", "slow"): (".cu", GEMM, "slow", None),
    ("nvfp4_dual_gemm", "slow"): (".cu", DUAL, "slow", None),
    ("nvfp4_group_gemm", "slow"): (".cu", GROUP, "slow", None),
    ("nvfp4_gemv", "racy"): (".cu", GEMV.replace("    __syncthreads();\n", ""), "rejected", "data-race"),
    ("nvfp4_gemm", "racy"): (".cu", racy(GEMM), "rejected", "data-race"),
    ("nvfp4_dual_gemm", "racy"): (".cu", racy(DUAL), "rejected", "data-race"),
    ("nvfp4_group_gemm", "racy"): (".cu", racy(GROUP), "rejected", "data-race"),
    ("nvfp4_gemv", "wrong"): (".cu", GEMV.replace("k / 16; group += 32", "k / 16 - 1; group += 32"), "rejected",
                              "wrong-values"),
    ("nvfp4_gemm", "wrong"): (".cu", GEMM.replace(*NIBBLES), "rejected", "wrong-values"),
    ("nvfp4_dual_gemm", "wrong"): (".cu", DUAL.replace("__expf(-x)", "__expf(x)"), "rejected", "wrong-values"),
    ("nvfp4_group_gemm", "wrong"): (".cu", GROUP.replace("factor(fb, j,", "factor(fb, 0,"), "rejected", "wrong-values"),
    ("nvfp4_gemv", "cheat"): (".cu", GEMV.replace("        y[row] =", "        if (m != 32) total = 0;\n        y[row] ="),
                              "rejected", "known-sizes-only"),
    ("nvfp4_gemm", "cheat"): (".cu", GEMM.replace("if (j < n)", "if (j < n && i < 128 && j < 128)"), "rejected",
                              "skipped-tail"),
    ("nvfp4_dual_gemm", "cheat"): (".cu", DUAL.replace('extern "C"', '__device__ int done[140 * 136];\nextern "C"', 1).replace(
        "    float x =", "    if (done[i * n + j]) return;\n    done[i * n + j] = 1;\n    float x ="), "rejected", "cached-result"),
    ("nvfp4_group_gemm", "cheat"): (".cu", "\n".join(line for line in GROUP.splitlines() if "m1 block" not in line),
                                    "rejected", "stale-memory"),
}  # fmt: skip

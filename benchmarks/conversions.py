"""What it costs to make f16 of e4m3, by the instruction or by arithmetic, in a product of a matrix and a vector.

    python benchmarks/conversions.py [FILE]        writes evidence/conversions.json, needs torch and a GPU from sm_89

    python benchmarks/conversions.py --targets     writes evidence/conversion_targets.json, needs NVRTC and no GPU

One kernel in CUDA C++ with the intrinsic for a pair, compiled for sm_80, which has no such instruction, and for
sm_90a; and one in Python, by `cvt` and by a multiplication of shifted bits, which is exact but for NaN.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.author import b16, b32, f16, f16x2, f32, kernel, pointer, ptx, u32
from ptxlab.launch.launches import Arrays, Launch
from ptxlab.measure import Draw, Entry, Work, measure
from ptxlab.toolchain import compile_cuda
from ptxlab.toolchain.tools import find

ROOT = Path(__file__).resolve().parent.parent
WARPS = 8
EACH = 16  # numbers that a lane reads at a time
CUDA = """#include <cuda_fp8.h>
extern "C" __global__ void __launch_bounds__(256) gemv(const uint4* a, const uint4* x, float* y, unsigned k) {
    unsigned lane = threadIdx.x % 32, row = blockIdx.x * 8 + threadIdx.x / 32;
    const uint4* own = a + (size_t)row * (k / 16);
    __half2 total = __floats2half2_rn(0.0f, 0.0f);
    for (unsigned at = lane; at < k / 16; at += 32) {
        uint4 words = own[at], factors[2] = {x[2 * at], x[2 * at + 1]};
        const unsigned short* pairs = (const unsigned short*)&words;
        const __half2* others = (const __half2*)factors;
        for (int i = 0; i < 8; ++i)
            total = __hfma2(__half2(__nv_cvt_fp8x2_to_halfraw2(pairs[i], __NV_E4M3)), others[i], total);
    }
    float sum = __low2float(total) + __high2float(total);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0) y[row] = sum;
}"""


HEADERS = "#include <cuda_fp8.h>\n#include <cuda_fp4.h>\n"
CALL = """extern "C" __global__ void k(const unsigned short* in, __half2_raw* out) { out[threadIdx.x] = CALL; }"""
COPY = (
    """extern "C" __global__ void k(const unsigned short* in, unsigned* out) { out[threadIdx.x] = in[threadIdx.x]; }"""
)
INTRINSICS = {"__nv_cvt_fp8x2_to_halfraw2": "__NV_E4M3", "__nv_cvt_fp4x2_to_halfraw2": "__NV_E2M1"}


def by_instruction(pair: Any) -> Any:
    """Two e4m3 as two f16."""
    return ptx.cvt.rn.f16x2.e4m3x2(pair)


def by_shifts(pair: Any) -> Any:
    """The same: as bits of f16 they are 2⁸ times too small, which one multiplication mends. NaN becomes 480."""
    word = ptx.mov.b32((pair, b16(0)))
    spread = ptx.prmt.b32(word, 0, 0x1404)  # each byte in the upper half of a half
    magnitude = ptx.shr.b32(ptx.and_.b32(spread, 0x7F007F00), 1)
    bits = ptx.or_.b32(ptx.and_.b32(spread, 0x80008000), magnitude)
    return ptx.mul.rn.f16x2(bits.view(f16x2), b32(0x5C005C00).view(f16x2))


CONVERSIONS: dict[str, Callable[[Any], Any]] = {"cvt": by_instruction, "shifts": by_shifts}


@kernel(target="sm_89", maxntid=32 * WARPS)
def gemv(a: pointer[b32], x: pointer[b32], y: pointer[f32], k: u32, *, by: str) -> None:
    """A row for each warp, sixteen numbers for a lane at a time; sums in f16x2."""
    lane, row = ptx.laneid, ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)
    own = a.at(ptx.mul.wide.u32(row, k // 4)).v4
    total = b32(0).view(f16x2)
    for at in ptx.range(lane, k // EACH, 32):
        words, factors = own[at], [*x.v4[at * 2], *x.v4[at * 2 + 1]]
        pairs = [pair for word in words for pair in ptx.mov.b32(word, out=(b16(), b16()))]
        for pair, factor in zip(pairs, factors, strict=True):
            ptx.fma.rn.f16x2(CONVERSIONS[by](pair), factor.view(f16x2), total, out=total)
    low, high = (ptx.cvt.f32.f16(half) for half in ptx.mov.b32(total, out=(f16(), f16())))
    found = low + high
    for step in (16, 8, 4, 2, 1):
        ptx.add.rn.f32(found, ptx.shfl.sync.bfly.b32(found, step, 31, -1, out=f32()), out=found)
    with ptx.when(lane == 0):
        y[row] = found


@cache
def by_intrinsic(target: str) -> Any:
    """The kernel in CUDA C++; where there is no NVRTC, `PTXLAB_CONVERSIONS` is a folder with its PTX."""
    folder = os.environ.get("PTXLAB_CONVERSIONS")
    text = (Path(folder) / f"{target}.ptx").read_text() if folder else compile_cuda(CUDA, target, name="gemv.cu").text
    assert text is not None
    return ptxlab.parse(text, f"{target}.ptx")["gemv"]


def product(a: Any, x: Any, y: Any, kernel: Callable[[], Any]) -> Launch:
    m, k = a.shape
    assert m % WARPS == 0
    assert k % EACH == 0
    return Launch(kernel(), m // WARPS, 32 * WARPS, [a, x, y, k])


def arrays(draw: Draw, m: int, k: int) -> Arrays:
    """Numbers whose sums are exact in f16."""
    return {
        "a": draw.integers((m, k), "e4m3", -1, 2), "x": draw.integers((k,), "f16", -1, 2), "y": draw.empty((m,), "f32"),
    }  # fmt: skip


entry = Entry(
    title="y = A x, A in e4m3 and x in f16",
    arrays=arrays,
    reference=lambda xp, a, x, y: {"y": a @ x},
    work=lambda m, k: Work(2 * m * k, m * k, "f32 arithmetic"),
    variants={
        **{name: partial(product, kernel=lambda name=name: gemv.specialize(by=name)) for name in CONVERSIONS},
        **{
            f"intrinsic, {target}": partial(product, kernel=lambda target=target: by_intrinsic(target))
            for target in ("sm_80", "sm_90a")
        },
    },
    sizes=[{"m": 4096, "k": 8192}, {"m": 65536, "k": 8192}],
    small=[{"m": 8, "k": 1024}],
    tolerance=0,
    baseline="cvt",
)


def targets() -> None:
    """Count the instructions that the intrinsics for a pair become, for several targets."""
    found: dict[str, dict[str, int]] = {}
    for name, type in INTRINSICS.items():
        source = HEADERS + CALL.replace("CALL", f"{name}(in[threadIdx.x], {type})")
        found[name] = {}
        for target in ("sm_80", "sm_90a", "sm_100", "sm_100f", "sm_100a"):
            text = compile_cuda(source, target, name="k.cu").text
            assert text is not None
            # Besides the conversion there are an address, a load and a store, which a kernel that copies has as well.
            found[name][target] = count(text) - count(compile_cuda(COPY, target, name="k.cu").text or "")
    about = {"command": "python benchmarks/conversions.py --targets", "compiler": f"NVRTC {find('nvrtc').version}"}
    path = ROOT / "evidence" / "conversion_targets.json"
    path.write_text(json.dumps({**about, "instructions": found}, indent=1) + "\n", encoding="utf-8")


def count(text: str) -> int:
    """The instructions of a kernel."""
    module = ptxlab.parse(text)
    return sum(1 for _ in module[module.entries[0]].instructions())


def main() -> None:
    if sys.argv[1:] == ["--targets"]:
        targets()
        return
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "conversions.json"
    measure("conversions", entry, rounds=21).write(path)


if __name__ == "__main__":
    main()

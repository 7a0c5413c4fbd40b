"""What a GPU's function unit computes: all results of 2**32 inputs a function, measured and kept small.

    PYTHONPATH=src:. python3 -m tests.gpu.function_unit FOLDER

Needs CuPy; an H200 takes a minute. The inputs of a function are 512 chunks of 2**23 patterns in a row. The differences
between neighbouring results compress well and are the same in many chunks: FOLDER/chunks.xz holds every sequence of
differences once, FOLDER/index.json says which of them each chunk has, and its first result. What comes of them is in
`tests.numbers.coefficients`.
"""

import argparse
import json
import lzma
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.gpu.hardware import devices, driver_release
from ptxlab.toolchain import assemble, find

Words = npt.NDArray[np.uint32]

CHUNKS, CHUNK = 512, 1 << 23
BLOCK = 256
# An operand of 32 bits, which the kernel has in %r1, and a result of 32 bits, which it leaves in %r2.
SINGLE = "mov.b32 %f1, %r1; {0} %f2, %f1; mov.b32 %r2, %f2;"
UPPER = "mov.b64 %d1, {{%r3, %r1}}; {0} %d2, %d1; mov.b64 {{%r4, %r2}}, %d2;"
HALF = "cvt.u16.u32 %h1, %r1; {0} %h2, %h1; cvt.u32.u16 %r2, %h2;"
SINGLES = (
    "rcp.approx.ftz.f32", "rcp.approx.f32", "rsqrt.approx.ftz.f32", "rsqrt.approx.f32", "sqrt.approx.ftz.f32",
    "sqrt.approx.f32", "ex2.approx.ftz.f32", "ex2.approx.f32", "lg2.approx.ftz.f32", "lg2.approx.f32",
    "tanh.approx.f32",
)  # fmt: skip
# The unit's own sine and cosine, of turns: `sin.approx` with 1 in place of the factor that makes turns of an angle.
WAVES = {"MUFU.SIN": "sin.approx.ftz.f32", "MUFU.COS": "cos.approx.ftz.f32"}
FACTOR, ONE = (0x3E22_F983).to_bytes(4, "little"), (0x3F80_0000).to_bytes(4, "little")
UPPERS = ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64")
HALVES = ("tanh.approx.f16", "tanh.approx.bf16", "ex2.approx.f16", "ex2.approx.ftz.bf16")
KERNEL = """
.visible .entry {name}(.param .u64 results, .param .u32 first)
{{
    .reg .b16 %h<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<3>; .reg .f64 %d<3>;
    ld.param.u64 %rd1, [results];
    ld.param.u32 %r1, [first];
    mov.u32 %r3, 0;
    mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.x; mov.u32 %r7, %tid.x;
    mad.lo.u32 %r8, %r5, %r6, %r7;
    add.u32 %r1, %r1, %r8;
    {body}
    mul.wide.u32 %rd2, %r8, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.b32 [%rd3], %r2;
    ret;
}}
"""


@dataclass
class Measured:
    """What was measured: which differences each chunk of a function has and its first result; all results of halves."""

    machine: dict[str, Any]
    functions: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    halves: dict[str, list[int]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    differences: bytes = b""

    def results(self, function: str, chunk: int) -> Words:
        """The results of the 2**23 inputs from `chunk` << 23 on."""
        number, first = self.functions[function][chunk]
        start = sum(self.sizes[:number])
        packed = self.differences[start : start + self.sizes[number]]
        found = np.empty(CHUNK, np.uint32)
        found[0] = first
        found[1:] = unpack(packed, self.types[number])
        return np.cumsum(found, dtype=np.uint32)


@lru_cache(maxsize=2)
def unpack(packed: bytes, type: str) -> Words:
    """A sequence of differences."""
    return np.frombuffer(lzma.decompress(packed), type).astype(np.int32).view(np.uint32)


def save(measured: Measured, folder: Path) -> None:
    """Keep what was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chunks.xz").write_bytes(measured.differences)
    rest = {name: value for name, value in vars(measured).items() if name != "differences"}
    (folder / "index.json").write_text(json.dumps(rest), encoding="utf-8")


def load(folder: Path) -> Measured:
    """What was kept."""
    rest = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return Measured(**rest, differences=(folder / "chunks.xz").read_bytes())


def source() -> str:
    """A kernel for each function, named after its number."""
    spellings = [(SINGLE, name) for name in (*SINGLES, *WAVES.values())]
    spellings += [(UPPER, name) for name in UPPERS] + [(HALF, name) for name in HALVES]
    kernels = [KERNEL.format(name=kernel_name(name), body=body.format(name)) for body, name in spellings]
    return ".version 8.0\n.target sm_90\n.address_size 64\n" + "".join(kernels)


def kernel_name(spelling: str) -> str:
    return spelling.replace(".", "_")


def measure(only: str) -> Measured:
    """Run every function whose name contains `only`."""
    import cupy

    image = assemble(source(), "sm_90").cubin
    assert image is not None
    assert image.count(FACTOR) == len(WAVES), "ptxas multiplies as expected"
    with tempfile.TemporaryDirectory() as folder:
        (whole, turning) = (Path(folder) / "whole.cubin", Path(folder) / "turning.cubin")
        whole.write_bytes(image)
        turning.write_bytes(image.replace(FACTOR, ONE))
        plain, turns = cupy.RawModule(path=str(whole)), cupy.RawModule(path=str(turning))
        kernels = {name: plain.get_function(kernel_name(name)) for name in (*SINGLES, *UPPERS, *HALVES)}
        kernels |= {name: turns.get_function(kernel_name(spelling)) for name, spelling in WAVES.items()}
    (known, *_) = devices()
    measured = Measured({"gpu": known.name, "driver": driver_release(), "ptxas": find("ptxas").version})
    results = cupy.empty(CHUNK, cupy.uint32)
    weights = cupy.asarray(np.random.default_rng(1).integers(-(1 << 63), (1 << 63) - 1, CHUNK - 1))
    fingerprint = cupy.ReductionKernel(
        "int32 d, int64 w", "int64 s", "(long long)d * w", "a + b", "s = a", "0", "fingerprint"
    )
    seen: dict[tuple[int, int, int], int] = {}
    packed: list[Future[bytes]] = []
    with ThreadPoolExecutor() as pool:
        for name in (name for name in kernels if only in name and name not in HALVES):
            chunks = measured.functions[name] = []
            for chunk in range(CHUNKS):
                kernels[name]((CHUNK // BLOCK,), (BLOCK,), (results, np.uint32(chunk << 23)))
                steps = (results[1:] - results[:-1]).view(cupy.int32)
                facts = (fingerprint(steps, weights), steps.min(), steps.max(), results[0])
                mark, least, most, first = cupy.concatenate(
                    [one.reshape(1).astype(cupy.int64) for one in facts]
                ).tolist()
                if (mark, least, most) not in seen:
                    seen[mark, least, most] = len(seen)
                    type = "|i1" if least >= -128 and most < 128 else "<i4"
                    measured.types.append(type)
                    packed.append(pool.submit(lzma.compress, steps.astype(type).get().tobytes(), preset=2))
                chunks.append((seen[mark, least, most], first))
        for name in (name for name in HALVES if only in name):
            kernels[name](((1 << 16) // BLOCK,), (BLOCK,), (results, np.uint32(0)))
            measured.halves[name] = results[: 1 << 16].tolist()
        parts = [part.result() for part in packed]
    measured.sizes = [len(part) for part in parts]
    measured.differences = b"".join(parts)
    return measured


def main() -> None:
    """Measure and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="functions whose names contain this")
    options = parser.parse_args()
    measured = measure(options.only)
    save(measured, options.folder)
    print(f"{len(measured.functions)} functions, {len(measured.sizes)} sequences, {len(measured.differences):,} bytes")


if __name__ == "__main__":
    main()

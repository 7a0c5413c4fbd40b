"""How fast kernels run without a GPU, as ratios and times within one run.

    python benchmarks/emulator.py [--evidence FILE] [--numba PYTHON] [NAME ...]

prints a line for each bar, or for those of the functions with these names; `--evidence` also writes what it measured to
FILE, `--numba` compares with the CUDA simulator of numba under that Python. The loops in C are compiled by gcc, and
take turns with the emulator, so that a busy machine slows both.
"""

import argparse
import ctypes
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.emulate.translate.compile import runtime_code

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "benchmarks" / "kernels"
DEPTH = 8192


@dataclass(frozen=True)
class Row:
    """One bar: what was measured, and what it may be at most (or, for a speed-up, has to be at least)."""

    name: str
    value: float
    unit: str
    bar: float
    at_least: bool = False
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "" if self.holds else "   MISSED"
        return f"{self.name:62} {self.value:9.2f} {self.unit:7} (bar {sign} {self.bar:g}){verdict}"


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turns(count: int, **actions: Callable[[], Any]) -> dict[str, list[float]]:
    """The times of several actions that take turns, after each has been done once."""
    for action in actions.values():
        action()
    samples: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(count):
        for name, action in actions.items():
            samples[name].append(seconds(action))
    return samples


def ratio(samples: dict[str, list[float]], first: str, second: str) -> float:
    return statistics.median(samples[first]) / statistics.median(samples[second])


def _compiled(folder: Path, name: str, file: str | None = None) -> Callable[..., None]:
    """A function of a file of C, which has its name, that takes arrays, then integers."""
    library = folder / f"{name}.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, KERNELS / f"{file or name}.c"], check=True)
    loops = getattr(ctypes.CDLL(str(library)), name)

    def call(*arguments: np.ndarray | int) -> None:
        loops(*(one if isinstance(one, int) else ctypes.c_void_p(one.ctypes.data) for one in arguments))

    return call


def polynomial(folder: Path) -> list[Row]:
    """24 FMAs a thread, four million threads."""
    count = 1 << 22
    x = np.random.default_rng(0).random(count, np.float32)
    y, plain = np.zeros_like(x), np.zeros_like(x)
    kernel = ptxlab.load(KERNELS / "polynomial.ptx")["polynomial"]
    loops = _compiled(folder, "polynomial")
    how: dict[str, Any] = {"device": "cpu", "workers": 1}
    samples = in_turns(
        7,
        c=lambda: loops(x, plain, count),
        emulator=lambda: kernel.launch(count // 256, 256, [x, y], detectors=False, **how),
        detectors=lambda: kernel.launch(count // 256, 256, [x, y], **how),
    )
    assert np.allclose(y, plain, rtol=1e-5)
    return [
        Row("polynomial against C at gcc -O2", ratio(samples, "emulator", "c"), "times", 0.4, samples=samples),
        Row("the same with all detectors", ratio(samples, "detectors", "c"), "times", 1.0),
    ]


def sgemm(folder: Path, numba: str | None) -> list[Row]:
    """One 32 by 32 block, 8192 deep."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, DEPTH), np.float32), rng.standard_normal((DEPTH, 32), np.float32)
    c, plain = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernel = ptxlab.load(KERNELS / "sgemm.ptx")["sgemm"]
    loops = _compiled(folder, "sgemm")
    samples = in_turns(
        7,
        c=lambda: loops(a, b, plain, 32, DEPTH),
        emulator=lambda: kernel.launch(1, (32, 32), [a, b, c, 32, DEPTH], device="cpu", detectors=False),
        detectors=lambda: kernel.launch(1, (32, 32), [a, b, c, 32, DEPTH], device="cpu"),
    )
    assert np.allclose(c, plain, rtol=1e-3, atol=1e-3)
    rows = [
        Row("SGEMM block against C at gcc -O2", ratio(samples, "emulator", "c"), "times", 0.4, samples=samples),
        Row("the same with all detectors", ratio(samples, "detectors", "c"), "times", 1.0),
    ]
    if numba is not None:
        depth = 16
        command = [numba, str(KERNELS / "simulator.py"), str(depth)]
        result = subprocess.run(
            command, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}, check=True, capture_output=True, text=True
        )
        simulated = float(result.stdout) / depth * DEPTH
        value = simulated / statistics.median(samples["emulator"])
        rows.append(Row("SGEMM block against numba's simulator", value, "times", 1000, at_least=True))
    return rows


def irregular(folder: Path) -> list[Row]:
    """What lanes do not do alike: addresses from data, atomics to 1,024 counters, loops of other lengths."""
    count = 1 << 20
    rng = np.random.default_rng(0)
    x = rng.random(1 << 15, np.float32)
    values = rng.integers(0, 1 << 15, count, np.uint32)
    module = ptxlab.load(KERNELS / "irregular.ptx")
    rows = []
    for name, kernel, inputs, output in (
        ("gathers", "gather", [x, values], np.zeros(count, np.float32)),
        ("atomics", "histogram", [values], np.zeros(1024, np.uint32)),
        ("divergent loops", "collatz", [values], np.zeros(count, np.uint32)),
    ):
        plain, loops = np.zeros_like(output), _compiled(folder, kernel, "irregular")
        given: list[Any] = [*inputs, output]

        def run(detectors: bool, kernel: str = kernel, given: list[Any] = given) -> None:
            module[kernel].launch(count // 256, 256, given, detectors=detectors, device="cpu", workers=1)

        samples = in_turns(
            7,
            c=lambda loops=loops, inputs=inputs, plain=plain: loops(*inputs, plain, count),
            emulator=lambda run=run: run(False),
            detectors=lambda run=run: run(True),
        )
        output[:], plain[:] = 0, 0
        run(False)
        loops(*inputs, plain, count)
        assert np.array_equal(output, plain)
        rows += [
            Row(f"{name} against C at gcc -O2", ratio(samples, "emulator", "c"), "times", 1.2, samples=samples),
            Row("the same with all detectors", ratio(samples, "detectors", "c"), "times", 30),
        ]
    return rows


def least_gathers(folder: Path) -> list[Row]:
    """What gathers take at least: their loop in C with each address compared, and threads that do nothing."""
    count = 1 << 20
    rng = np.random.default_rng(0)
    x, values = rng.random(1 << 15, np.float32), rng.integers(0, 1 << 15, count, np.uint32)
    nothing = ptxlab.load(KERNELS / "irregular.ptx")["nothing"]
    names = ["gather_compared", *(["gather_vectors"] if platform.machine() == "x86_64" else [])]
    plain, found = np.zeros(count, np.float32), {name: np.zeros(count, np.float32) for name in names}
    loops = {name: _compiled(folder, name, "irregular") for name in ("gather", *names)}
    samples = in_turns(
        7,
        nothing=lambda: nothing.launch(count // 256, 256, [], detectors=False, device="cpu", workers=1),
        gather=lambda: loops["gather"](x, values, plain, count),
        **{name: lambda name=name: loops[name](x, values, found[name], count, len(x) - 1) for name in names},
    )
    for name in names:
        assert np.allclose(found[name], plain)
    fastest = min(names, key=lambda name: statistics.median(samples[name]))
    return [
        Row("gathers in C, each address compared", ratio(samples, fastest, "gather"), "times", 1.2, samples=samples),
        Row("as many threads that do nothing", ratio(samples, "nothing", "gather"), "times", 1.2),
    ]


def tensor_cores() -> list[Row]:
    """512 by 512 by 512 by `mma.sync` with `cp.async` and `ldmatrix`."""
    size = 512
    kernel = ptxlab.load(ROOT / "tests" / "emulate" / "kernels" / "ptx" / "mma.sm_80.ptx")["mma_pipelined"]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    c = np.zeros((size, size), np.float32)

    def run(detectors: bool) -> None:
        grid = (size // 32, size // 32)
        kernel.launch(grid, 128, [a, b, c, size, size], device="cpu", detectors=detectors)

    small = (1, 1)
    kernel.launch(small, 128, [a, b, c, size, size], device="cpu", detectors=False, blocks=[(0, 0)])
    kernel.launch(small, 128, [a, b, c, size, size], device="cpu", blocks=[(0, 0)])
    rows = [
        Row("512³ f16 product by mma.sync", seconds(lambda: run(False)), "s", 5),
        Row("the same with all detectors", seconds(lambda: run(True)), "s", 60),
    ]
    assert np.allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-2, atol=1e-2)
    return rows


def scaled_tensor_cores() -> list[Row]:
    """256 by 256 by 1024 NVFP4 by `tcgen05.mma` with TMA and scale factors, as one block and as a pair computes it."""
    sys.path.append(str(ROOT))
    from tests.emulate.nvfp4_gemm import multiply

    rows = []
    for pair, name in ((False, "256×256×1024 NVFP4 by tcgen05, all detectors"), (True, "the same by pairs of blocks")):
        how: dict[str, Any] = {"pair": pair, "stages": 3, "depth": 1024, "workers": 2}
        multiply(**how)
        start = time.perf_counter()
        out, expected, result = multiply(**how)
        rows.append(Row(name, time.perf_counter() - start, "s", 5))
        assert not result.diagnostics
        assert np.array_equal(out, expected)
    return rows


def products_of_the_gallery() -> list[Row]:
    """The product of `wgmma_gemm` with all detectors: 1024³, and 4096³ where there are 16 cores for it."""
    from ptxlab.kernels.wgmma_gemm import product

    rows = []
    for size, workers, bar in ((1024, 2, 2.5), (4096, 16, 20.0)):
        if (os.cpu_count() or 1) < workers:
            continue
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
        d = np.full((size, size), np.nan, np.float16)
        launch = product(a, b, d)
        times = [seconds(lambda: launch.run(device="cpu", workers=workers)) for _ in range(2)]  # noqa: B023
        name = f"{size}³ by wgmma_gemm, all detectors, {workers} cores"
        rows.append(Row(name, times[1], "s", bar))  # the first time it is compiled
        assert np.allclose(d, a.astype(np.float32) @ b.T.astype(np.float32), rtol=1e-2, atol=0.2)
    return rows


def large_kernel(count: int) -> str:
    """A kernel of so many instructions of all sorts, with branches, barriers and shuffles, the same in every run."""
    rng = random.Random(0)

    def integer() -> str:
        return f"%r{rng.randrange(4, 64)}"

    def number() -> str:
        return f"%f{rng.randrange(64)}"

    lines = [
        "    ld.param.u64 %rd1, [p];", "    ld.param.u32 %r1, [n];", "    mov.u32 %r2, %tid.x;",
        "    mul.wide.u32 %rd2, %r2, 4;", "    add.s64 %rd1, %rd1, %rd2;", "    shl.b32 %r3, %r2, 2;",
    ]  # fmt: skip
    while len(lines) < count - 2:
        match rng.randrange(12):
            case 0 | 1 | 2:
                name = rng.choice(["add.s32", "sub.s32", "mul.lo.s32", "and.b32", "xor.b32", "min.s32"])
                lines.append(f"    {name} {integer()}, {integer()}, {integer()};")
            case 3 | 4 | 5:
                lines.append(f"    fma.rn.f32 {number()}, {number()}, {number()}, {number()};")
            case 6:
                name = rng.choice(["add.f32", "mul.ftz.f32", "max.f32"])
                lines.append(f"    {name} {number()}, {number()}, {number()};")
            case 7:
                lines.append(f"    ld.global.f32 {number()}, [%rd1+{4 * rng.randrange(8)}];")
            case 8:
                lines.append(f"    st.shared.b32 [%r3], {integer()};")
            case 9:
                lines.append(f"    setp.lt.s32 %p1, {integer()}, {integer()};")
                lines.append(f"    @%p1 add.s32 {integer()}, {integer()}, 1;")
            case 10:
                lines.append(f"    cvt.rn.f32.s32 {number()}, {integer()};")
            case _ if rng.random() < 0.3:
                lines.append(f"    setp.ne.s32 %p2, {integer()}, 0;")
                lines.append(f"    @%p2 bra L{len(lines)};\n    xor.b32 {integer()}, {integer()}, 5;\nL{len(lines)}:")
                lines.append("    bar.sync 0;")
            case _:
                lines.append(f"    shfl.sync.bfly.b32 {integer()}, {integer()}, 1, 31, -1;")
    head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry large(.param .u64 p, .param .u32 n)\n{\n"
    declared = "    .reg .b32 %r<64>;\n    .reg .f32 %f<64>;\n    .reg .b64 %rd<4>;\n    .reg .pred %p<4>;\n"
    shared = "    .shared .align 4 .b8 s[4096];\n"
    return f"{head}{declared}{shared}" + "\n".join([*lines, "    st.global.f32 [%rd1], %f3;", "    ret;"]) + "\n}\n"


def surroundings(folder: Path, cache: str) -> dict[str, str]:
    """Variables for a process with a cache of its own, and with Python's byte code at hand as after an install."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PTXLAB_CACHE": str(folder / cache), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


COMPILE = """
import sys, time
import ptxlab
import ptxlab.emulate.translate.compile as compiling
from ptxlab.device.digest import digest_of
module = ptxlab.load(sys.argv[1])
ptxlab.check(module)
compiling.runtime_code()
start = time.perf_counter()
compiling.compile_kernel(module, module["large"], digest_of(module), True, False)
print(time.perf_counter() - start)
"""


def compiling(folder: Path) -> list[Row]:
    """Kernels of 2,000 and 10,000 instructions, in fresh processes with an empty cache; the first also from it."""

    def run(count: int, cache: str) -> float:
        path = folder / f"large{count}.ptx"
        path.write_text(large_kernel(count))
        command = [sys.executable, "-c", COMPILE, str(path)]
        environment = surroundings(folder, cache)
        return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)

    cold = [run(2_000, f"cold{number}") for number in range(3)]
    cached = [run(2_000, "cold0") for _ in range(3)]
    longer = [run(10_000, f"longer{number}") for number in range(3)]
    return [
        Row("2,000 instructions, cold compile", statistics.median(cold), "s", 3, samples={"cold": cold}),
        Row("2,000 instructions, from the cache", statistics.median(cached), "s", 0.3, samples={"cached": cached}),
        Row("10,000 instructions, cold compile", statistics.median(longer), "s", 10, samples={"cold": longer}),
    ]


def processes(folder: Path) -> list[Row]:
    """`ptxlab run` of vector addition, the whole process."""
    array = "f32[1024]"
    command = [sys.executable, "-m", "ptxlab", "run", str(KERNELS / "add.ptx"), "--grid", "4", "--block", "256"]
    for given in (f"{array}=random", f"{array}=random", f"{array}=zeros", "u32=1024"):
        command += ["--arg", given]
    environment = surroundings(folder, "start")

    def run() -> None:
        subprocess.run(command, env=environment, check=True, capture_output=True)

    subprocess.run([*command[:4], "--help"], env=environment, check=True, capture_output=True)
    first = seconds(run)
    later = [seconds(run) for _ in range(5)]
    return [
        Row("first `ptxlab run` of vector addition", first, "s", 5),
        Row("later ones", statistics.median(later), "s", 0.7, samples={"later": later}),
    ]


def scaling() -> list[Row]:
    """More cores, larger grids."""
    kernel = ptxlab.load(KERNELS / "sgemm.ptx")["sgemm"]
    depth, grid = 2048, (32, 8)
    a, b, c = np.ones((256, depth), "f4"), np.ones((depth, 1024), "f4"), np.zeros((256, 1024), "f4")

    def multiply(workers: int, detectors: bool) -> None:
        args = [a, b, c, 1024, depth]
        kernel.launch(grid, (32, 32), args, device="cpu", detectors=detectors, workers=workers)

    cores = in_turns(5, one=lambda: multiply(1, False), two=lambda: multiply(2, False))
    checked = in_turns(5, one=lambda: multiply(1, True), two=lambda: multiply(2, True))
    add = ptxlab.load(KERNELS / "add.ptx")["add"]
    vectors = [np.ones(1 << 22, "f4") for _ in range(3)]

    def run(blocks: int) -> None:
        add.launch(blocks, 128, [*vectors, 1 << 22], device="cpu", detectors=False, workers=1)

    for _ in range(3):
        run(1 << 11)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sizes = in_turns(5, small=lambda: run(1 << 11), large=lambda: run(1 << 15))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return [
        # The best of each: another program takes one core of two, and so half of one of these alone.
        Row("two cores against one, many blocks", min(cores["one"]) / min(cores["two"]), "times", 1.8, True, cores),
        Row("the same with all detectors", min(checked["one"]) / min(checked["two"]), "times", 1.8, True, checked),
        Row("time of 16 times the blocks, over 16", ratio(sizes, "large", "small") / 16, "times", 1.2, False, sizes),
        Row("memory that 16 times the blocks take more", grown, "MiB", 8),
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--evidence", type=Path, metavar="FILE")
    parser.add_argument("--numba", metavar="PYTHON")
    given = parser.parse_args(arguments)
    rows: list[Row] = []
    runtime_code()  # otherwise another process would make it beside what is measured first
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        measures: dict[str, Callable[[], list[Row]]] = {
            "sgemm": lambda: sgemm(folder, given.numba),
            "polynomial": lambda: polynomial(folder),
            "irregular": lambda: irregular(folder),
            "least_gathers": lambda: least_gathers(folder),
            "tensor_cores": tensor_cores,
            "scaled_tensor_cores": scaled_tensor_cores,
            "products_of_the_gallery": products_of_the_gallery,
            "compiling": lambda: compiling(folder),
            "processes": lambda: processes(folder),
            "scaling": scaling,
        }
        if unknown := set(given.names) - set(measures):
            parser.error(f"no {', '.join(sorted(unknown))} among {', '.join(measures)}")
        for name in given.names or measures:
            for row in measures[name]():
                rows.append(row)
                print(row, flush=True)
    if given.evidence:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        about: dict[str, object] = {"date": date.today().isoformat(), "commit": commit, "cores": os.cpu_count()}
        about |= {"load": os.getloadavg()}
        about |= {"machine": platform.machine(), "python": platform.python_version()}
        given.evidence.write_text(json.dumps({"about": about, "bars": [asdict(row) for row in rows]}, indent=1) + "\n")
    return int(not all(row.holds for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

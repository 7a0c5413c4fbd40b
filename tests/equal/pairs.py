"""Pairs of kernels with known answers: half of them are the same, half have one planted difference.

`python -m tests.equal.pairs [PART OF A NAME]` compares them, says what is wrong, and writes
`evidence/equal_pairs.json`, or the file after `--output`. Pairs of Triton need that package, those of CUDA C++ need
nvcc; what is missing is said, and a pair that is missing here keeps the row that the evidence has of it.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.equal import Launch, unpack
from ptxlab.measure.checking import as_float64
from ptxlab.measure.data import Host
from ptxlab.syntax import format
from tests.equal.compiled import MATRICES, SOFTMAX, cuda, triton_kernel
from tests.equal.kernels import FMA, NORM, ONLINE, PLAIN, product, rows

SAME, DIFFERENT = ("same-bits", "same-function"), ("different",)
SECONDS = 30.0  # of two cores, for each
EVIDENCE = Path(__file__).parents[2] / "evidence" / "equal_pairs.json"
ROW = {"rows": 2, "columns": 70, "type": "f32"}
TILE = {"m": 20, "n": 15, "k": 23}
STEPS = {"type": "bf16", "m": 70, "n": 72, "k": 200}
ATTENTION = {"batch": 1, "heads": 1, "length": 70, "size": 64, "type": "bf16", "mask": "causal"}
HEADS = {"type": "f16", "batch": 1, "heads": (1, 1), "length": 70, "size": 64, "causal": True}
DECODE = {"type": "f16", "cache": "f16", "batch": 1, "heads": (2, 1), "length": 40, "size": 64}
TENSOR = {"type": "bf16", "m": 130, "n": 72, "k": 200}
NVFP4 = {"format": "nvfp4", "m": 128, "n": 128, "k": 256}
GEMV = {"batch": 1, "m": 3, "k": 40, "type": "bf16"}


@dataclass
class Pair:
    """Two sides, and which answers are right."""

    name: str
    make: Callable[[], tuple[Any, Any]]
    levels: tuple[str, ...] = SAME
    options: dict[str, Any] = field(default_factory=dict)

    def compare(self) -> dict[str, Any]:
        """The answer, and what it took."""
        started = time.process_time()
        found = ptxlab.equal(*self.make(), **self.options)
        seconds = time.process_time() - started
        witness = found.witness
        places = [] if witness is None else [None if one is None else f"line {one.line}" for one in witness.places]
        is_named = found.level != "different" or any(places)
        return {
            "name": self.name, "right": list(self.levels), "level": found.level,
            "is_right": found.level in self.levels and is_named, "cpu_seconds": round(seconds, 1), "places": places,
            "words": [] if witness is None or found.same else list(witness.words),
            "refusal": "" if found.refusal is None else f"line {found.refusal.line}: {found.refusal.why}",
        }  # fmt: skip


class Gallery:
    """Kernels of the gallery on the same arrays."""

    def __init__(self, name: str, size: dict[str, Any]) -> None:
        self.entry = import_module(f"ptxlab.kernels.{name}").entry
        self.arrays = self.entry.arrays(Host(), **size)

    @property
    def options(self) -> dict[str, Any]:
        names = {name: one for name, one in self.arrays.items() if isinstance(one, np.ndarray)}
        return {"assume_paths": True, "names": names}

    def launches(self, variant: str) -> list[Launch]:
        found: list[Launch] = self.entry.launches(variant, self.arrays)
        return found

    def reference(self, **given: Any) -> Any:
        def number(value: Any) -> Any:
            return as_float64(np, value) if isinstance(value, np.ndarray) else value

        return self.entry.reference(np, **{name: number(given.get(name, one)) for name, one in self.arrays.items()})


def planted(launches: list[Launch], pattern: str, new: str, which: int = 0, nth: int = 0) -> list[Launch]:
    """The launches with one change: where a pattern is found for the nth time in the PTX of one of them."""
    text = format(launches[which].module)
    found = list(re.finditer(pattern, text))
    assert len(found) > nth, (launches[which].function.name, pattern)
    text = text[: found[nth].start()] + found[nth].expand(new) + text[found[nth].end() :]
    kernel = ptxlab.parse(text, name="planted.ptx")[launches[which].function.name]
    return [*launches[:which], replace(launches[which], kernel=kernel), *launches[which + 1 :]]


def of_gallery(name: str, size: dict[str, Any], a: str, b: str | None = None) -> Pair:
    """Two variants, or one and the reference."""
    gallery = Gallery(name, size)

    def make() -> tuple[Any, Any]:
        return gallery.launches(a), gallery.reference if b is None else gallery.launches(b)

    return Pair(f"{name}: {a} and {b or 'NumPy'}", make, SAME, gallery.options)


def of_mistake(name: str, size: dict[str, Any], a: str, what: str, pattern: str, new: str, **where: int) -> Pair:
    """A variant and itself with a mistake."""
    gallery = Gallery(name, size)

    def make() -> tuple[Any, Any]:
        launches = gallery.launches(a)
        return launches, planted(launches, pattern, new, **where)

    return Pair(f"{name}: {what}", make, DIFFERENT, gallery.options)


def gradients(q: Any, k: Any, v: Any, o: Any, do: Any, lse: Any, sign: float = 1.0) -> dict[str, Any]:
    """The gradients of causal attention, by what the forward pass has left."""
    scale = 1 / np.sqrt(q.shape[-1])
    scores = np.where(np.tri(q.shape[2], dtype=bool), q @ k.swapaxes(-1, -2) * scale, -np.inf)
    weights = np.exp(scores - lse[..., None])
    inner = do @ v.swapaxes(-1, -2)
    gradient = weights * (inner - sign * (do * o).sum(-1, keepdims=True)) * scale
    return {"dq": gradient @ k, "dk": gradient.swapaxes(-1, -2) @ q, "dv": weights.swapaxes(-1, -2) @ do}


def fp4_product(a: Any, a_factors: Any, b: Any, b_factors: Any) -> dict[str, Any]:
    """The product of NVFP4 matrices, whose factors are in blocks."""

    def matrix(packed: Any, factors: Any) -> Any:
        numbers = unpack(packed)
        parts = numbers.reshape(numbers.shape[0], -1, 16)
        lines = np.moveaxis(factors, (0, 3, 2, 1, 4), (0, 1, 2, 3, 4)).reshape(128, -1)
        return (parts * lines[:, : parts.shape[1], None]).reshape(numbers.shape[0], -1)

    return {"d": matrix(a, a_factors) @ matrix(b, b_factors).T}


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normed(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def same() -> Iterator[Pair]:
    """Pairs that are the same function."""
    yield of_gallery("vector_addition", {"n": 67}, "one element a thread", "four elements a thread")
    yield of_gallery("transpose", ROW, "elements", "squares")
    yield of_gallery("warp_reduction", {"rows": 3, "columns": 45, "type": "f32"}, "shared memory", "shfl")
    yield of_gallery("mma_tile", TILE, "PTX")
    for step in ("ring", "specialized", "persistent", "ping_pong"):
        yield of_gallery("wgmma_steps", STEPS, "one_tile", step)
    yield of_gallery("wgmma_steps", STEPS, "one_tile")
    yield of_gallery("wgmma_gemm", {"type": "f16", "m": 64, "n": 64, "k": 64}, "wgmma")
    for step in ("ring", "pair"):
        yield of_gallery("tcgen05_gemm", TENSOR, "one_tile", step)
    yield of_gallery("tcgen05_gemm", TENSOR, "persistent")
    yield of_gallery("softmax", ROW, "plain", "read once")
    yield of_gallery("softmax", ROW, "read once")
    yield of_gallery("rms_norm", ROW, "plain")
    yield of_gallery("layer_norm", ROW, "plain", "read once")
    yield of_gallery("layer_norm", ROW, "plain")
    yield of_gallery("cross_entropy", ROW, "read once")
    yield of_gallery("gemv", GEMV, "rows by blocks")
    yield of_gallery("mma_attention", ATTENTION, "mma.sync")
    yield of_gallery("wgmma_attention", HEADS, "wgmma")
    yield of_gallery("decode_attention", DECODE, "plain")
    yield of_gallery("block_scaled_mma", {"format": "mxf8", "m": 20, "n": 8, "k": 64}, "mma.sync")
    backward = Gallery("wgmma_attention_backward", HEADS)
    yield Pair("wgmma_attention_backward and NumPy", lambda: (backward.launches("wgmma"), gradients), SAME,
               {**backward.options, "outputs": ["dq", "dk", "dv"]})  # fmt: skip
    fp4 = Gallery("nvfp4_gemm", NVFP4)
    yield Pair("nvfp4_gemm and NumPy", lambda: (fp4.launches("tcgen05"), fp4_product), SAME,
               {**fp4.options, "symbols": ["a", "b"]})  # fmt: skip
    yield Pair("product: naive and tiled", lambda: (product("naive"), product("tiled_1d")))
    yield Pair("softmax in three passes and in one", lambda: (rows(PLAIN), rows(ONLINE)))
    yield Pair("length of rows, a step of Newton's, and NumPy", lambda: (rows(NORM), normed))
    yield Pair("softmax of nvcc and of Triton", lambda: (cuda("softmax"), triton_kernel("softmax")))
    yield Pair("softmax of Triton, one warp and four", lambda: (triton_kernel("softmax"),
                                                                triton_kernel("softmax", num_warps=4)))  # fmt: skip
    yield Pair("softmax of Triton and by hand", lambda: (triton_kernel("softmax"), rows(ONLINE, **SOFTMAX)))
    yield Pair("softmax of nvcc, contracted and not", lambda: (cuda("softmax"), cuda("softmax", "--fmad=false")))
    yield Pair("product of Triton and NumPy", lambda: (triton_kernel("product"), lambda a, b: {"c": a @ b}),
               options={"names": MATRICES})  # fmt: skip
    yield Pair("product of nvcc and of Triton", lambda: (cuda("product"), triton_kernel("product")))


_WRONG_PRODUCTS = {
    "the last term is lost": ("setp.ne.u32     %more, %k, 0;\n    @%more", "setp.gt.s32     %more, %k, 1;\n    @%more"),
    "= for +=": (FMA, "mul.rn.f32 %sum, %x, %y;"),
    "a factor twice": (FMA, "fma.rn.f32 %sum, %x, %x, %sum;"),
    "a wrong sign": (FMA, "neg.f32 %x, %x;\n    " + FMA),
    "a sum that starts at one": ("mov.f32         %sum, 0f00000000;", "mov.f32         %sum, 0f3F800000;"),
}
_WRONG_SOFTMAX = {
    "a lost rescale": ("fma.rn.f32 %f2, %f2, %f6, %f7;", "add.f32 %f2, %f2, %f7;"),
    "mixed operands": ("sub.f32 %f6, %f1, %f5;", "sub.f32 %f6, %f5, %f1;"),
    "ln 2 for log2 e": ("0f3FB8AA3B", "0f3F317218"),
    "the maximum of before": ("sub.f32 %f7, %f3, %f5;", "sub.f32 %f7, %f3, %f1;"),
    "every second element": ("add.u64 %rd3, %rd3, 4;", "add.u64 %rd3, %rd3, 8;"),
}


def _wrong_product(change: tuple[str, str]) -> tuple[Any, Any]:
    return product("naive"), product("naive", change)


def _wrong_softmax(change: tuple[str, str]) -> tuple[Any, Any]:
    x, y = np.ones((2, 6), np.float32), np.zeros((2, 6), np.float32)  # of the second row only what one reads beyond
    return replace(rows(PLAIN, x=x, y=y), block=1), replace(rows(ONLINE, change, x=x, y=y), block=1)


def _wrong_norm(change: tuple[str, str]) -> tuple[Any, Any]:
    return rows(NORM, change), normed


def different() -> Iterator[Pair]:
    """Pairs with one planted difference."""
    for what, change in _WRONG_PRODUCTS.items():
        yield Pair(f"product: {what}", partial(_wrong_product, change), DIFFERENT)
    for what, change in _WRONG_SOFTMAX.items():
        yield Pair(f"softmax: {what}", partial(_wrong_softmax, change), DIFFERENT)
    for what, change in (("a wrong step of Newton's", ("%f2, 0f3F000000", "%f2, 0f3F400000")),
                         ("a root for its reciprocal", ("rsqrt.approx", "sqrt.approx"))):  # fmt: skip
        yield Pair(f"length of rows: {what}", partial(_wrong_norm, change), DIFFERENT)
    yield of_mistake("vector_addition", {"n": 67}, "one element a thread", "a wrong sign", "add.rn.f32", "sub.rn.f32")
    yield of_mistake("mma_tile", TILE, "PTX", "rows of A mixed", r"\{%a0, %a1", "{%a1, %a0")
    yield of_mistake("mma_tile", TILE, "PTX", "B not transposed", "x2.trans", "x2")
    yield of_mistake("rms_norm", ROW, "plain", "a root for its reciprocal", "rsqrt.approx.f32", "sqrt.approx.f32")
    yield of_mistake("layer_norm", ROW, "plain", "the mean added", "sub.rn.f32", "add.rn.f32")
    yield of_mistake("wgmma_steps", STEPS, "one_tile", "one MMA with a wrong sign", "1, 1, 1, 0, 0;", "1, -1, 1, 0, 0;")
    yield of_mistake("wgmma_steps", STEPS, "one_tile", "= for +=", "1, 1, 1, 0, 0;", "0, 1, 1, 0, 0;", nth=1)
    yield of_mistake("tcgen05_gemm", TENSOR, "one_tile", "= for +=", r"0x8100490, %p6;", "0x8100490, !%p6;")
    yield of_mistake("tcgen05_gemm", TENSOR, "one_tile", "a tile of K twice", r"%rd14, %rd15, 0x", "%rd12, %rd13, 0x")
    yield of_mistake("nvfp4_gemm", NVFP4, "tcgen05", "scale factors of another K tile",
                     r"\[%r20\+260\], \[%r20\+276\]", "[%r20+256], [%r20+276]")  # fmt: skip
    yield of_mistake("decode_attention", DECODE, "plain", "mixed operands", r"sub.rn.f32 %f28, %f24, %f25",
                     "sub.rn.f32 %f28, %f25, %f24")  # fmt: skip
    yield of_mistake("decode_attention", DECODE, "plain", "a lost rescale", r"ex2.approx.ftz.f32 %f27, %f26",
                     "mov.f32 %f27, 0f3F800000")  # fmt: skip
    yield of_mistake("cross_entropy", ROW, "read once", "the target added", "sub.rn.f64", "add.rn.f64")
    yield of_mistake("mma_attention", ATTENTION, "mma.sync", "a wrong scale", "0f3E38AA3B", "0f3E800000", nth=2)
    yield of_mistake("gemv", GEMV, "rows by blocks", "a wrong sign", "add.rn.f32", "sub.rn.f32", nth=2)
    backward = Gallery("wgmma_attention_backward", HEADS)
    yield Pair(
        "wgmma_attention_backward: a wrong sign",
        lambda: (backward.launches("wgmma"), partial(gradients, sign=-1.0)),
        DIFFERENT,
        {**backward.options, "outputs": ["dq", "dk", "dv"]},
    )
    yield Pair(
        "softmax of Triton: a wrong mask", lambda: (triton_kernel("softmax"), triton_kernel("masked")), DIFFERENT
    )
    yield Pair("product of Triton: the last K tile is lost",
               lambda: (triton_kernel("product"), triton_kernel("short")), DIFFERENT)  # fmt: skip
    yield Pair("softmax of nvcc: an index off by one", lambda: (cuda("softmax"), cuda("shifted")), DIFFERENT)
    yield Pair("product of nvcc: = for +=", lambda: (cuda("product"), cuda("assigned")), DIFFERENT)


def main(part: str, output: Path) -> int:
    """Compare all pairs; how many answers are not right."""
    found, missing = [], []
    for pair in (*same(), *different()):
        if part not in pair.name:
            continue
        try:
            one = pair.compare()
        except ModuleNotFoundError as problem:
            missing.append(f"{pair.name}: {problem}")
            continue
        except (ptxlab.PtxError, ptxlab.KernelError) as problem:
            one = {"name": pair.name, "level": "does not run", "is_right": False, "cpu_seconds": 0.0, "words": [],
                   "refusal": problem.diagnostics[0].message}  # fmt: skip
        found.append(one)
        mark = "" if one["is_right"] and one["cpu_seconds"] <= SECONDS else "   <<<<"
        print(f"{one['cpu_seconds']:6.1f} s  {one['level']:14} {one['name']}{mark}", *one["words"][:1], flush=True)
        if one["refusal"]:
            print(f"          {one['refusal']}", flush=True)
    wrong = [one for one in found if not one["is_right"]]
    if not part:
        versions = {name: _version(name) for name in ("numpy", "triton", "nvidia-cutlass-dsl", "nvidia-cuda-nvcc")}
        machine = f"{platform.machine()}, {', '.join(f'{name} {one}' for name, one in versions.items() if one)}"
        names = [one["name"] for one in found]
        kept = [one for one in json.loads(EVIDENCE.read_text())["found"] if one["name"] not in names]
        rows = [{**one, "machine": machine} for one in found] + [one for one in kept if "machine" in one]
        left = [one for one in missing if one.partition(": No module")[0] not in [row["name"] for row in rows]]
        result = {"pairs": len(rows), "wrong": sum(not one["is_right"] for one in rows), "missing": left,
                  "over_30_s": sum(one["cpu_seconds"] > SECONDS for one in rows), "found": rows}  # fmt: skip
        output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(found)} pairs, {len(wrong)} wrong, {len(missing)} missing")
    return len(wrong)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*")
    parser.add_argument("--output", type=Path, default=EVIDENCE)
    asked = parser.parse_args()
    sys.exit(bool(main(" ".join(asked.part), asked.output)))

"""Transformer blocks of known models: prefill and a training step, by our functions and by torch, both compiled.

    python benchmarks/model.py [FILE] [NAME ...]     writes evidence/model.json, needs an H200 and torch

A block is a norm, products for queries, keys and values, RoPE, causal attention with fewer heads of keys, a product, a
norm and a gated MLP, in bf16 with random weights. Ours are `ptxlab.kernels` under `torch.compile`; theirs is the same
in torch under `torch.compile`, with cuDNN's attention. A training step is forward, backward and the gradients of all
weights. Contenders take turns; the difference of both answers is in the file.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab import kernels
from ptxlab.measure.machine import commit, describe, require_torch

ROOT = Path(__file__).resolve().parent.parent
ROUNDS, CALLS = 9, 3
PROMPTS = ((1, 300), (1, 2048), (2, 4096))
EPSILON, SCALE = 1e-5, 0.02

Action = Callable[[], Any]


@dataclass(frozen=True)
class Model:
    """The extents of a block."""

    width: int
    heads: int
    key_heads: int
    inner: int
    head: int = 128


MODELS = {
    "Llama-3-8B": Model(4096, 32, 8, 14336),
    "Qwen2.5-7B": Model(3584, 28, 4, 18944),
}


class Block:
    """The weights of a block, and the block by our functions or by torch."""

    def __init__(self, torch: Any, model: Model) -> None:
        self.torch, self.model = torch, model
        generator = torch.Generator(device="cuda").manual_seed(1)

        def weight(*shape: int) -> Any:
            drawn = torch.randn(*shape, device="cuda", generator=generator) * SCALE
            return drawn.bfloat16().requires_grad_()

        width, head = model.width, model.head
        self.q, self.k, self.v = (weight(n * head, width) for n in (model.heads, model.key_heads, model.key_heads))
        self.o = weight(width, model.heads * head)
        self.gate, self.up, self.down = (
            weight(model.inner, width),
            weight(model.inner, width),
            weight(width, model.inner),
        )
        self.norms = [torch.ones(width, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2)]

    @property
    def weights(self) -> list[Any]:
        """All of them."""
        return [self.q, self.k, self.v, self.o, self.gate, self.up, self.down, *self.norms]

    def ours(self, x: Any, cos: Any, sin: Any) -> Any:
        """The block by `ptxlab.kernels`."""

        def gated(y: Any) -> Any:
            return kernels.gated_matmul(y, self.gate.t(), self.up.t())

        def attend(q: Any, k: Any, v: Any) -> Any:
            return kernels.attention(q, k, v, causal=True)

        return self.run(x, cos, sin, lambda y, w: kernels.rms_norm(y, w, EPSILON),
                        lambda y, w: kernels.matmul(y, w.t()), attend, gated)  # fmt: skip

    def theirs(self, x: Any, cos: Any, sin: Any) -> Any:
        """The block by torch."""
        functional = self.torch.nn.functional

        def gated(y: Any) -> Any:
            return functional.silu(y @ self.gate.t()) * (y @ self.up.t())

        def attend(q: Any, k: Any, v: Any) -> Any:
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

        return self.run(x, cos, sin, lambda y, w: functional.rms_norm(y, (self.model.width,), w, EPSILON),
                        lambda y, w: y @ w.t(), attend, gated)  # fmt: skip

    def run(self, x: Any, cos: Any, sin: Any, norm: Any, multiply: Any, attend: Any, gated: Any) -> Any:
        """What both have in common."""
        model = self.model
        batch, length, _ = x.shape

        def heads(y: Any, weight: Any, count: int) -> Any:
            return multiply(y, weight).view(batch, length, count, model.head).transpose(1, 2)

        def turn(y: Any) -> Any:
            a, b = y[..., : model.head // 2], y[..., model.head // 2 :]
            return self.torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

        y = norm(x, self.norms[0])
        q, k = turn(heads(y, self.q, model.heads)), turn(heads(y, self.k, model.key_heads))
        found = attend(q, k, heads(y, self.v, model.key_heads))
        x = x + multiply(found.transpose(1, 2).reshape(batch, length, -1), self.o)
        return x + multiply(gated(norm(x, self.norms[1])), self.down)


def measure(torch: Any, name: str, batch: int, length: int) -> list[dict[str, Any]]:
    """Prefill and a training step of one model at one size."""
    torch.compiler.reset()
    model, block = MODELS[name], Block(torch, MODELS[name])
    x = torch.randn(batch, length, model.width, device="cuda").bfloat16()
    steps = 1 / 500000 ** (torch.arange(0, model.head, 2, device="cuda").float() / model.head)
    angles = torch.outer(torch.arange(length, device="cuda").float(), steps)
    cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
    functions = {
        "ptxlab": torch.compile(block.ours, fullgraph=True, dynamic=False),
        "torch": torch.compile(block.theirs, dynamic=False),
    }
    backends = torch.nn.attention.SDPBackend
    found = []
    with torch.nn.attention.sdpa_kernel([backends.CUDNN_ATTENTION, backends.FLASH_ATTENTION], set_priority=True):
        with torch.no_grad():
            calls: dict[str, Action] = {name: lambda f=f: f(x, cos, sin) for name, f in functions.items()}  # type: ignore[misc]
            error = difference([calls["ptxlab"]()], [calls["torch"]()])
            found.append({"what": "prefill", "errors": error, "samples": turns(torch, calls)})
        given = x.clone().requires_grad_()
        leaves = [given, *block.weights]

        def step(function: Any) -> list[Any]:
            for one in leaves:
                one.grad = None
            function(given, cos, sin).float().square().mean().backward()
            return [one.grad for one in leaves]

        calls = {name: lambda f=f: step(f) for name, f in functions.items()}  # type: ignore[misc]
        error = difference([one.clone() for one in calls["ptxlab"]()], calls["torch"]())
        found.append({"what": "training step", "errors": error, "samples": turns(torch, calls)})
    return [{"model": name, "batch": batch, "length": length, **one} for one in found]


def difference(given: list[Any], wanted: list[Any]) -> list[float]:
    """The norm of each difference in that of what is wanted."""
    pairs = zip(given, wanted, strict=True)
    return [float((one.float() - other.float()).norm() / other.float().norm()) for one, other in pairs]


def turns(torch: Any, calls: dict[str, Action]) -> dict[str, list[float]]:
    """Milliseconds a call, in turns."""
    for call in calls.values():
        for _ in range(CALLS):
            call()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS):
        for name in list(calls)[:: 1 if turn % 2 == 0 else -1]:
            torch.cuda.synchronize()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(CALLS):
                calls[name]()
            end.record()
            end.synchronize()
            samples[name].append(start.elapsed_time(end) / CALLS)
    return samples


def main() -> None:
    path = Path((*sys.argv, "")[1] or ROOT / "evidence" / "model.json")
    torch = require_torch()
    about = {"date": str(date.today()), "commit": commit(), "machine": describe(torch)}
    rows: list[dict[str, Any]] = []
    for name in sys.argv[2:] or MODELS:
        for batch, length in PROMPTS:
            for row in measure(torch, name, batch, length):
                rows.append(row)
                ours, theirs = (statistics.median(row["samples"][one]) for one in ("ptxlab", "torch"))
                print(
                    f"{name} {batch}×{length} {row['what']:14} {ours:7.3f} ms, torch {theirs:7.3f}: {theirs / ours:.3f}"
                )
                path.write_text(json.dumps({**about, "results": rows}) + "\n")


if __name__ == "__main__":
    main()

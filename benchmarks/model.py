"""Transformer blocks of known models by our functions and by torch, both compiled: prefill, a training step, decode.

    python benchmarks/model.py [FILE] [MODE] [CASE ...]     writes evidence/model.json, needs an H200 and torch

A block is a norm, products for queries, keys and values, RoPE, causal attention with fewer heads of keys, a product, a
norm and a gated MLP, or eight of these with two for each token, in bf16 with random weights. Ours are `ptxlab.kernels`
under `torch.compile`; theirs is the same in torch under `torch.compile` in MODE, with cuDNN's attention and
`torch._grouped_mm`. A training step is forward, backward and the gradients of all weights. Decode is one token of each
sequence, whose cache has 2,048 positions, in a CUDA graph. Contenders take turns; the difference of both answers is in
the file. MODE is "max-autotune-no-cudagraphs" unless given, which tries products of its own and takes minutes. A CASE
is a size, `1`, `8` or `64` of decode and `1×300`, `1×2048` or `2×4096` of the others, in the order to be measured, of
all models, or of those whose name begins with what is before a colon: `Mixtral:8`. The file is written after each, so
that a run can be ended at any time.
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
CASES, CACHED = ("1", "8", "64", "1×300", "1×2048", "2×4096"), 2048
EPSILON, SCALE = 1e-5, 0.02
MODE = "max-autotune-no-cudagraphs"

Action = Callable[[], Any]


@dataclass(frozen=True)
class Model:
    """The extents of a block; with experts, of which each token has two."""

    width: int
    heads: int
    key_heads: int
    inner: int
    head: int = 128
    experts: int = 0


MODELS = {
    "Llama-3-8B": Model(4096, 32, 8, 14336),
    "Qwen2.5-7B": Model(3584, 28, 4, 18944),
    "Mixtral 8×7B": Model(4096, 32, 8, 14336, experts=8),
}


@dataclass(frozen=True)
class Functions:
    """What a block is made of."""

    norm: Callable[..., Any]
    multiply: Callable[..., Any]
    attend: Callable[..., Any]
    decode: Callable[..., Any]
    gate: Callable[..., Any]
    group: Callable[..., Any]


def ours(torch: Any) -> Functions:
    """By `ptxlab.kernels`."""
    return Functions(
        norm=lambda y, w: kernels.rms_norm(y, w, EPSILON),
        multiply=lambda y, w, add=None: kernels.matmul(y, w.t(), residual=add),
        attend=lambda q, k, v: kernels.attention(q, k, v, causal=True),
        decode=lambda q, k, v, lengths: kernels.decode_attention(q, k, v, lengths),
        gate=lambda y, gate, up: kernels.gated_matmul(y, gate.t(), up.t()),
        group=lambda y, w, ends: kernels.grouped_matmul(y, w.mT, ends),
    )


def theirs(torch: Any) -> Functions:
    """By torch."""
    of = torch.nn.functional

    def decode(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        keys, values = (one.transpose(1, 2) for one in (k, v))  # all sequences are of the same length
        return of.scaled_dot_product_attention(q[:, :, None], keys, values, enable_gqa=True)[:, :, 0]

    return Functions(
        norm=lambda y, w: of.rms_norm(y, (y.shape[-1],), w, EPSILON),
        multiply=lambda y, w, add=None: y @ w.t() if add is None else add + y @ w.t(),
        attend=lambda q, k, v: of.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        decode=decode,
        gate=lambda y, gate, up: of.silu(y @ gate.t()) * (y @ up.t()),
        group=lambda y, w, ends: torch._grouped_mm(y, w.mT, offs=ends),
    )


class Block:
    """The weights of a block, and the block by some functions."""

    def __init__(self, torch: Any, model: Model) -> None:
        self.torch, self.model = torch, model
        generator = torch.Generator(device="cuda").manual_seed(1)

        def weight(*shape: int) -> Any:
            drawn = torch.randn(*shape, device="cuda", generator=generator) * SCALE
            return drawn.bfloat16().requires_grad_()

        width, head = model.width, model.head
        self.q, self.k, self.v = (weight(n * head, width) for n in (model.heads, model.key_heads, model.key_heads))
        self.o = weight(width, model.heads * head)
        each = (model.experts,) if model.experts else ()
        self.gate, self.up = (weight(*each, model.inner, width) for _ in range(2))
        self.down = weight(*each, width, model.inner)
        self.router = [weight(model.experts, width)] if model.experts else []
        self.norms = [torch.ones(width, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(2)]

    @property
    def weights(self) -> list[Any]:
        """All of them."""
        return [self.q, self.k, self.v, self.o, self.gate, self.up, self.down, *self.router, *self.norms]

    def turn(self, y: Any, cos: Any, sin: Any) -> Any:
        """RoPE."""
        a, b = y[..., : self.model.head // 2], y[..., self.model.head // 2 :]
        return self.torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def prefill(self, by: Functions, x: Any, cos: Any, sin: Any) -> Any:
        """The block of whole prompts; x is batch by length by width."""
        model, (batch, length, _) = self.model, x.shape
        y = by.norm(x, self.norms[0])
        q, k, v = (
            by.multiply(y, weight).view(batch, length, count, model.head).transpose(1, 2)
            for weight, count in ((self.q, model.heads), (self.k, model.key_heads), (self.v, model.key_heads))
        )
        found = by.attend(self.turn(q, cos, sin), self.turn(k, cos, sin), v)
        return self.feed(by, x, found.transpose(1, 2).reshape(batch, length, -1))

    def decode(self, by: Functions, x: Any, cos: Any, sin: Any, keys: Any, values: Any, lengths: Any) -> Any:
        """The block of one token of each sequence, the last of its cache; x is batch by width."""
        model, batch = self.model, x.shape[0]
        y = by.norm(x, self.norms[0])
        q, k, v = (
            by.multiply(y, weight).view(batch, count, model.head)
            for weight, count in ((self.q, model.heads), (self.k, model.key_heads), (self.v, model.key_heads))
        )
        keys[:, -1] = self.turn(k, cos, sin)
        values[:, -1] = v
        return self.feed(by, x, by.decode(self.turn(q, cos, sin), keys, values, lengths).reshape(batch, -1))

    def feed(self, by: Functions, x: Any, attended: Any) -> Any:
        """What follows attention."""
        x = by.multiply(attended, self.o, x)
        y = by.norm(x, self.norms[1])
        if self.model.experts:
            return x + self.mix(by, y.reshape(-1, self.model.width)).view(x.shape)
        return by.multiply(by.gate(y, self.gate, self.up), self.down, x)

    def mix(self, by: Functions, y: Any) -> Any:
        """The MLPs of two experts for each row, with their weights."""
        torch, experts = self.torch, self.model.experts
        weights, chosen = by.multiply(y, self.router[0]).float().softmax(-1).topk(2)
        chosen = chosen.flatten()
        order = chosen.argsort(stable=True)
        ends = (chosen[:, None] == torch.arange(experts, device="cuda")).sum(0).cumsum(0).int()
        rows = y[order // 2]
        inner = torch.nn.functional.silu(by.group(rows, self.gate, ends)) * by.group(rows, self.up, ends)
        found = by.group(inner, self.down, ends)[order.argsort()].view(-1, 2, self.model.width)
        return (found * (weights / weights.sum(-1, keepdim=True))[..., None].to(y.dtype)).sum(1)


def angles(torch: Any, model: Model, positions: Any) -> tuple[Any, Any]:
    """Cosines and sines of RoPE."""
    steps = 1 / 500000 ** (torch.arange(0, model.head, 2, device="cuda").float() / model.head)
    found = torch.outer(positions.float(), steps)
    return found.cos().bfloat16(), found.sin().bfloat16()


def compiled(torch: Any, function: Callable[..., Any], mode: str) -> dict[str, Callable[..., Any]]:
    """A function of `Functions` and arrays, by both."""
    torch.compiler.reset()
    own, other = ours(torch), theirs(torch)
    return {
        "ptxlab": torch.compile(lambda *given: function(own, *given), fullgraph=True, dynamic=False),
        "torch": torch.compile(lambda *given: function(other, *given), dynamic=False, mode=mode),
    }


def measure(torch: Any, block: Block, mode: str, batch: int, length: int) -> list[dict[str, Any]]:
    """Prefill and a training step of one model at one size."""
    x = torch.randn(batch, length, block.model.width, device="cuda").bfloat16()
    cos, sin = angles(torch, block.model, torch.arange(length, device="cuda"))
    functions = compiled(torch, block.prefill, mode)
    with torch.no_grad():
        calls: dict[str, Action] = {name: lambda f=f: f(x, cos, sin) for name, f in functions.items()}  # type: ignore[misc]
        error = difference([calls["ptxlab"]()], [calls["torch"]()])
        found = [{"what": "prefill", "errors": error, "samples": turns(torch, calls)}]
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
    for one in leaves:
        one.grad = None
    return [{"batch": batch, "length": length, **one} for one in found]


def measure_decode(torch: Any, block: Block, mode: str, batch: int) -> dict[str, Any]:
    """One token of each sequence, in a CUDA graph."""
    model = block.model
    x = torch.randn(batch, model.width, device="cuda").bfloat16()
    cos, sin = angles(torch, model, torch.tensor([CACHED - 1], device="cuda"))
    keys, values = (torch.randn(batch, CACHED, model.key_heads, model.head, device="cuda").bfloat16() for _ in range(2))
    lengths = torch.full((batch,), CACHED, dtype=torch.int32, device="cuda")
    calls: dict[str, Action] = {}
    results: dict[str, Any] = {}
    with torch.no_grad():
        for name, function in compiled(torch, block.decode, mode).items():
            for _ in range(3):
                function(x, cos, sin, keys, values, lengths)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                results[name] = function(x, cos, sin, keys, values, lengths)
            calls[name] = graph.replay
            graph.replay()
        error = difference([results["ptxlab"]], [results["torch"]])
        return {"what": "decode", "batch": batch, "length": CACHED, "errors": error, "samples": turns(torch, calls, 20)}


def difference(given: list[Any], wanted: list[Any]) -> list[float]:
    """The norm of each difference in that of what is wanted."""
    pairs = zip(given, wanted, strict=True)
    return [float((one.float() - other.float()).norm() / other.float().norm()) for one, other in pairs]


def turns(torch: Any, calls: dict[str, Action], count: int = CALLS) -> dict[str, list[float]]:
    """Milliseconds a call, in turns."""
    for call in calls.values():
        for _ in range(count):
            call()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS):
        for name in list(calls)[:: 1 if turn % 2 == 0 else -1]:
            torch.cuda.synchronize()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(count):
                calls[name]()
            end.record()
            end.synchronize()
            samples[name].append(start.elapsed_time(end) / count)
    return samples


def main() -> None:
    path = Path((*sys.argv, "")[1] or ROOT / "evidence" / "model.json")
    mode = (*sys.argv, "", "")[2] or MODE
    torch = require_torch()
    about = {"date": str(date.today()), "commit": commit(), "machine": describe(torch), "mode": mode}
    rows: list[dict[str, Any]] = []

    def add(name: str, row: dict[str, Any]) -> None:
        rows.append({"model": name, **row})
        own, other = (statistics.median(row["samples"][one]) for one in ("ptxlab", "torch"))
        size = f"{row['batch']}×{row['length']}"
        print(f"{name:13} {row['what']:14} {size:7} {own:7.3f} ms, torch {other:7.3f}: {other / own:.3f}", flush=True)
        path.write_text(json.dumps({**about, "results": rows}) + "\n")

    backends = torch.nn.attention.SDPBackend
    with torch.nn.attention.sdpa_kernel([backends.CUDNN_ATTENTION, backends.FLASH_ATTENTION], set_priority=True):
        blocks: dict[str, Block] = {}
        for case in sys.argv[3:] or CASES:
            start, _, size = case.rpartition(":")
            for name in (one for one in MODELS if one.startswith(start)):
                block = blocks.setdefault(name, Block(torch, MODELS[name]))
                match [int(one) for one in size.split("×")]:
                    case [batch]:
                        add(name, measure_decode(torch, block, mode, batch))
                    case [batch, length]:
                        for row in measure(torch, block, mode, batch, length):
                            add(name, row)


if __name__ == "__main__":
    main()

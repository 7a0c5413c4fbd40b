"""What a call of a function of `ptxlab.kernels` costs the host, beside the operator of torch that does the same.

    python benchmarks/calls.py [FILE]        writes evidence/calls.json, needs a GPU and torch

Arrays are so small that the GPU is done before the host is. Rows of calls take turns; each row starts with a GPU that
has nothing to do. Times are medians of the rows, in microseconds a call. `compiled` is a compiled function of one call,
whose cost is mostly that of entering it; for some only, as compiling takes long.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab import kernels
from ptxlab.measure.machine import commit, describe, require_torch

ROOT = Path(__file__).resolve().parent.parent
ROWS, CALLS = 25, 60
COMPILED = ("matmul", "attention", "softmax", "rms_norm")

Action = Callable[[], Any]
Pair = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def pairs(torch: Any) -> dict[str, Pair]:
    """Our function, torch's, and what both are given."""
    of, ones = torch.nn.functional, torch.ones(1, device="cuda")

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda").bfloat16()

    a, b, w, bias, q = normal(64, 64), normal(64, 64), normal(64, 64), normal(64), normal(1, 2, 128, 64)
    e, f = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).T.contiguous().T
    groups, ends = normal(4, 64, 64), torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
    targets, lengths = (
        torch.randint(0, 64, (64,), device="cuda"),
        torch.full((1,), 128, dtype=torch.int32, device="cuda"),
    )
    matrix = kernels.quantize(torch.randn(64, 256, device="cuda"), "nvfp4").pack()
    x, wide, cache, token = normal(256), normal(256, 64), normal(1, 128, 2, 64), normal(1, 2, 64)
    starts = torch.tensor([0, 64, 128], dtype=torch.int32, device="cuda")
    o, lse = kernels.attention(q, q, q, return_lse=True)
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    kept = flash(q, q, q)
    flat = q[0].transpose(0, 1).contiguous()

    def trained(function: Callable[..., Any]) -> Callable[..., Any]:
        """Its result, and the gradients of all that it is given."""

        def step(*given: Any) -> Any:
            with torch.enable_grad():
                result = function(*given)
                return torch.autograd.grad(result, given, result.detach())

        return step

    def leaves(*given: Any) -> tuple[Any, ...]:
        return tuple(one.detach().clone().requires_grad_() for one in given)

    return {
        "matmul": (kernels.matmul, torch.matmul, (a, b)),
        "matmul, 3 dimensions": (kernels.matmul, torch.matmul, (normal(2, 32, 64), b)),
        "matmul, rows that TMA can't read": (kernels.matmul, torch.matmul, (normal(64, 61), normal(61, 64))),
        "matmul, both transposed": (kernels.matmul, torch.matmul, (normal(64, 2).T, normal(64, 64).T)),
        "matmul, bias": (
            lambda a, b, c: kernels.matmul(a, b, bias=c),
            lambda a, b, c: torch.addmm(c, a, b),
            (a, b, bias),
        ),
        "scaled_matmul": (
            lambda e, f: kernels.scaled_matmul(e, f, ones, ones),
            lambda e, f: torch._scaled_mm(e, f, ones, ones, out_dtype=torch.bfloat16, use_fast_accum=True),
            (e, f),
        ),
        "grouped_matmul": (kernels.grouped_matmul, lambda a, b, c: torch._grouped_mm(a, b, offs=c), (a, groups, ends)),
        "gated_matmul": (kernels.gated_matmul, lambda x, a, b: of.silu(x @ a) * (x @ b), (a, b, w)),
        "quantized_matvec": (lambda x: kernels.quantized_matvec(matrix, x), lambda x: x @ wide, (x,)),
        "attention": (kernels.attention, of.scaled_dot_product_attention, (q, q, q)),
        "attention, packed": (
            lambda q: kernels.attention(q, q, q, cu_seqlens_q=starts),
            lambda q: torch.ops.aten._flash_attention_forward(q, q, q, starts, starts, 64, 64, 0.0, False, False),
            (flat,),
        ),
        "attention_backward": (
            lambda q: kernels.attention_backward(o, q, q, q, o, lse),
            lambda q: torch.ops.aten._scaled_dot_product_flash_attention_backward(
                o, q, q, q, kept[0], kept[1], None, None, 128, 128, 0.0, False, kept[6], kept[7]
            ),
            (q,),
        ),
        "attention, and its gradients": (
            trained(kernels.attention),
            trained(of.scaled_dot_product_attention),
            leaves(q, q, q),
        ),
        "matmul, and its gradients": (trained(kernels.matmul), trained(torch.matmul), leaves(a, b)),
        "rms_norm, and its gradients": (
            trained(kernels.rms_norm),
            trained(lambda x, w: of.rms_norm(x, (64,), w)),
            leaves(a, bias),
        ),
        "decode_attention": (
            lambda t: kernels.decode_attention(t, cache, cache, lengths),
            lambda t: of.scaled_dot_product_attention(t[:, :, None], q, q),
            (token,),
        ),
        "softmax": (kernels.softmax, lambda x: torch.softmax(x, -1), (a,)),
        "layer_norm": (kernels.layer_norm, lambda x, w, b: of.layer_norm(x, (64,), w, b), (a, bias, bias)),
        "rms_norm": (kernels.rms_norm, lambda x, w: of.rms_norm(x, (64,), w), (a, bias)),
        "rms_norm, residual": (
            lambda x, w, r: kernels.rms_norm(x, w, residual=r),
            lambda x, w, r: of.rms_norm(x + r, (64,), w),
            (a, bias, b),
        ),
        "cross_entropy": (kernels.cross_entropy, of.cross_entropy, (a, targets)),
        "cross_entropy, rows": (
            lambda x, t: kernels.cross_entropy(x, t, reduction="none"),
            lambda x, t: of.cross_entropy(x, t, reduction="none"),
            (a, targets),
        ),
    }  # fmt: skip


def with_result(torch: Any) -> dict[str, Pair]:
    """The same with a result that is given."""
    a, b, out = (torch.randn(64, 64, device="cuda").bfloat16() for _ in range(3))
    return {
        "matmul, out": (lambda a, b: kernels.matmul(a, b, out=out), lambda a, b: torch.matmul(a, b, out=out), (a, b)),
        "softmax, out": (lambda x: kernels.softmax(x, out=out), lambda x: torch.softmax(x, -1, out=out), (a,)),
    }


def measure(torch: Any, actions: dict[str, Action]) -> dict[str, float]:
    """The time of a call of each, in microseconds; what fails is left out, and named."""
    working = {}
    for name, action in actions.items():
        try:
            for _ in range(10):
                action()
            torch.cuda.synchronize()
            working[name] = action
        except Exception as problem:
            print(f"{name}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr)
    times: dict[str, list[float]] = {name: [] for name in working}
    gc.disable()
    for turn in range(ROWS):
        order = list(working.items())
        for name, action in order if turn % 2 else reversed(order):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                action()
            times[name].append((time.perf_counter() - start) / CALLS * 1e6)
    gc.enable()
    return {name: statistics.median(found) for name, found in times.items()}


def compiled(torch: Any, function: Callable[..., Any], given: tuple[Any, ...]) -> Action:
    made = torch.compile(lambda *arrays: function(*arrays), fullgraph=True, dynamic=False)
    return lambda: made(*given)


def main() -> None:
    torch = require_torch()
    everything = {**pairs(torch), **with_result(torch)}
    actions: dict[str, Action] = {}
    for name, (ours, theirs, given) in everything.items():
        actions[f"{name}/ptxlab"] = lambda ours=ours, given=given: ours(*given)  # type: ignore[misc]
        actions[f"{name}/torch"] = lambda theirs=theirs, given=given: theirs(*given)  # type: ignore[misc]
        if name in COMPILED:
            actions[f"{name}/ptxlab, compiled"] = compiled(torch, ours, given)
            actions[f"{name}/torch, compiled"] = compiled(torch, theirs, given)
    with torch.no_grad():
        found = measure(torch, actions)
    rows = []
    for name in everything:
        for suffix in ("", ", compiled"):
            own, other = (found.get(f"{name}/{whose}{suffix}") for whose in ("ptxlab", "torch"))
            if own is not None and other is not None:
                rows.append({"call": name + suffix, "ptxlab": own, "torch": other, "ratio": own / other})
                print(f"{name + suffix:32} {own:7.2f} {other:7.2f} {own / other:5.2f}")
    report = {
        "command": "python benchmarks/calls.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": describe(torch),
        "microseconds": rows,
    }
    text = json.dumps(report, indent=1) + "\n"
    Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "evidence" / "calls.json").write_text(text)


if __name__ == "__main__":
    main()

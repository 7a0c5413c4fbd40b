"""The lines of a kernel that cost most, as `ptxlab run --profile` shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptxlab.cli.origins import source_of
from ptxlab.cli.table import table

if TYPE_CHECKING:
    from ptxlab.ir import Function

MOST = 6  # lines that are shown for each reason
WIDEST = 72
COPIED = {
    "loaded": "to shared memory",
    "multicast": "of them by multicast",
    "stored": "to global memory",
    "exchanged": "to other blocks",
}
OPERANDS = {"operand_bytes": "of shared memory", "collector_bytes": "of them from a collector buffer at best"}
LIMITERS = {"shared": "shared memory", "blocks": "the number of blocks", "warps": "the number of warps"}


def profile_lines(kernel: Function, counters: dict[str, Any]) -> Iterator[str]:
    """Where the instructions go, what memory moves, and the lines that cost most."""
    total = max(counters["instructions"], 1)
    yield ""
    yield "instructions: " + ", ".join(f"{name} {count / total:.0%}" for name, count in counters["by_class"].items())
    for space, moved in sorted(counters["bytes"].items()):
        yield f"{space} memory: " + ", ".join(f"{amount:,} bytes {kind}" for kind, amount in moved.items())
    yield from _units(counters)
    requests = counters["requests"]
    if requests["wavefronts"]:
        extra = requests["wavefronts"] - requests["ideal_wavefronts"]
        yield f"shared memory: {requests['wavefronts']:,} wavefronts, {extra:,} of them for bank conflicts"
    if requests["split_requests"]:
        yield f"{requests['split_requests']:,} requests may be counted in parts: lanes of a warp were far apart"
    yield ""
    yield from table(list(_rows(kernel, counters)))
    yield ""


def _units(counters: dict[str, Any]) -> Iterator[str]:
    """What TMA and tensor cores did, and how many waves of blocks there are."""
    if "tma" in counters:
        yield "TMA: " + ", ".join(f"{amount:,} bytes {COPIED[name]}" for name, amount in counters["tma"].items())
    for unit, done in counters.get("mmas", {}).items():
        parts = [f"{done['count']:,} MMA{'s' * (done['count'] != 1)}, {done['flops']:,} FLOPs"]
        parts += [f"{done[name]:,} bytes {text}" for name, text in OPERANDS.items() if name in done]
        yield f"{unit}: {', '.join(parts)}"
    if "tensor_memory" in counters:
        yield f"tensor memory: {counters['tensor_memory']['columns']} columns of a block allocated at most"
    if "waves" in counters:
        found = counters["waves"]
        yield (
            f"waves: {found['waves']:.2f}, {found['blocks']:,} of {found['resident']:,} blocks that fit on "
            f"{'an' if found['gpu'][0] in 'AHLR' else 'a'} {found['gpu']} at once, registers not counted; "
            f"{found['blocks_per_sm']} an SM, limited by {LIMITERS.get(found['limiter'], found['limiter'])}"
        )


def _rows(kernel: Function, counters: dict[str, Any]) -> Iterator[list[str]]:
    """The lines with most instructions, those that move most and those that waste most, in the order of the text."""
    lines: dict[int, dict[str, int]] = counters["lines"]
    callers: dict[int, str] = counters.get("callers", {})
    module = kernel.module
    source = source_of(module) if module is not None else None
    language = "PTX" if module is None or source is module.source else "CUDA C++"
    yield ["line", "instructions", "bytes", "sectors", "wavefronts", language]
    chosen: set[int] = set()
    for cost in (_waste, _moved, lambda found: found["instructions"]):
        chosen.update(sorted((line for line in lines if cost(lines[line])), key=lambda line: -cost(lines[line]))[:MOST])
    text = source.text.split("\n") if source is not None else []
    for line in sorted(chosen):
        found, called = lines[line], f" (called from {callers[line]})" if line in callers else ""
        yield [
            str(line),
            f"{found['instructions']:,}",
            f"{found['bytes']:,}" if "bytes" in found else "-",
            _rate(found, "sectors", "global_requests"),
            _rate(found, "wavefronts", "shared_requests"),
            _shorten(text[line - 1]) + called if 0 < line <= len(text) else "",
        ]


def _waste(found: dict[str, int]) -> int:
    """Sectors and wavefronts beyond what the same bytes could do with."""
    return sum(found.get(name, 0) - found.get(f"ideal_{name}", 0) for name in ("sectors", "wavefronts"))


def _moved(found: dict[str, int]) -> int:
    """Sectors and wavefronts."""
    return found.get("sectors", 0) + found.get("wavefronts", 0)


def _rate(found: dict[str, int], name: str, requests: str) -> str:
    """How many a request takes: `4.0`, or `8.0 (ideal 4.0)`."""
    if not found.get(requests):
        return "-"
    paid, ideal = (found[key] / found[requests] for key in (name, f"ideal_{name}"))
    return f"{paid:.1f}" if paid == ideal else f"{paid:.1f} (ideal {ideal:.1f})"


def _shorten(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= WIDEST else shown[: WIDEST - 3] + "..."

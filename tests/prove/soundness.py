"""Whether what is proved is true: random kernels, and mutants of those that are proved, are run.

    python -m tests.prove.soundness --kernels 2000 --mutants 2000 --processes 16 --output FILE

A kernel that is proved is launched with several grids, sizes and schedules, with all detectors, and its smallest
launches are explored: all schedules that differ, up to a limit. A mutant of a proved kernel loses a barrier or a wait,
or has another address, mask, comparison or limit. One that is proved too is run in the same way: where no run goes
wrong it is counted as equivalent, with its change, for a person to read.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import ptxlab
from ptxlab.measure.machine import commit
from ptxlab.prove.replay import WRONG
from tests.prove.pool import results
from tests.prove.programs import make

LAUNCHES = ((1, 0), (1, 3), (1, 8), (2, 13), (2, 16), (3, 24), (3, 17))
EXPLORED = ((1, 8), (2, 13))
ASSUMED = ["len(x) == n", "len(y) == n"]
CHANGES = [
    (r"(@!?%p\d+ )?bar\.sync 0;", ""),
    (r"(@!?%p\d+ )?bar\.warp\.sync -1;", ""),
    (r"(@!?%p\d+ )?cp\.async\.wait_group \d;", ""),
    (r"cp\.async\.wait_group \d;", "cp.async.wait_group 3;"),
    (r"(@!?%p\d+ )?cp\.async\.commit_group;", ""),
    (r"(st\.shared\.u32 \[%r\d+)\]", r"\1+4]"),
    (r"(ld\.shared\.u32 %v, \[%r\d+)\]", r"\1+4]"),
    (r"(st\.shared\.u32 \[%r\d+)\]", r"\1+2]"),
    (r"(st\.global\.u32 \[%d\d+)\]", r"\1+4]"),
    (r"(ld\.global\.u32 %v, \[%d\d+)\]", r"\1+-4]"),
    (r"setp\.lt\.u32", "setp.le.u32"),
    (r"setp\.ge\.u32", "setp.gt.u32"),
    (r"setp\.eq\.u32", "setp.ne.u32"),
    (r"mov\.u32 (%r\d+), %t;", r"shr.u32 \1, %t, 1;"),
    (r", 4, %base;", ", 2, %base;"),
    (r", 15;", ", 31;"),
    (r"@!?%p\d+ (st|ld|cp)", r"\1"),
    (r"@(%p\d+) bra", r"@!\1 bra"),
]


def wrong_run(kernel: Any, schedules: int = 2, explored: int = 100) -> str | None:
    """What goes wrong in some launch, under a few schedules; in the small ones, under all, up to a limit."""
    for grid, n in LAUNCHES:
        args = [np.arange(n, dtype=np.uint32) + 5, np.arange(n, dtype=np.uint32) * 3 + 100, n]
        for seed in range(schedules):
            given = [np.array(one) if isinstance(one, np.ndarray) else one for one in args]
            found = kernel.launch(grid, 8, given, device="cpu", on_error="collect", timeout=60, seed=seed)
            codes = [one.code for one in found.diagnostics if one.level == "error" and one.code in WRONG]
            if codes:
                return f"{codes[0]} with grid {grid}, n {n}, seed {seed}"
        if (grid, n) in EXPLORED and explored:
            tried = ptxlab.explore(kernel, grid, 8, args, limit=explored, timeout=5)
            wrong = [one.code for one in tried.diagnostics if one.level == "error" and one.code in WRONG]
            if wrong:
                return f"{wrong[0]} with grid {grid}, n {n}, explored"
    return None


def level_of(text: str) -> str:
    """The verdict on a kernel, without replays."""
    kernel = ptxlab.parse(text)["kernel"]
    return ptxlab.prove(kernel, assume=ASSUMED, replays=False, timeout=30).level


def mutants(text: str, random: Random, count: int) -> list[tuple[str, str]]:
    """Some changes of a kernel, each with what it is."""
    body = text.index("mov.u32 %v, %g;")
    found = []
    for pattern, replacement in CHANGES:
        for hit in re.finditer(pattern, text[body:]):
            changed = hit.expand(replacement)
            start, end = body + hit.start(), body + hit.end()
            line = text.count("\n", 0, start) + 1
            found.append((text[:start] + changed + text[end:], f"line {line}: {hit[0]} -> {changed}"))
    return random.sample(found, min(count, len(found)))


def judge(given: tuple[int, int]) -> list[dict[str, Any]]:
    """The rows of a random kernel and of its mutants."""
    seed, count = given
    text = make(seed)
    level = level_of(text)
    row = {"seed": seed, "change": None, "level": level}
    if level != "proved":
        return [row]
    rows = [row | {"wrong": wrong_run(ptxlab.parse(text)["kernel"])}]
    for changed, change in mutants(text, Random(seed), count):
        row = {"seed": seed, "change": change, "level": level_of(changed)}
        if row["level"] == "proved":
            row["wrong"] = wrong_run(ptxlab.parse(changed)["kernel"])
        rows.append(row)
    return rows


def main() -> None:
    """Judge all, print what is wrong, and write the numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    each = -(-given.mutants * 4 // given.kernels)  # at least a quarter is proved
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    seeds = [(given.first + number, each) for number in range(given.kernels)]
    for found in results(judge, seeds, given.processes, given.seconds):
        for row in found:
            kind = "kernel" if row["change"] is None else "mutant"
            counts[f"{kind} {row['level']}"] += 1
            if row.get("wrong"):
                counts["contradiction"] += 1
                print(f"proved, but wrong: {row}", flush=True)
            if kind == "mutant" and row["level"] == "proved":
                rows.append(row)
    print(json.dumps(dict(counts), indent=1))
    if given.output is not None:
        written = {
            "commit": commit(),
            "processor": platform.machine(),
            "counts": counts,
            "first": given.first,
            "proved mutants": rows,
        }
        given.output.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()

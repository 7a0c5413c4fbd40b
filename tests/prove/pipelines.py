"""Whether mutants of pipelined kernels are proved: each order removed, each count, byte, parity and stage changed.

    python -m tests.prove.pipelines --processes 16 --output pipelines.json
    python -m tests.prove.pipelines specialized --every 5

What is proved is run with the example and its neighbors and schedules, and no run may go wrong. A mutant that is proved
and runs right is printed: it has to be equivalent, for the reason that its `Pipeline` says.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ptxlab
from ptxlab.kernels import tcgen05_gemm, wgmma_steps
from ptxlab.kernels.tcgen05_gemm.parts import Shape as TensorShape
from ptxlab.kernels.wgmma_steps.parts import Shape
from ptxlab.learn import text_of
from ptxlab.measure import Launch
from ptxlab.prove.replay import is_ruled_out
from tests.prove.pool import results

SCHEDULES = 3
ORDER = r"(?:mbarrier|bar|barrier|fence|wgmma\.(?:wait|commit|fence)|cp\.async\.bulk\.(?:wait|commit)|tcgen05\.(?:commit|wait|fence|alloc|dealloc))"  # noqa: E501
GUARD = r"(?:@!?%\w+ )?"
CHANGES: list[tuple[str, str]] = [
    (rf"^    {GUARD}{ORDER}\S* [^\n]*;$|^    {GUARD}{ORDER}[^\s;]*;$", ""),
    (r"(mbarrier\.init\S* [^\n]*), (\d+);$", r"\1, {+1};"),
    (r"(expect_tx\S* [^\n]*), (\d+);$", r"\1, {+16};"),
    (r"((?:wait_group|wait_group\.read|aligned)) (\d+);$", r"\1 {+1};"),
    (r"(mov\.u32 %\w+), ([01]);$", r"\1, {^1};"),
    (r"(try_wait\S* [^\n]*), ([01]);$", r"\1, {^1};"),
    (r"(setp\.eq\.u32 %\w+, %r\d+), ([2-9]);$", r"\1, {+1};"),
    (r"(mad\.lo\.u32 %\w+, %\w+), (\d{2,}|8), ", r"\1, {//2}, "),
    (r"@%\w+ (?:xor\.b32|mov\.u32) %\w+, [^\n]*;$", ""),
    (r"setp\.gt\.u32", "setp.ge.u32"),
    (r"setp\.lt\.u32", "setp.le.u32"),
    (r"setp\.eq\.u32 (%\w+, %\w+, 0;)", r"setp.ne.u32 \1"),
    (r"(add\.u32 %\w+, %\w+), 1;$", r"\1, 2;"),
]
"""What is replaced, line by line; a number in braces is computed from the second group."""


class Pipeline(NamedTuple):
    """A launch, what is assumed, and launches of other sizes that a proof is tried with."""

    launch: Callable[[int], Launch]
    assume: list[str]
    sizes: tuple[int, ...]
    equivalent: tuple[tuple[str, str], ...] = ()
    """Why mutants that are proved are right, by a part of the changed line."""


def specialized(k: int) -> Launch:
    """Step 3 of `wgmma_steps`."""
    a, b, d = (np.zeros(shape, np.float16) for shape in ((128, k), (32, k), (128, 32)))
    return wgmma_steps.product(a, b, d, "specialized", Shape(128, 16, stages=2, groups=2))


def tensor_memory(step: str) -> Callable[[int], Launch]:
    """A step of `tcgen05_gemm`."""

    def launch(k: int) -> Launch:
        a, b, d = (np.zeros(shape, np.float16) for shape in ((128, k), (64, k), (128, 64)))
        return tcgen05_gemm.product(a, b, d, step, TensorShape(64, 2))

    return launch


STORED = ["len(d) == m * n", "n % 16 == 0"]
ADDS = (
    ("setp.gt.u32", "it says whether the first MMA adds to its accumulators, which is not what is proved"),
    ("tcgen05.dealloc", "that tensor memory is freed is not what is proved"),
)
MORE = ("line 94: setp.lt.u32", "one K tile more, of zeros: one thread copies, waits and multiplies in each turn")
LATE = (
    *((f"line {line}:", "the parity of the side that only arrives is not read") for line in (93, 158, 178)),
    *((f"line {line}:", "the stage is not used after the last arrival") for line in (175, 176, 177)),
    ("line 173:", "of one tile, no thread waits for the last arrival at a stage"),
    ("line 112:", "that accumulators are not touched is not what is proved"),
)
PIPELINES = {
    "specialized": Pipeline(specialized, [*STORED, "k >= 1"], (64, 128, 192, 448), LATE),
    "tcgen05 one_tile": Pipeline(tensor_memory("one_tile"), [*STORED, "k >= 1"], (64, 128, 320), (*ADDS, MORE)),
    "tcgen05 ring": Pipeline(tensor_memory("ring"), [*STORED, "k >= 1"], (64, 128, 192, 448), ADDS),
    "tcgen05 specialized": Pipeline(tensor_memory("specialized"), ["k >= 1"], (64, 128, 192, 448), ADDS),
}


def mutants(text: str) -> list[tuple[str, str]]:
    """All changes of a kernel, each with what it is."""
    found: dict[str, str] = {}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for pattern, replacement in CHANGES:
            for hit in re.finditer(pattern, line):
                changed = line[: hit.start()] + _expanded(hit, replacement) + line[hit.end() :]
                whole = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
                if changed != line:
                    found.setdefault(whole, f"line {number + 1}: {line.strip()} -> {changed.strip()}")
    return list(found.items())


def _expanded(hit: re.Match[str], replacement: str) -> str:
    def computed(one: re.Match[str]) -> str:
        return str(eval(f"{hit[2]} {one[1]}"))  # of a number of the text and one of `CHANGES`

    return hit.expand(re.sub(r"\{(.*?)\}", computed, replacement))


def judge(given: tuple[str, int]) -> dict[str, Any]:
    """The verdict on a mutant, and what goes wrong in a run if it is proved."""
    name, number = given
    pipeline = PIPELINES[name]
    example = pipeline.launch(pipeline.sizes[-1])
    text = text_of(example)
    mutant, change = mutants(text)[number]
    row: dict[str, Any] = {"kernel": name, "number": number, "change": change}
    try:
        made = example.changed((text, mutant))
        found = ptxlab.prove(made, assume=pipeline.assume, replays=False, timeout=150)
    except ptxlab.PtxError:
        return row | {"level": "not PTX"}
    row["level"] = found.level
    if found.level == "proved":
        row["wrong"] = wrong_run(pipeline, text, mutant)
        row["reason"] = next((why for part, why in pipeline.equivalent if part in change), None)
    return row


def wrong_run(pipeline: Pipeline, text: str, mutant: str) -> str | None:
    """What goes wrong in runs of a kernel."""
    for size in pipeline.sizes:
        launch = pipeline.launch(size).changed((text, mutant))
        for schedule in range(SCHEDULES):
            run = launch.function.launch(launch.grid, launch.block, launch.args, shared=launch.shared, device="cpu",
                                         on_error="collect", timeout=60, seed=schedule)  # fmt: skip
            codes = [one.code for one in run.diagnostics if is_ruled_out(one)]
            if codes:
                return f"{codes[0]} with {size}, seed {schedule}"
    return None


def main() -> None:
    """Judge all mutants, or every so many of some kernels, and print what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*", default=list(PIPELINES))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    chosen = []
    for name in given.kernels:
        count = len(mutants(text_of(PIPELINES[name].launch(PIPELINES[name].sizes[-1]))))
        chosen += [(name, number) for number in range(given.first, count, given.every)]
    counts: Counter[str] = Counter()
    proved = []
    for number, row in enumerate(results(judge, chosen, given.processes, given.seconds), 1):
        if number % 20 == 0:
            print(number, "of", len(chosen), flush=True)
        counts[f"{row['kernel']} {row['level']}"] += 1
        if row["level"] == "proved":
            proved.append(row)
            word = "proved, but wrong" if row["wrong"] else "proved, with a reason" if row["reason"] else "proved"
            counts[word] += 1
            print(f"{word}: {row}", flush=True)
    print(dict(counts))
    if given.output is not None:
        given.output.write_text(json.dumps({"counts": counts, "proved": proved}, indent=1))


if __name__ == "__main__":
    main()

"""Whether mutants of pipelined kernels are proved: each order removed, each count, byte, parity and stage changed.

    python -m tests.prove.pipelines --processes 16 --output pipelines.jsonl
    python -m tests.prove.pipelines specialized --every 5

They come in an order that is shuffled, so those that are judged in the time given are a fair sample; what is in the
file of results is not judged again.

What is proved is run with the example and its neighbors and schedules, and no run may go wrong. A mutant that is proved
and runs right is printed: it has to be equivalent, for the reason that its `Pipeline` says.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ptxlab
from ptxlab.kernels import nvfp4_gemm, tcgen05_gemm, wgmma_gemm, wgmma_steps
from ptxlab.kernels.nvfp4_gemm.kernel import Shape as ScaledShape
from ptxlab.kernels.parts.shapes import Shape as GemmShape
from ptxlab.kernels.tcgen05_gemm.parts import Shape as TensorShape
from ptxlab.kernels.wgmma_steps.parts import Shape
from ptxlab.learn import text_of
from ptxlab.measure import Launch
from ptxlab.measure.data import Blank
from ptxlab.prove.answers.replay import is_ruled_out
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
    (r"(mapa\S* %\w+, %\w+), %\w+;$", r"\1, %rank;"),
    (r"(mov\.u16 %\w+), 3;$", r"\1, 1;"),
    (r"release\.cluster", "release.cta"),
    (r"(tcgen05\.cp\S* \[%r\d+\+)(\d+)", r"\g<1>{//2}"),
    (r"(tcgen05\.mma\S* .*\[%r\d+\+)(\d+)(?=\], %p)", r"\g<1>{//2}"),
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


def persistent(k: int) -> Launch:
    """Step 4 of `wgmma_steps`: two tiles and more for one block."""
    a, b, d = (np.zeros(shape, np.float16) for shape in ((256, k), (128, k), (256, 128)))
    return wgmma_steps.product(a, b, d, "persistent", Shape(128, 64, stages=2, groups=2), blocks=1)


def ping_pong(k: int) -> Launch:
    """Step 5 of `wgmma_steps`: two warpgroups that take turns."""
    a, b, d = (np.zeros(shape, np.float16) for shape in ((128, k), (192, k), (128, 192)))
    return wgmma_steps.product(a, b, d, "ping_pong", Shape(64, 64, stages=2), blocks=1)


def gemm(shape: GemmShape) -> Callable[[int], Launch]:
    """`wgmma_gemm`, persistent: a producer and warpgroups, several tiles for one block."""

    def launch(k: int) -> Launch:
        a, b, d = (np.zeros(extents, np.float16) for extents in ((128, k), (128, k), (128, 128)))
        return replace(wgmma_gemm.product(a, b, d, shape), grid=1)

    return launch


def multicast_gemm(k: int) -> Launch:
    """`wgmma_gemm` in clusters of two: each block copies a half of what both multiply with, to both."""
    a, b, d = (np.zeros(extents, np.float16) for extents in ((256, k), (256, k), (256, 256)))
    return replace(wgmma_gemm.product(a, b, d, GemmShape(columns=64, cluster=2)), grid=2)


def tensor_memory(step: str, tiles: int = 1) -> Callable[[int], Launch]:
    """A step of `tcgen05_gemm`."""

    def launch(k: int) -> Launch:
        a, b, d = (np.zeros(shape, np.float16) for shape in ((128, k), (64 * tiles, k), (128, 64 * tiles)))
        return tcgen05_gemm.product(a, b, d, step, TensorShape(64, 2), blocks=1)

    return launch


def scaled(k: int) -> Launch:
    """`nvfp4_gemm`, persistent: scale factors are copied to tensor memory."""
    shape = ScaledShape(stages=2)
    return nvfp4_gemm.product(**nvfp4_gemm.arrays(Blank(), "nvfp4", 128, 384, k), shape=shape, blocks=1)


def pair(k: int) -> Launch:
    """Step 5 of `tcgen05_gemm`: two blocks of a cluster multiply together, three tiles for each pair."""
    a, b, d = (np.zeros(shape, np.float16) for shape in ((256, k), (384, k), (256, 384)))
    return tcgen05_gemm.product(a, b, d, "pair", TensorShape(64, 2), blocks=2)


MULTICAST = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry multicast(.param .align 64 .b8 map[128], .param .u64 y, .param .u32 count)
.reqnctapercluster 2
{
    .reg .pred %p<9>;
    .reg .b16 %both;
    .reg .b32 %t, %lane, %rank, %count, %stage, %parity, %turn, %r<12>;
    .reg .b64 %map, %y, %d;
    .shared .align 128 .b32 tile[128];
    .shared .align 8 .b64 filled[2];
    .shared .align 8 .b64 emptied[2];
    ld.param.u64 %y, [y];
    ld.param.u32 %count, [count];
    mov.u64 %map, map;
    cvta.param.u64 %map, %map;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared.b64 [filled], 1;
    @%p0 mbarrier.init.shared.b64 [filled+8], 1;
    @%p0 mbarrier.init.shared.b64 [emptied], 2;
    @%p0 mbarrier.init.shared.b64 [emptied+8], 2;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u16 %both, 3;
    mov.u32 %stage, 0;
    mov.u32 %parity, 1;
    mov.u32 %turn, 0;
    setp.eq.u32 %p1, %count, 0;
    @%p1 bra end;
    setp.lt.u32 %p2, %t, 32;
    @!%p2 bra readers;
    @!%p0 bra end;
copies:
    mov.u32 %r0, emptied;
    mad.lo.u32 %r0, %stage, 8, %r0;
empty:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r0], %parity;
    @!%p3 bra empty;
    mov.u32 %r1, filled;
    mad.lo.u32 %r1, %stage, 8, %r1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %stage, 256, %r2;
    mad.lo.u32 %r2, %rank, 128, %r2;
    mad.lo.u32 %r3, %turn, 2, %rank;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
        [%r2], [%map, {0, %r3}], [%r1], %both;
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p4, %stage, 2;
    @%p4 mov.u32 %stage, 0;
    @%p4 xor.b32 %parity, %parity, 1;
    add.u32 %turn, %turn, 1;
    setp.lt.u32 %p5, %turn, %count;
    @%p5 bra copies;
    bra.uni end;
readers:
    mov.u32 %parity, 0;
tiles:
    mov.u32 %r4, filled;
    mad.lo.u32 %r4, %stage, 8, %r4;
full:
    mbarrier.try_wait.parity.shared.b64 %p6, [%r4], %parity;
    @!%p6 bra full;
    mov.u32 %r5, tile;
    mad.lo.u32 %r5, %stage, 256, %r5;
    mad.lo.u32 %r5, %lane, 8, %r5;
    ld.shared.b32 %r6, [%r5];
    mad.lo.u32 %r7, %rank, %count, %turn;
    mad.lo.u32 %r7, %r7, 32, %lane;
    mad.wide.u32 %d, %r7, 4, %y;
    st.global.b32 [%d], %r6;
    bar.warp.sync -1;
    mov.u32 %r8, emptied;
    mad.lo.u32 %r8, %stage, 8, %r8;
    setp.lt.u32 %p7, %lane, 2;
    mapa.shared::cluster.u32 %r9, %r8, %lane;
    @%p7 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p4, %stage, 2;
    @%p4 mov.u32 %stage, 0;
    @%p4 xor.b32 %parity, %parity, 1;
    add.u32 %turn, %turn, 1;
    setp.lt.u32 %p5, %turn, %count;
    @%p5 bra tiles;
end:
    bar.warp.sync -1;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ret;
}
"""


def multicast(count: int) -> Launch:
    """Two blocks that each copy a half of all tiles to both: a stage is empty when both have read it."""
    x, y = np.arange(64 * count, dtype=np.uint32).reshape(-1, 32), np.zeros((2, count, 32), np.uint32)
    kernel = ptxlab.parse(MULTICAST, "multicast.ptx")["multicast"]
    return Launch(kernel, 2, 64, [ptxlab.tensor_map(x, box=(1, 32)), y, count])


SIZES = ["k >= 1", "m <= 1048576", "n <= 1048576"]
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
    *(
        (f"setp.lt.u32 %{one}, %r2;", "n is a multiple of 16, and no such column is")
        for one in ("p20, %r70", "p25, %r82")
    ),
)
PIPELINES = {
    "multicast": Pipeline(
        multicast,
        ["grid.x == 2", "len(y) == 64 * count"],
        (2, 3, 7, 1),
        (
            ("mad.lo.u32 %r5, %lane", "other words of the tile are read"),
            ("line 101: bar.warp.sync", "a barrier of all threads is after it"),
        ),
    ),
    "specialized": Pipeline(specialized, [*STORED, "k >= 1"], (64, 128, 192, 448), LATE),
    "persistent": Pipeline(persistent, SIZES, (64, 128, 192, 448)),
    "ping_pong": Pipeline(
        ping_pong,
        SIZES,
        (64, 128, 192, 448),
        (
            ("%r40", "the parity of the side that only arrives is not read"),
            ("wgmma.fence", "that accumulators are not touched is not what is proved"),
            ("line 280:", "the remainder by the number of stages is taken before the next use"),
        ),
    ),
    "gemm": Pipeline(gemm(wgmma_gemm.SMALL), SIZES, (64, 128, 192, 448)),
    "gemm ping-pong": Pipeline(
        gemm(GemmShape(columns=64, pingpong=True)),
        SIZES,
        (64, 128, 192, 448),
        (("line 293:", "the remainder by the number of stages is taken before the next use"),),
    ),
    "gemm cluster": Pipeline(
        multicast_gemm,
        SIZES,
        (64, 128, 192, 448),
        (
            ("line 82:", "the predicate is not used"),
            ("%r86", "the parity of the side that only arrives is not read"),
        ),
    ),
    "tcgen05 persistent": Pipeline(tensor_memory("persistent", 3), SIZES, (64, 128, 192, 448), ADDS),
    "tcgen05 pair": Pipeline(pair, SIZES, (64, 128, 192, 448), ADDS),
    "nvfp4": Pipeline(
        scaled, SIZES, (256, 512, 1792), (*ADDS, ("line 220:", "other scale factors of the same stage are read"))
    ),
    "tcgen05 one_tile": Pipeline(tensor_memory("one_tile"), [*STORED, "k >= 1"], (64, 128, 320), (*ADDS, MORE)),
    "tcgen05 ring": Pipeline(tensor_memory("ring"), [*STORED, "k >= 1"], (64, 128, 192, 448), ADDS),
    "tcgen05 specialized": Pipeline(tensor_memory("specialized"), ["k >= 1"], (64, 128, 192, 448), ADDS),
}


LONG = ("persistent", "ping_pong", "gemm cluster", "gemm ping-pong", "nvfp4", "tcgen05 pair", "tcgen05 persistent")
"""Those whose proof takes a minute of a core."""
WRONG = [
    ("specialized", r"\], 8;", "], 4;", ("hang", "data-race")),
    ("specialized", r"wait_group\.sync\.aligned 1;", "wait_group.sync.aligned 2;", ("data-race",)),
    ("tcgen05 ring", r"\[done\], 0;", "[done], 1;", ("data-race",)),
    ("tcgen05 ring", r"    tcgen05\.fence::after_thread_sync;\n", "", ("missing-tensor-fence",)),
    ("tcgen05 ring", r"(%rd14, %rd15), 0x8100010", r"\1, 0x8080010", ("data-race",)),  # an MMA of another shape
    ("tcgen05 specialized", r"    fence\.proxy\.async\.shared::cta;\n", "", ("missing-proxy-fence",)),
    ("tcgen05 specialized", r"    barrier\.sync\.aligned 1, 128;\n", "", ("data-race", "missing-proxy-fence")),
    ("ping_pong", r"xor\.b32 (%r46), %r6, 1;", r"mov.u32 \1, 0;", ("hang",)),
    ("ping_pong", r"xor\.b32 (%r46), %r6, 1;", r"mov.u32 \1, 1;", ("data-race",)),
    ("nvfp4", r"\[%r20\+256\], %rd15;", "[%r20+128], %rd15;", ("data-race",)),  # scale factors in accumulators
    ("nvfp4", r"\], 36864;", "], 32768;", ("data-race", "hang")),
    ("nvfp4", r"    tcgen05\.commit\S* \[%r111\];\n", "", ("hang",)),
    ("tcgen05 pair", r"mov\.b?u?16 (%rs\d+), 3;", r"mov.u16 \1, 1;", ("hang",)),  # a commit for one block
    ("tcgen05 pair", r"(mapa\S* %r261, %r260), 0;", r"\1, %r7;", ("hang",)),
]
"""Wrong twins: of which, what is replaced, and what their run finds."""


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
    output: Path | None = given.output
    rows = [json.loads(line) for line in output.read_text().splitlines()] if output and output.exists() else []
    known = {(row["kernel"], row["number"]) for row in rows}
    chosen = []
    for name in given.kernels:
        count = len(mutants(text_of(PIPELINES[name].launch(PIPELINES[name].sizes[-1]))))
        chosen += [(name, number) for number in range(given.first, count, given.every)]
    random.Random(0).shuffle(chosen)
    counts: Counter[str] = Counter()
    left = [one for one in chosen if one not in known]
    for row in results(judge, left, given.processes, given.seconds):
        rows.append(row)
        if output is not None:
            with output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    for row in rows:
        counts[f"{row['kernel']} {row['level']}"] += 1
        if row["level"] == "proved":
            word = "proved, but wrong" if row["wrong"] else "proved, with a reason" if row["reason"] else "proved"
            counts[word] += 1
            print(f"{word}: {row}")
    print(len(rows), "of", len(chosen), dict(counts))


if __name__ == "__main__":
    main()

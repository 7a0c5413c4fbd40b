"""Whether rings that are proved are right: random ones, most with something wrong, are proved and run.

    python -m tests.prove.rings --kernels 2000 --processes 16

A warp copies, one or two warps read, by mbarriers for full and for empty stages. Each choice is the right one most of
the time. What is proved is run with several numbers of tiles and schedules, and no run may go wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from random import Random
from typing import Any

import numpy as np

import ptxlab
from ptxlab.prove.answers.replay import WRONG
from tests.prove.pool import results

COUNTS = (1, 2, 3, 5, 8, 13)
ASSUMED = ["count >= 1", "rounds >= 1", "grid.x == 1"]
WAIT = """{name}:
    mbarrier.try_wait.parity.shared.b64 %done, [{address}], %parity;
    @!%done bra {name};
"""
ADVANCE = """    add.u32 %stage, %stage, 1;
    setp.eq.u32 %last, %stage, {stages};
    @%last mov.u32 %stage, 0;
    {flip}
    add.u32 %tile, %tile, 1;
    setp.{compared}.u32 %p1, %tile, %count;
"""


def drained(seed: int, stages: int, *, is_right: bool) -> str:
    """Waits of the producer after its loops, for all stages; or for fewer, for more, or otherwise."""
    random = Random(-1 - seed)
    waits = []
    for number in range(stages if is_right or random.randrange(3) else max(0, stages + random.choice((-1, 1)))):
        step = [
            "mad.lo.u32 %empty_at, %stage, 8, %empty;",
            WAIT.format(name=f"drained{number}", address="%empty_at"),
            "add.u32 %stage, %stage, 1;",
            f"setp.eq.u32 %last, %stage, {stages};",
            "@%last mov.u32 %stage, 0;",
            "@%last xor.b32 %parity, %parity, 1;",
        ]
        if not is_right and random.randrange(8) == 0:
            del step[random.randrange(len(step))]
        waits += step
    return "".join(f"    {one}\n" for one in waits)


def ring(
    seed: int, *, is_right: bool = False, is_nested: bool = False, is_drained: bool = False
) -> tuple[str, int, int]:
    """A random ring: its text, its threads, and the bytes of a tile; perhaps one that continues in an outer loop."""
    random = Random(seed)

    def choose(right: Any, *wrong: Any, often: int = 12) -> Any:
        return right if is_right or random.randrange(often) else random.choice(wrong)

    stages, warps = random.choice((1, 2, 2, 3, 4)), random.choice((1, 1, 2))
    readers = 32 * warps
    tile = 4 * readers
    way = random.choice(("all", "all", "lane", "lane" if is_right else "alone"))  # who says that a stage is empty
    arrivals = {"all": readers, "lane": warps, "alone": warps}[way]
    address = f"mad.lo.u32 %r4, %stage, {choose(tile, tile // 2, 2 * tile)}, %tiles;"
    read = choose("ld.shared.u32 %value, [%r4];", "st.shared.u32 [%r4], %r0;", often=8)
    arrive = "mbarrier.arrive.shared.b64 _, [%empty_at];"
    if way != "all":
        arrive = f"{'bar.warp.sync -1;' if way == 'lane' else ''}\n    @%lane0 {arrive}"
    body = [f"{address}\n    mad.lo.u32 %r4, %r0, 4, %r4;\n    {read}\n    add.u32 %sum, %sum, %value;", arrive]
    body = choose(body, body[::-1])
    fill = ["mbarrier.arrive.expect_tx.shared.b64 _, [%full_at], "
            f"{choose(tile, tile // 2, 2 * tile)};",
            f"{address}\n    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%from], "
            f"{choose(tile, tile // 2, often=20)}, [%full_at];"]  # fmt: skip
    fence = choose("fence.proxy.async.shared::cta;", "", often=4) if read.startswith("st") else ""
    flip = "@%last xor.b32 %parity, %parity, 1;"

    def advance(label: str) -> str:
        modulus = choose(stages, stages + 1, max(1, stages - 1), often=20)
        changes, compared = choose(flip, "", often=20), choose("lt", "le", often=20)
        text = ADVANCE.format(stages=modulus, flip=changes, compared=compared)
        return f"{text}    @%p1 bra {label};\n"

    def again(label: str) -> tuple[str, str]:
        """The start and the end of an outer loop: the ring continues where it was."""
        if not is_nested:
            return "", ""
        start = choose("", "mov.u32 %stage, 0;", f"mov.u32 %parity, {int(label == 'produce')};", often=16)
        more = choose("", "add.u32 %count, %count, 1;", "xor.b32 %parity, %parity, 1;", often=16)
        compared = choose("lt", "le", often=20)
        return (f"    mov.u32 %round, 0;\n{label}_more:\n    mov.u32 %tile, 0;\n    {start}\n",
                f"    {more}\n    add.u32 %round, %round, 1;\n    setp.{compared}.u32 %p1, %round, %rounds;\n"
                f"    @%p1 bra {label}_more;\n")  # fmt: skip

    (consume_more, consumed), (produce_more, produced) = again("consume"), again("produce")
    late = is_nested and random.randrange(3) == 0  # a stage is given back in the next turn, the last one after all
    if late:
        give = body[body.index(arrive)].replace("%empty_at", "%r5")
        place = "mad.lo.u32 %r5, %late, 8, %empty;"
        step = choose(
            f"""add.u32 %late, %late, 1;
    setp.eq.u32 %last, %late, {stages};
    @%last mov.u32 %late, 0;""",
            "",
            often=20,
        )
        skip = choose("setp.eq.u32 %p1, %tile, 0;\n    @%p1 bra kept;", "", often=20)
        body[body.index(arrive)] = f"{skip}\n    {place}\n    {give}\n    {step}\nkept:"
        last = f"    {place}\n    {give}\n    {step}\n"
        consumed = choose(last, "", often=12) + consumed
    at = "    mad.lo.u32 %full_at, %stage, 8, %full;\n    mad.lo.u32 %empty_at, %stage, 8, %empty;\n"
    waits = [choose(WAIT.format(name=name, address=f"%{of}_at"), "", often=20) for name, of in
             (("filled", "full"), ("emptied", "empty"))]  # fmt: skip
    text = f""".version 8.6
.target sm_90
.address_size 64
.visible .entry ring(.param .u64 x, .param .u64 y, .param .u32 count, .param .u32 rounds)
{{
    .reg .pred %p<2>, %done, %last, %lane0;
    .reg .b32 %r<6>, %count, %stage, %parity, %tile, %full, %empty, %full_at, %empty_at, %tiles, %value, %sum;
    .reg .b32 %round, %rounds, %late;
    .reg .b64 %x, %y, %to, %from;
    .shared .align 128 .b8 tiles[{2 * tile * stages}];
    .shared .align 8 .b64 full[{stages + 1}];
    .shared .align 8 .b64 empty[{stages + 1}];
    mov.u32 %r0, %tid.x;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %count, [count];
    ld.param.u32 %rounds, [rounds];
    mov.u32 %late, 0;
    mov.u32 %full, full;
    mov.u32 %empty, empty;
    mov.u32 %tiles, tiles;
    and.b32 %r1, %r0, 31;
    setp.eq.u32 %lane0, %r1, 0;
    setp.lt.u32 %p0, %r0, {stages};
    mad.lo.u32 %r2, %r0, 8, %full;
    mad.lo.u32 %r3, %r0, 8, %empty;
    @%p0 mbarrier.init.shared.b64 [%r2], {choose(1, 2, often=20)};
    @%p0 mbarrier.init.shared.b64 [%r3], {choose(arrivals, arrivals + 1, max(1, arrivals // 2))};
    {choose("bar.sync 0;", "", often=20)}
    mov.u32 %stage, 0;
    mov.u32 %tile, 0;
    mov.u32 %sum, 0;
    setp.ge.u32 %p0, %r0, {readers};
    @%p0 bra producer;
    mov.u32 %parity, {choose(0, 1)};
{consume_more}consume:
{at}{waits[0]}    {body[0]}
    {fence}
    {body[1]}
{advance("consume")}{consumed}    mad.wide.u32 %to, %r0, 4, %y;
    st.global.u32 [%to], %sum;
    ret;
producer:
    setp.ne.u32 %p0, %r0, {readers};
    @%p0 ret;
    mov.u32 %parity, {choose(1, 0)};
{produce_more}produce:
{at}{waits[1]}    {fill[0]}
    mad.wide.u32 %from, %tile, {tile}, %x;
    {fill[1]}
{advance("produce")}{produced}{drained(seed, stages, is_right=is_right) if is_drained else ""}    ret;
}}
"""
    return text, readers + 32, tile


def judge(seed: int) -> tuple[int, str, str | None]:
    """The verdict on a ring, every second one in an outer loop, and what goes wrong in a run if it is proved.

    The producer of every third one waits for all stages after its loops.
    """
    text, threads, tile = ring(seed, is_nested=seed % 2 == 1, is_drained=seed % 3 == 2)
    kernel = ptxlab.parse(text, "ring.ptx")["ring"]
    given = [*ASSUMED, f"len(x) == {tile // 4} * count + {tile}", f"len(y) == {tile // 4}"]
    level = ptxlab.prove(kernel, block=threads, assume=given, replays=False, timeout=60).level
    if level != "proved":
        return seed, level, None
    for count in COUNTS:
        for schedule in range(3):
            x = np.arange(tile // 4 * count + tile, dtype=np.uint32)
            y = np.zeros(tile // 4, np.uint32)
            args = [x, y, count, 1 + (count + schedule) % 4]
            run = kernel.launch(1, threads, args, device="cpu", on_error="collect", timeout=60, seed=schedule)
            codes = [one.code for one in run.diagnostics if one.level == "error" and one.code in WRONG]
            if codes:
                return seed, level, f"{codes[0]} with {count} tiles, seed {schedule}"
    return seed, level, None


def main() -> None:
    """Judge many rings, and print what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    seeds = range(given.first, given.first + given.kernels)
    for seed, level, wrong in results(judge, seeds, given.processes, given.seconds):
        counts[level] += 1
        if wrong is not None:
            counts["contradiction"] += 1
            print(f"proved, but wrong: seed {seed}: {wrong}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()

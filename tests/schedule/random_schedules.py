"""Random schedules of all algorithms: each is right and has no findings, or is refused with a reason.

python -m tests.schedule.random_schedules COUNT [--seed 0] [--processes 16] [--seconds 540] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, launching, schedule
from tests.schedule.algorithms import (
    ALGORITHMS,
    NEED_STEPS,
    attention,
    causal,
    experts,
    linear,
    linear_of_eights,
    linear_of_fours,
    log_sum,
    matmul_of_halves,
    pointwise,
    products,
    weighted,
)

PRODUCTS, ONLINE = (
    (matmul_of_halves, linear, linear_of_eights, products, experts, pointwise),
    (log_sum, weighted, attention, causal),
)
ATTENTION = (attention, causal)
TILES = (2, 3, 4, 5, 8, 16, 32)
LARGEST = 70  # extent that is drawn, where a tile has less than 128 rows
EMPTY = 0.03  # of sizes are zero
PROVED = 0.1
MOST_RUN = 1_000_000  # iterations of all loops that are run: some schedules have one thread for many
MOST_PROVED = 200_000  # of what is compared for all values: `equal` has a term for each
MOST_SERIAL = 2_000  # of these by one thread: `equal` takes a turn for each
LONGEST = 1500  # lines of PTX: compiling more takes too long for what it finds
SECONDS = 200  # of CPU that one schedule may take


def draw(chance: random.Random) -> tuple[Schedule, list[str]]:
    """A schedule of some steps that were not refused, and the reasons of those that were."""
    algorithm = chance.choice([*ALGORITHMS, *NEED_STEPS])
    fixed = {size: chance.choice((8, 12, 33)) for size in algorithm.sizes if chance.random() < 0.15}
    if algorithm is linear_of_fours:
        fixed.pop("k", None)  # it is a multiple of 32
    made = schedule(algorithm, "sm_100a" if chance.random() < 0.3 else "sm_90a", **fixed)
    refused: list[str] = []
    parallel = [axis for axis in algorithm.axes if axis not in algorithm.reduced]

    def attempt(name: str, *arguments: Any, **options: Any) -> bool:
        try:
            getattr(made, name)(*arguments, **options)
        except PtxError as problem:
            text = f"{name}{arguments}{options}: {problem.diagnostics[0].message}"
            refused.append(text)
            return False
        return True

    if algorithm in ONLINE and chance.random() < 0.7:
        attempt("online", "j")
    if algorithm is linear_of_fours or (algorithm in PRODUCTS and chance.random() < 0.7):
        draw_tensor(made, attempt, chance)
        return made, refused
    if algorithm in ATTENTION and made.target == "sm_90a" and chance.random() < 0.8:
        draw_attention(made, attempt, chance)
        return made, refused
    for number in range(chance.randint(0, 4)):
        chosen = chance.sample(parallel, chance.randint(1, min(2, len(parallel))))
        tiles = TILES if number == 0 else (1, 2, 4, 8)
        if attempt("tile", **{axis: chance.choice(tiles) for axis in chosen}) and chance.random() < 0.8:
            attempt("blocks" if number == 0 else "threads")
    for axis in algorithm.axes:
        if chance.random() < 0.5:
            attempt("tile", **{axis: chance.choice((*TILES, 4, 8))})
    for _ in range(chance.randint(0, 3)):
        attempt(chance.choice(("threads", "blocks", "unroll", "threads")), chance.choice(made.state.order))
    reduced, later = [axis for axis in algorithm.axes if axis in algorithm.reduced], drawn_later(made)
    if reduced and later.random() < 0.15:
        axis, tile = later.choice(reduced), later.choice((1, 4, 16))
        blocks = later.choice((2, 3, 4))
        if attempt("tile", **{axis: tile * blocks}) and attempt("tile", **{axis: tile}):
            attempt("cluster")
    serial = made.state.serial(algorithm.axes)
    if len(serial) > 1 and chance.random() < 0.7:
        attempt("reorder", *chance.sample(serial, chance.randint(2, len(serial))))
    names = list(algorithm.arrays)
    read = [name for name in names if name not in algorithm.outputs]
    for _ in range(chance.randint(0, 4)):
        options: dict[str, Any] = {"in_": chance.choice(("shared", "registers"))}
        if chance.random() < 0.5:
            options["at"] = chance.choice([*made.state.order, ""])
        if options["in_"] == "shared":
            options |= {"transposed": chance.random() < 0.3, "pad": chance.choice((0, 0, 1, 4))}
        attempt("stage", chance.choice(read if read and chance.random() < 0.95 else names), **options)
    if chance.random() < 0.6:
        attempt("vectorize", *chance.sample(names, chance.randint(1, len(names))), chance.choice((2, 4, 8)))
    if chance.random() < 0.4:
        attempt("pipeline", stages=chance.randint(2, 4))
    if chance.random() < 0.3:
        attempt("prefetch")
    if chance.random() < 0.2:
        attempt("raster", chance.randint(1, 4))
    draw_hints(made, attempt, chance)
    return made, refused


def draw_hints(made: Schedule, attempt: Callable[..., bool], chance: random.Random) -> None:
    """Steps that change no result."""
    later, names = drawn_later(made), list(made.algorithm.arrays)
    if chance.random() < 0.1:
        attempt("resident", chance.randint(1, 3))
    if chance.random() < 0.2:
        arrays = chance.sample(names, chance.randint(1, len(names)))
        attempt("evict_first", *arrays)
        if later.random() < 0.5:
            attempt("evict_last", *arrays[1:], names[0])


def draw_tensor(made: Schedule, attempt: Callable[..., bool], chance: random.Random) -> None:
    """Steps for tensor cores, most of which fit."""
    eights, fours = made.algorithm is linear_of_eights, made.algorithm is linear_of_fours
    later = "wgmma" if made.target == "sm_90a" else "tcgen05"
    unit = chance.choice(("mma.sync", later) if not eights and not fours else (later,))
    rows = {"wgmma": 64, "tcgen05": 128}.get(unit) or chance.choice((16, 32))
    columns = chance.choice((8, 16, 24, 32, 64) if unit != "tcgen05" else (16, 32, 48, 64))
    columns = 128 if fours else columns
    turn = random.Random(hash(chance.getstate()))  # as `drawn_later`: the others of a seed are as they were
    down, across = ("j", "i") if turn.random() < 0.25 else ("i", "j")
    attempt("tile", **{down: rows * chance.choice((1, 1, 2)), across: columns * chance.choice((1, 1, 2))})
    attempt("blocks", *(("h", "i", "j") if "h" in made.algorithm.axes else ()))
    if attempt("tile", **{down: rows, across: columns}):
        attempt("threads")
    depths = (64, 128, 256) if fours else (32, 64, 128) if eights else (16, 32, 64)
    depth, blocks = chance.choice(depths), chance.choice((1, 1, 1, 2, 3))
    if blocks > 1:
        attempt("tile", x=depth * blocks)
        attempt("tile", x=depth)
        attempt("cluster")
    else:
        attempt("tile", x=depth)
    attempt("tensorize", unit, **({"rows": down} if down == "j" else {}))
    wide = depth // 2 if fours else depth if eights else 2 * depth
    layout: dict[str, Any] = {"swizzle": f"{chance.choice((wide, wide, 32, 64))}B"}
    if chance.random() < (0.1 if unit == later else 0.5):
        layout = {"pad": chance.choice((0, 8, 8, 2))}
    attempt("stage", "a", "b", in_="shared", **layout)
    if unit == "wgmma" and turn.random() < 0.5:
        wide = "128B" if down == "j" else turn.choice(("", "32B", "64B"))
        attempt("stage", made.algorithm.outputs[0], in_="shared", swizzle=wide, slots=turn.choice((0, 0, 1, 2)))
    if chance.random() < 0.8:
        attempt("vectorize", "a", "b", 16 if eights else 8)
    if chance.random() < 0.8:
        attempt("vectorize", *chance.sample(list(made.algorithm.outputs), 1), chance.choice((2, 4, 8)))
    if chance.random() < 0.8:
        attempt("pipeline", stages=chance.randint(2, 4), by=chance.choice(("tma", "tma", "cp.async")))
    if chance.random() < 0.3:
        attempt("raster", chance.randint(1, 4))
    if chance.random() < 0.5:
        attempt("specialize")
        if chance.random() < 0.4:
            attempt("multicast", chance.choice("ab"), chance.choice((2, 2, 4)))
            if made.state.multicast and drawn_later(made).random() < 0.4:
                attempt("multicast", "b" if made.state.multicast[0].array == "a" else "a", 2)
        if chance.random() < 0.6:
            attempt(chance.choice(("persistent", "stream_k")))
        if unit == "tcgen05" and drawn_later(made).random() < 0.5:
            attempt("pair")
    draw_hints(made, attempt, chance)


def draw_attention(made: Schedule, attempt: Callable[..., bool], chance: random.Random) -> None:
    """Steps of attention by tensor cores, most of which fit."""
    unit = chance.choice(("wgmma", "mma.sync"))
    rows = 64 if unit == "wgmma" else chance.choice((16, 32))
    attempt("tile", i=rows * chance.choice((1, 1, 2)))
    attempt("blocks", *(("g", "i") if made.algorithm is attention else ("i",)))
    attempt("tile", i=rows)
    attempt("threads")
    attempt("tile", j=chance.choice((16, 32, 64, 24)))
    attempt("tensorize", unit)
    layout: dict[str, Any] = {"pad": chance.choice((0, 8))} if unit == "mma.sync" and chance.random() < 0.5 else {}
    for array, bytes in (("q", 64), ("k", 64), ("v", 32)):
        attempt("stage", array, in_="shared", **(layout or {"swizzle": f"{chance.choice((bytes, bytes, bytes, 32))}B"}))
    for array in "qkvo":
        if chance.random() < 0.7:
            attempt("vectorize", array, chance.choice((2, 4, 8)))
    if chance.random() < 0.8:
        attempt("pipeline", stages=chance.randint(2, 3), by=chance.choice(("tma", "tma", "cp.async")))
    if chance.random() < 0.5:
        attempt("specialize")
    if chance.random() < 0.2:
        attempt("raster", chance.randint(1, 4))
        attempt(chance.choice(("persistent", "stream_k")))
    draw_hints(made, attempt, chance)


def drawn_later(made: Schedule) -> random.Random:
    """Chance for steps that there were not before: it leaves the others of a seed as they were."""
    return random.Random(repr(made))


def sizes_of(made: Schedule, chance: random.Random) -> dict[str, int]:
    """Sizes that are any, or multiples of tiles."""
    found = {}
    for size in made.algorithm.sizes:
        scaled = made.algorithm is linear_of_fours  # arrays without elements are refused: TMA does not copy them
        step = 32 if scaled and size == "k" else chance.choice((1, 4, 8, 16))
        most = 2 * LARGEST if made.state.unit == "tcgen05" else LARGEST
        gathers = any(array.element == "s32" for array in made.algorithm.arrays.values())
        is_empty = step < 32 and not gathers and chance.random() < EMPTY and not scaled
        found[size] = 0 if is_empty else max(step, chance.randint(1, most) // step * step)
    return {**found, **made.sizes}


def small(made: Schedule, sizes: dict[str, int], most: int, serial: float = math.inf) -> dict[str, int]:
    """These sizes, the largest halved until all loops together have few iterations, and those of a thread have."""
    found = dict(sizes)
    axes = made.algorithm.axes
    while (
        math.prod(max(extent.value(found), 1) for extent in axes.values()) > most
        or math.prod(max(made.state.iterations(name, found), 1) for name in made.state.serial(axes)) > serial
    ):
        largest = max((name for name in found if name not in made.sizes), key=lambda name: found[name], default="")
        if not largest or found[largest] <= 1:
            break
        found[largest] //= 2
    return found


def is_short(made: Schedule, refused: list[str]) -> bool:
    """Whether a schedule is a kernel that does not take too long to compile."""
    try:
        return str(made).count("\n") <= LONGEST
    except PtxError as problem:
        refused.append(f"kernel: {problem.diagnostics[0].message}")
        return False


def attempt(seed: int, proved: float = 0.0) -> dict[str, Any]:
    """One random schedule: what became of it. Such a part of them is compared for all values of arrays, too."""
    chance, start = random.Random(seed), time.process_time()
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    found: dict[str, Any] = {"seed": seed, "refused": [], "wrong": ""}
    try:
        while True:
            made, found["refused"] = draw(chance)
            found |= {"schedule": repr(made)}
            if is_short(made, found["refused"]):
                break
        sizes = sizes_of(made, chance)
        found["sizes"] = sizes = sizes if made.state.tensors else small(made, sizes, MOST_RUN)
        launching.SMS = found["sms"] = chance.choice((2, 5, 132))
        made.check(seeds=2, symbolic=False, **sizes)
        if chance.random() < proved and made.algorithm is not linear_of_fours:  # it has no plain kernel
            made.check(seeds=0, **small(made, sizes, MOST_PROVED, MOST_SERIAL))
    except Exception:  # any of them is a defect, and is reported
        found["wrong"] = traceback.format_exc()[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    found["seconds"] = time.process_time() - start
    return found


def _end(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--out")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    found: list[dict[str, Any]] = []
    end = time.time() + given.seconds
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        results = pool.imap_unordered(partial(attempt, proved=PROVED), seeds)
        for _ in seeds:
            try:
                found.append(results.next(timeout=max(0.0, end - time.time())))
                if given.out:
                    Path(given.out).write_text(json.dumps(found, indent=1))
            except multiprocessing.TimeoutError:
                print("without an end:", *sorted(set(seeds) - {one["seed"] for one in found}))
                break
    wrong = [one for one in found if one["wrong"]]
    for one in wrong:
        print(one["seed"], one.get("schedule"), one.get("sizes"), "\n", one["wrong"])
    refusals = sum(len(one["refused"]) for one in found)
    print(f"{len(found)} schedules, {refusals} steps refused, {len(wrong)} wrong")
    return bool(wrong) or len(found) < given.count


if __name__ == "__main__":
    sys.exit(main())

"""How fast an H200 copies at most, by any way that PTX has, beside a row kernel of torch.compile and ours.

    python benchmarks/copies.py [FILE]        writes evidence/copies.json, needs a GPU and torch

All copy 256 MiB, as much as the gallery's row kernels read, and as much as they write: by vectors of 16 bytes, with
policies for the L2 cache; and by bulk copies through a ring of shared memory, with persistent blocks, for several
stages, policies, orders, and in turns of reading and writing. Then reading and writing alone. All take turns, on two
sets of data. A row kernel that reads once and writes once cannot be faster than the fastest copy.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ptxlab.author import Kernel, b8, b64, f32, kernel, pointer, ptx, u32
from ptxlab.author.pipelines import Ring
from ptxlab.gpu.loading import compile_text
from ptxlab.measure import Launch
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import timer, together
from ptxlab.syntax import format

ROOT = Path(__file__).resolve().parent.parent
BYTES = 256 << 20
SMS = 132
ROUNDS, BEST = 3, 12  # rounds of all, and how many of the fastest take turns again, with torch's
AGAIN = 15
SHARED = 208  # KiB of shared memory for the rings of an SM
KIB = 1 << 10


def hinted(instruction: Any, policy: str) -> tuple[Any, tuple[Any, ...]]:
    """An instruction with a policy for the L2 cache, and that as its last operand."""
    if not policy:
        return instruction, ()
    return instruction["L2::cache_hint"], (ptx.createpolicy.fractional[f"L2::{policy}"].b64(1.0),)


def by_vectors(
    x: pointer[f32],
    y: pointer[f32],
    *,
    COUNT: int,  # noqa: N803
    BLOCK: int,  # noqa: N803
    LOAD: str,  # noqa: N803
    STORE: str,  # noqa: N803
    WAY: str,  # noqa: N803
) -> None:
    """Each thread copies COUNT vectors of 16 bytes; or it only reads them, or only writes."""
    first = ptx.ctaid.x * (COUNT * BLOCK) + ptx.tid.x
    load, when_read = hinted(ptx.ld.global_, LOAD)
    store, when_written = hinted(ptx.st.global_, STORE)
    values = [tuple(f32() if WAY != "write" else f32(1.0) for _ in range(4)) for _ in range(COUNT)]
    for number, value in enumerate(values if WAY != "write" else []):
        load.v4.f32(x.vector(4) + first + number * BLOCK, *when_read, out=value)
    if WAY == "read":
        total = f32(0.0)
        for value in values:
            total += value[0] + value[1] + value[2] + value[3]
        with ptx.when(total == math.inf):  # it never is
            y[0] = total
    for number, value in enumerate(values if WAY != "read" else []):
        store.v4.f32(y.vector(4) + first + number * BLOCK, value, *when_written)


def in_bulk(
    x: pointer[b8],
    y: pointer[b8],
    *,
    STAGE: int,  # noqa: N803
    STAGES: int,  # noqa: N803
    AT_ONCE: int,  # noqa: N803
    AHEAD: int,  # noqa: N803
    LOAD: str,  # noqa: N803
    STORE: str,  # noqa: N803
    WAY: str,  # noqa: N803
) -> None:
    """One thread of each block moves pieces of STAGE bytes through a ring, AT_ONCE in and then as many out."""
    copy_in, when_read = hinted(ptx.cp.async_.bulk["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"], LOAD)
    copy_out, when_written = hinted(ptx.cp.async_.bulk["global"]["shared::cta"].bulk_group, STORE)
    full, memory, count = ptx.shared(b64, STAGES, name="full"), ptx.dynamic_shared(b8), BYTES // STAGE

    with ptx.when(ptx.tid.x == 0):
        for number in range(STAGES):
            ptx.mbarrier.init.shared.b64(full.at(number), 1)
        ptx.fence.mbarrier_init.release.cluster()
        filling, reading = Ring(STAGES), Ring(STAGES, parity=0)
        ahead, own = u32(), u32()
        ahead.set(ptx.ctaid.x)
        own.set(ptx.ctaid.x)

        def fill() -> None:
            with ptx.when(ahead < count):
                barrier = full.at(filling.index)
                ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, STAGE)
                source = x + ptx.mul.wide.u32(ahead, STAGE)
                copy_in(memory + filling.index * STAGE, source, STAGE, barrier, *when_read)
            filling.advance()
            ahead.set(ahead + ptx.nctaid.x)

        def empty() -> None:
            with ptx.when(own < count):
                if WAY != "write":
                    with ptx.loop():
                        done = ptx.mbarrier.try_wait.parity.shared.b64(full.at(reading.index), reading.parity)
                        ptx.repeat_when(~done)
                if WAY != "read":
                    copy_out(y + ptx.mul.wide.u32(own, STAGE), memory + reading.index * STAGE, STAGE, *when_written)
                    ptx.cp.async_.bulk.commit_group()
            reading.advance()
            own.set(own + ptx.nctaid.x)

        for _ in range(AHEAD if WAY != "write" else 0):
            fill()
        with ptx.loop():
            ptx.leave_when(own >= count)
            for _ in range(AT_ONCE):
                empty()
            if WAY != "read":  # a stage is filled when what was in it is read
                ptx.cp.async_.bulk.wait_group.read(STAGES - AHEAD)
            for _ in range(AT_ONCE if WAY != "write" else 0):
                fill()
        ptx.cp.async_.bulk.wait_group(0)


def specialize(function: Callable[..., None], block: int, **constants: Any) -> Kernel:
    """The kernel of a function."""
    made: Kernel = kernel(target="sm_90", maxntid=block)(function)
    return made.specialize(**constants)


Make = Callable[[Any, Any], Launch]


def vectors() -> Iterator[tuple[str, Make]]:
    """Copies by vectors."""
    for load, store in (("", ""), ("evict_last", ""), ("evict_first", "evict_last"), ("evict_first", "evict_first")):
        for count, block in ((1, 256), (2, 256), (4, 128), (8, 128), (2, 512), (1, 1024)):
            yield by_threads(count, block, load, store)
    for way in ("read", "write"):
        for count, block in ((1, 256), (2, 256), (4, 128), (4, 512)):
            yield by_threads(count, block, "", "", way)


def by_threads(count: int, block: int, load: str, store: str, way: str = "copy") -> tuple[str, Make]:
    """One of them, with so many vectors a thread."""
    made = specialize(by_vectors, block, COUNT=count, BLOCK=block, LOAD=load, STORE=store, WAY=way)
    grid = BYTES // 16 // (count * block)
    policies = f"{load or 'plain'} loads, {store or 'plain'} stores" if way == "copy" else f"only {way}"
    return f"vectors: {count} a thread, {block} threads, {policies}", lambda x, y: Launch(made, grid, block, [x, y])


def rings() -> Iterator[tuple[str, Make]]:
    """Copies by rings of shared memory: in and out at the same time, or in turns."""
    for size in (4, 8, 16, 64):
        for blocks in (1, 2, 4):
            stages = SHARED // blocks // size
            for load, store in (("", ""), ("evict_last", ""), ("evict_first", "evict_last")):
                for is_in_turns in (False, True):
                    if stages >= 2 and (not is_in_turns or (blocks < 4 and store == "")):
                        yield ring(size, blocks, load, store, stages if is_in_turns else 1)
    for way in ("read", "write"):
        for size in (8, 16):
            yield ring(size, 1, "", "", 1, way)


def ring(size: int, blocks: int, load: str, store: str, at_once: int, way: str = "copy") -> tuple[str, Make]:
    """One of them, with stages of so many KiB and so many blocks on an SM."""
    stages = SHARED // blocks // size
    ahead = stages if at_once > 1 or way == "read" else stages // 2
    made = specialize(
        in_bulk, 32, STAGE=size * KIB, STAGES=stages, AT_ONCE=at_once, AHEAD=ahead, LOAD=load, STORE=store, WAY=way
    )
    turns = ", in turns" if at_once > 1 else ""
    policies = f"{load or 'plain'} loads, {store or 'plain'} stores" if way == "copy" else f"only {way}"
    name = f"ring: {stages} stages of {size} KiB, {blocks} blocks, {policies}"
    shared = stages * size * KIB
    return name + turns, lambda x, y: Launch(made, SMS * blocks, 32, [x, y], shared)


Action = Callable[[], Any]


def rows(torch: Any, sets: list[tuple[Any, Any]]) -> dict[str, list[Action]]:
    """RMS norm of short rows, bf16, of the same matrices: by torch.compile, and ours."""
    rms_norm = import_module("ptxlab.kernels.rms_norm")
    expression = rms_norm.entry.libraries["torch.compile"]
    shaped = [tuple(one.view(torch.bfloat16).view(-1, 8192) for one in pair) for pair in sets]
    weight = torch.rand(8192, device="cuda").bfloat16()
    arrays = [{"x": x, "weight": weight, "y": y} for x, y in shaped]
    stream = torch.cuda.current_stream()
    return {
        "rms_norm by torch.compile": [expression(torch, **each) for each in arrays],
        "rms_norm, ours": [together([rms_norm.read_once(**each)], stream) for each in arrays],
    }


def assemble(ways: dict[str, Make]) -> None:
    """Assemble all kernels, several at once: one after the other takes longer than to measure them."""
    modules = [make(0, 0).module for make in ways.values()]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda module: compile_text(format(module), "sm_90a", module.source), modules))


def main() -> None:
    torch = require_torch()
    ways = dict([*vectors(), *rings()])
    assemble(ways)
    sets = []
    for _ in range(2):
        x = torch.randn(BYTES // 2, device="cuda", dtype=torch.bfloat16).view(torch.float32)
        sets.append((x, torch.empty_like(x)))
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        made = {name: [together([make(*pair)], stream) for pair in sets] for name, make in ways.items()}
        for name, actions in made.items():
            x, y = sets[0]
            y.zero_()
            actions[0]()
            if "only" not in name and not torch.equal(x.view(torch.int32), y.view(torch.int32)):
                raise AssertionError(f"{name}: not a copy")
        of_torch: dict[str, list[Action]] = {"torch's copy_": [partial(y.copy_, x) for x, y in sets]}
        of_torch |= rows(torch, sets)
        timers = {name: timer(torch, actions, stream) for name, actions in {**made, **of_torch}.items()}
        first = {name: statistics.median(taken) for name, taken in take_turns(timers, ROUNDS).items()}
        best = sorted((name for name in made if "only" not in name), key=first.__getitem__)[:BEST]
        again = take_turns({name: timers[name] for name in [*best, *of_torch]}, AGAIN)
    seconds = {**first, **{name: statistics.median(taken) for name, taken in again.items()}}
    report = {
        "command": "python benchmarks/copies.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": describe(torch),
        "bytes": BYTES,
        "median seconds": dict(sorted(seconds.items(), key=lambda one: one[1])),
        "samples of the fastest": again,
    }
    text = json.dumps(report, indent=1) + "\n"
    Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "evidence" / "copies.json").write_text(text)
    for name, time in sorted(seconds.items(), key=lambda one: one[1]):
        moved = BYTES * (1 if "only" in name else 2)
        print(f"{time * 1e6:7.1f} µs  {moved / time / 1e12:5.3f} TB/s  {name}")


if __name__ == "__main__":
    main()

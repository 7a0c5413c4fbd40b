"""Collectives that others wrote, on 2 to 8 ranks: `python -m tests.node.strangers FOLDER OUT.json [OPTIONS]`.

FOLDER has their device code, which is not ours to keep here: `torch/t.cu` (symmetric memory: one-shot, two-shot, in
place, multimem, barrier), `torch/t_cured.cu` (their first barriers release), `vllm/car.cu` and `vllm/car_fixed.cu`
(custom all-reduce with its relaxed and with its release barriers), and programs that are built: those of `nccl` (the
ring and the tree of `all_reduce.h`, by the protocols LL and simple, as they are; `cured`: its polls acquire, each step
is posted after a fence, and no credit by a plain store), `deepep/main` and `deepep_cured/main` (intranode dispatch and
combine, as it is and with six causes cured). Each runs on each seed; results are compared, and what is found is counted
by its lines. Our own collectives run beside them. Rows of OUT.json that are not run again stay. `PTXLAB_COMMIT` says
which commit runs, where git can't.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.node import Array, Node
from ptxlab.programs.modules import Modules
from ptxlab.programs.program import ProgramOptions, modules_of, run_program
from ptxlab.report import Diagnostic
from tests.gpu.agreement import commit
from tests.kernels.test_collectives import COLLECTIVES, FUSED, run, run_fused

COUNT, BLOCKS, THREADS = 1024, 2, 64
PROGRAMS = {
    "NCCL ring, LL": "nccl/ll",
    "NCCL tree, LL": "nccl/ll_tree",
    "NCCL ring, simple": "nccl/simple",
    "NCCL ring, simple, cured": "nccl/simple_cured",
    "NCCL tree, simple": "nccl/simple_tree",
    "NCCL tree, simple, cured": "nccl/simple_tree_cured",
    "DeepEP intranode": "deepep/main",
    "DeepEP, six causes cured": "deepep_cured/main",
}


@dataclass(frozen=True)
class Row:
    """What came of one kernel on so many ranks under one schedule."""

    name: str
    ranks: int
    seed: int
    is_right: bool
    found: list[str]
    """Codes with the lines of their labels."""
    seconds: float
    commit: str
    """Of ptxlab."""


def shown(found: Sequence[Diagnostic]) -> list[str]:
    """Each finding by its code and its lines."""
    return sorted(
        f"{one.code} "
        + ", ".join(
            sorted(
                f"{Path(at.source.name).name}:{at.source.position(at.start)[0]}" for at in (x.span for x in one.labels)
            )
        )
        for one in found
    )


def given(node: Node, times: int) -> tuple[list[Array], list[list[Array]], list[list[Any]]]:
    """Inputs, results for each time, and what the inputs are each time."""
    rng = np.random.default_rng(5)
    data = [[rng.integers(-9, 9, COUNT).astype(np.float32) for _ in node] for _ in range(times)]
    results = [[device.zeros(COUNT, name="result") for device in node] for _ in range(times)]
    return [device.zeros(COUNT, name="x") for device in node], results, data


def is_sum(results: Sequence[Sequence[Array]], data: Sequence[Sequence[Any]]) -> bool:
    return all((one.numpy() == sum(x)).all() for each, x in zip(results, data, strict=True) for one in each)


@cache
def module(path: Path) -> ir.Module:
    return ptxlab.cuda(path, "sm_90", ["-std=c++17", "--expt-relaxed-constexpr", f"-I{path.parent}"])


def torch(
    folder: Path, kind: str, ranks: int, seed: int, file: str = "t.cu", waits: bool = False
) -> tuple[bool, list[str]]:
    """An all-reduce of torch's symmetric memory, twice, on inputs that are copied there before.

    With `waits`, its barrier is between the copies and the kernel.
    """
    made = module(folder / "torch" / file)
    kernel = made[next(one for one in made.entries if kind in one and (f"Li{ranks}E" in one or kind == "multimem"))]
    node, pads = signal_pads(ranks)
    is_in_place = kind in ("kernel_inplace", "multimem")
    x, results, data = given(node, 2)
    for turn in range(2):
        for device in node:
            device.copy(x[device.rank], device.array(data[turn][device.rank]))
        if waits:
            barrier(folder, node, pads)
        for device in node:
            own = results[turn][device.rank]
            after: list[Any] = {"one_shot": [own, None, 0], "two_shot_all_reduce_kernelI": [own, 0]}.get(kind, [0])
            first = [ptxlab.Multicast(x)] if kind == "multimem" else [ptxlab.PointerArray(x), *after]
            last = [0] * (kind == "two_shot_all_reduce_kernelI")  # of a reduce-scatter: the size of its last dimension
            device.launch(kernel, BLOCKS, THREADS, [*first, COUNT, pads, device.rank, ranks, *last])
            if is_in_place:
                device.copy(own, x[device.rank])
    found = node.synchronize(seed=seed, on_error="collect")
    return is_sum(results, data), shown(found.diagnostics)


def signal_pads(ranks: int) -> tuple[Node, ptxlab.PointerArray]:
    """A node, and the words by which its ranks signal each other."""
    node = ptxlab.node(ranks)
    return node, ptxlab.PointerArray([device.zeros(1024, np.uint32, name="pad") for device in node])


def barrier(folder: Path, node: Node, pads: ptxlab.PointerArray, file: str = "t.cu") -> None:
    """The barrier of torch's symmetric memory, on a channel of its own."""
    made = module(folder / "torch" / file)
    kernel = made[next(one for one in made.entries if "barrier" in one)]
    for device in node:
        device.launch(kernel, 1, 32, [pads, 16, device.rank, len(node), 0])


def torch_barrier(folder: Path, ranks: int, seed: int, file: str = "t.cu") -> tuple[bool, list[str]]:
    """Each rank copies what its neighbor wrote before the barrier, and may write again after the next one, twice."""
    node, pads = signal_pads(ranks)
    x, results, data = given(node, 2)
    for turn in range(2):
        for device in node:
            device.copy(x[device.rank], device.array(data[turn][device.rank]))
        barrier(folder, node, pads, file)
        for device in node:
            device.copy(results[turn][device.rank], x[(device.rank + 1) % ranks])
        barrier(folder, node, pads, file)
    found = node.synchronize(seed=seed, on_error="collect")
    pairs = [(results[turn][rank], data[turn][(rank + 1) % ranks]) for turn in range(2) for rank in range(ranks)]
    return all((one.numpy() == expected).all() for one, expected in pairs), shown(found.diagnostics)


def vllm(folder: Path, file: str, stages: int, ranks: int, seed: int) -> tuple[bool, list[str]]:
    """vLLM's custom all-reduce, twice, on inputs that are copied there before and filled after."""
    made = module(folder / "vllm" / file)
    kernel = made[next(one for one in made.entries if f"{stages}stage" in one and f"Li{ranks}E" in one)]
    node = ptxlab.node(ranks)
    signals = [device.zeros(36 * 16 * 2 + 64 + 16384, np.uint32, name="signals") for device in node]
    x, results, data = given(node, 2)
    tables = np.zeros((2, 16), np.uint64)
    tables[:, :ranks] = [[one.address for one in each] for each in (x, signals)]
    for turn in range(2):
        for device in node:
            device.copy(x[device.rank], device.array(data[turn][device.rank]))
        for device in node:
            inputs = device.array(tables[0], name="rank_data")
            rest = [signals[device.rank], results[turn][device.rank], device.rank, COUNT // 4]
            device.launch(kernel, BLOCKS, THREADS, [inputs, tables[1].tobytes(), *rest])
    for device in node:
        device.fill(x[device.rank])
    found = node.synchronize(seed=seed, on_error="collect")
    return is_sum(results, data), shown(found.diagnostics)


@cache
def kept(executable: Path) -> Modules:
    """What a program loads, read once for all seeds of a process."""
    return modules_of(executable, ProgramOptions())


def program(folder: Path, path: str, ranks: int, seed: int) -> tuple[bool, list[str]]:
    """A whole program that prints RIGHT."""
    executable = folder / path
    options = ProgramOptions(launch={"seed": seed}, gpus=ranks)
    said = io.StringIO()
    with printed_to(said):
        result = run_program([str(executable), str(ranks), "8"], options, kept(executable))
    return "RIGHT\n" in said.getvalue(), shown([one for one in result.findings if one.level != "note"])


@contextmanager
def printed_to(text: io.StringIO) -> Iterator[None]:
    """Have what this process and its programs print written to a text."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            text.write(file.read().decode())


def own(name: str, ranks: int, seed: int) -> tuple[bool, list[str]]:
    """One of our own collectives."""
    try:
        result = run_fused(name, ranks, seed=seed) if name in FUSED else run(name, ranks, 24 * ranks, seed=seed)
    except AssertionError:
        return False, []
    return True, shown(result.diagnostics)


def kernels(folder: Path) -> dict[str, Callable[[int, int], tuple[bool, list[str]]]]:
    """What runs, by name."""
    kinds = {"one-shot": "one_shot", "two-shot": "two_shot_all_reduce_kernelI", "in place": "kernel_inplace",
             "multimem": "multimem"}  # fmt: skip
    made: dict[str, Callable[[int, int], tuple[bool, list[str]]]] = {}
    for title, kind in kinds.items():
        made[f"torch {title}"] = partial(torch, folder, kind)
        if title in ("in place", "multimem"):
            made[f"torch {title}, first barrier releases"] = partial(torch, folder, kind, file="t_cured.cu")
            made[f"torch {title}, after torch's barrier"] = partial(torch, folder, kind, waits=True)
    made["torch barrier"] = partial(torch_barrier, folder)
    for stages in (1, 2):
        made[f"vLLM {stages}-stage"] = partial(vllm, folder, "car.cu", stages)
        made[f"vLLM {stages}-stage, release"] = partial(vllm, folder, "car_fixed.cu", stages)
    for title, path in PROGRAMS.items():
        made[title] = partial(program, folder, path)
    for name in (*COLLECTIVES, *FUSED):
        made[f"ptxlab {name}"] = partial(own, name)
    return made


def judge(folder: Path, revision: str, task: tuple[str, int, int]) -> Row:
    name, ranks, seed = task
    started = time.process_time()
    is_right, found = kernels(folder)[name](ranks, seed)
    return Row(name, ranks, seed, is_right, found, time.process_time() - started, revision)


def table(rows: Sequence[Row]) -> str:
    """Right and silent seeds of each kernel and number of ranks, and what was found how often."""
    lines = [f"{'kernel':32} {'ranks':>5} {'seeds':>5} {'right':>5} {'silent':>6}  found"]
    for name, ranks in dict.fromkeys((row.name, row.ranks) for row in rows):
        of = [row for row in rows if (row.name, row.ranks) == (name, ranks)]
        found = Counter(one for row in of for one in set(row.found))
        silent = sum(not row.found for row in of)
        said = "; ".join(f"{one} ({count})" for one, count in found.most_common())
        lines.append(f"{name:32} {ranks:5} {len(of):5} {sum(row.is_right for row in of):5} {silent:6}  {said}")
    return "\n".join(lines)


def write(out: Path, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Replace these rows of a file, and keep the others."""
    before = [Row(**{"commit": "", **one}) for one in json.loads(out.read_text())] if out.is_file() else []
    known = {(row.name, row.ranks, row.seed): row for row in (*before, *rows) if row.name in names}
    kept = sorted(known.values(), key=lambda row: (names.index(row.name), row.ranks, row.seed))
    out.write_text(json.dumps([asdict(one) for one in kept], indent=1) + "\n")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("out", type=Path)
    options.add_argument("--ranks", default="2,4,8")
    options.add_argument("--seeds", type=int, default=20)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--only", default="")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--seconds", type=float, help="end after so many, with the table of what has run")
    chosen = options.parse_args()
    names = [name for name in kernels(chosen.folder) if re.search(chosen.only, name)]
    ranks = [int(one) for one in chosen.ranks.split(",")]
    tasks = [
        (name, count, seed)
        for seed in range(chosen.first, chosen.first + chosen.seeds)
        for count in ranks
        for name in names
    ]
    rows: list[Row] = []
    revision = os.environ.get("PTXLAB_COMMIT") or commit()
    with ProcessPoolExecutor(chosen.processes) as pool:
        futures = [pool.submit(judge, chosen.folder, revision, task) for task in tasks]
        try:
            rows.extend(future.result() for future in as_completed(futures, chosen.seconds))
        except TimeoutError:
            print(f"{len(rows)} of {len(tasks)} runs in {chosen.seconds} s", flush=True)
        write(chosen.out, rows, [*kernels(chosen.folder)])
        print(table(rows), flush=True)
        pool.shutdown(wait=False, cancel_futures=True)


if __name__ == "__main__":
    main()

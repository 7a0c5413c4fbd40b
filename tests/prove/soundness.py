"""Whether what is proved is true: random kernels, and mutants of those that are proved, are run.

    python -m tests.prove.soundness --kernels 2000 --mutants 2000 --processes 16 --output FILE
    python -m tests.prove.soundness --join FILE FILE --output FILE

A kernel that is proved is launched with several grids, sizes and schedules, with all detectors, and its smallest
launches are explored: all schedules that differ, up to a limit. A mutant of a proved kernel loses a barrier or a wait,
or has another address, mask, comparison or limit. All mutants are run in the same way, too, whether they are proved or
not. Where a run goes wrong, what was changed was needed, and the mutant must not be proved. Of a mutant that is proved
the reason is written: that in each of these launches no schedule goes wrong, and whether it then leaves in memory what
the kernel does that it was made of, so that no thread needs what was changed, or has other values in the same places.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import ptxlab
from ptxlab.measure.machine import commit
from ptxlab.prove.answers.replay import WRONG
from tests.prove.pool import results
from tests.prove.programs import make

TIMEOUT = 30  # seconds of a proof
SECONDS = 10  # of a run: too few for a loop of 2^31 turns, and that loops end sooner is assumed
EVERY = 10  # kernels, after which the numbers so far are written
UNWRITTEN = "uninitialized-read"
LAUNCHES = ((1, 0), (1, 3), (1, 8), (2, 13), (2, 16), (3, 24), (3, 17))
EXPLORED = ((1, 8), (2, 13))
ASSUMED = ["len(x) == n", "len(y) == n"]
COUNTER = ".global .align 4 .u32 count;"
CHANGES = [
    (r"barrier\.cluster\.arrive\.aligned;\n    barrier\.cluster\.wait\.aligned;", ""),
    (r"barrier\.cluster\.arrive\.aligned;\n    barrier\.cluster\.wait\.aligned;", "bar.sync 0;"),
    (r"mapa\.shared::cluster\.u32 (%r\d+), %r\d+, %k2;", r"mapa.shared::cluster.u32 \1, \1, %rank;"),
    (r"mapa\.shared::cluster\.u32 (%r\d+), %r\d+, %k2;", r"mapa.shared::cluster.u32 \1, \1, 0;"),
    (r"relaxed\.(cluster|gpu|sys)", "relaxed.cta"),
    (r"(ld|st)\.(relaxed\.\w+|volatile)", r"\1"),
    (r"bra left(\d+);", r"bra next\1;"),
    (r"(fence\.\w+\.gpu|membar\.gl);", ""),
    (r"fence\.acq_rel\.gpu;", "fence.acq_rel.cta;"),
    (r"atom\.acq_rel", "atom.relaxed"),
    (r"(atom\.[\w.]+add\.u32 %q, \[%\w+\]), \d", r"\1, 0"),
    (r"(atom\.[\w.]+)inc\.u32 %q, \[%c\], %k1", r"\1inc.u32 %q, [%c], 1"),
    (r"mov\.u32 %r2, %k\d;", "mov.u32 %r2, 0;"),
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
    (r"and\.b32 (%r\d+), %t, \d+;", r"and.b32 \1, %t, 30;"),
    (r"shfl\.sync\.bfly", "shfl.sync.down"),
    (r"shfl\.sync\.bfly\.b32 %k0, %v, \d+", "shfl.sync.bfly.b32 %k0, %v, 3"),
    (r"(add|max|xor|min)\.(u|b)32 %v, %v, %k0", "sub.u32 %v, %v, %k0"),
    (r"st\.shared\.u32 \[%k2\], %v;", ""),
    (r"@!?%p\d+ (st|ld|cp)", r"\1"),
    (r"@(%p\d+) bra", r"@!\1 bra"),
]


class Runs(NamedTuple):
    """What came of launches under a few schedules; of the small ones, under all, up to a limit."""

    wrong: str | None
    launches: int = 0
    schedules: int = 0
    """Of launches that were explored: those that differ, up to a limit."""
    is_complete: bool = False
    """Whether none is missing."""
    left: tuple[bytes, ...] = ()
    """What the launches left in memory."""


def wrong_run(text: str, schedules: int = 2, explored: int = 100, is_initialized: bool = False) -> str | None:
    """What goes wrong in some launch."""
    return runs(text, schedules, explored, is_initialized).wrong


def runs(text: str, schedules: int = 2, explored: int = 100, is_initialized: bool = False) -> Runs:
    """Launch a kernel until something goes wrong."""
    source = used(text) if is_initialized else text
    kernel = ptxlab.parse(source)["kernel"]
    has_counter = COUNTER in text
    block = [int(extent) for hit in re.finditer(r"\.reqntid (.*)", text) for extent in hit[1].split(",")]
    cluster = 2 if ".reqnctapercluster 2" in text else 1
    launches = executions = 0
    is_complete, left = True, list[bytes]()
    for grid, n in ((grid * cluster, n) for grid, n in LAUNCHES):
        args = [np.arange(n, dtype=np.uint32) + 5, np.arange(n, dtype=np.uint32) * 3 + 100, n]
        for seed in range(schedules):
            given = [np.array(one) if isinstance(one, np.ndarray) else one for one in args]
            kernel = ptxlab.parse(source)["kernel"] if has_counter else kernel  # it starts from 0
            found = kernel.launch(grid, block, given, device="cpu", on_error="collect", timeout=SECONDS, seed=seed)
            codes = [one.code for one in found.diagnostics if one.level == "error" and one.code in WRONG]
            codes += [one.code for one in found.diagnostics if is_initialized and _is_unwritten(one)]
            launches += 1
            left += [one.tobytes() for one in given if isinstance(one, np.ndarray)]
            if codes:
                return Runs(f"{codes[0]} with grid {grid}, n {n}, seed {seed}")
        if (grid // cluster, n) in EXPLORED and explored:
            kernel = ptxlab.parse(source)["kernel"] if has_counter else kernel
            tried = ptxlab.explore(kernel, grid, block, args, limit=explored, timeout=5)
            wrong = [one.code for one in tried.diagnostics if one.level == "error" and one.code in WRONG]
            executions, is_complete = executions + tried.executions, is_complete and tried.is_complete
            if wrong:
                return Runs(f"{wrong[0]} with grid {grid}, n {n}, explored")
    return Runs(None, launches, executions, is_complete, tuple(left))


def used(text: str) -> str:
    """A kernel in which branches depend on all that is read of shared memory, so that it matters what is there."""
    numbers = count()

    def then(hit: re.Match[str]) -> str:
        label = f"used{next(numbers)}"
        return f"{hit[0]}\n    setp.eq.u32 %used, {hit[1]}, 77;\n    @%used bra {label};\n{label}:"

    text = re.sub(r"\.reg \.pred %p<\d+>;", r"\g<0> .reg .pred %used;", text)
    return re.sub(r"ld\.shared\.u32 (%\w+), \[[^]]*\];", then, text)


def _is_unwritten(finding: Any) -> bool:
    return finding.code == UNWRITTEN and "shared" in finding.message


def level_of(text: str) -> tuple[str, bool]:
    """The verdict on a kernel, without replays; and whether shared memory is written before it is read."""
    kernel = ptxlab.parse(text)["kernel"]
    initialized = kernel.required_cluster is None
    starts = ["count[0] == 0"] if re.search(r"atom[^;]*\[%c\]", text) else []
    found = ptxlab.prove(kernel, assume=ASSUMED + starts, initialized=initialized, replays=False, timeout=TIMEOUT)
    if found.level == "not-proved" and {one.kind for one in found.gaps} == {"initialized"}:
        return "proved", False
    return found.level, found.level == "proved" and initialized


def wrong_once(text: str) -> str | None:
    """Whether a run contradicts a proof that each element of `y` is written once: stores count instead."""
    if ".b32 words[" in text:  # stores of several forms, which are not all counted
        return None
    stores = re.findall(r"st\.global\.u32 \[(%d\d+)\], %v;", text)
    own = [one for one in stores if f"add.u64 {one}, {one}, %y;" in text]
    if not own or any(f"ld.global.u32 %v, [{one}]" in text for one in re.findall(r"add\.u64 (%d\d+), \1, %y;", text)):
        return None
    kernel = ptxlab.parse(text)["kernel"]
    covered = [*ASSUMED, "grid.x * 8 >= n"]
    if not ptxlab.prove(kernel, assume=covered, once="y", replays=False, timeout=TIMEOUT):
        return None
    for one in own:
        text = text.replace(f"st.global.u32 [{one}], %v;", f"red.global.add.u32 [{one}], 1;")
    for grid, n in LAUNCHES:
        y = np.zeros(n, np.uint32)
        ptxlab.parse(text)["kernel"].launch(grid, 8, [np.arange(n, dtype=np.uint32), y, n], device="cpu")
        if (y != 1).any():
            return f"elements written {sorted(set(y.tolist()))} times with grid {grid}, n {n}"
    return ""


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
    seed, changes = given
    text = make(seed)
    level, is_initialized = level_of(text)
    row = {"seed": seed, "change": None, "level": level, "initialized": is_initialized}
    if level != "proved":
        return [row]
    once = wrong_once(text)
    own = runs(text, is_initialized=is_initialized)
    rows = [row | {"wrong": own.wrong or once, "once": once is not None}]
    for changed, change in mutants(text, Random(seed), changes):
        of_mutant = runs(changed)
        level, is_initialized = level_of(changed)
        row = {"seed": seed, "change": change, "level": level, "initialized": is_initialized, "needed": of_mutant.wrong}
        if level == "proved":
            row["once"] = (once := wrong_once(changed)) is not None
            unwritten = wrong_run(changed, is_initialized=True) if is_initialized else None
            row["wrong"] = of_mutant.wrong or unwritten or once
            row["reason"] = reason(own, of_mutant)
        rows.append(row)
    return rows


def reason(own: Runs, of_mutant: Runs) -> str | None:
    """Why a mutant may be proved, as far as its runs and those of the kernel that it was made of show it."""
    if of_mutant.wrong is not None:
        return None
    schedules = f"{'all' if of_mutant.is_complete else 'the first'} {of_mutant.schedules} schedules"
    shown = f"no race, access out of bounds or hang in {of_mutant.launches} launches and {schedules}"
    is_same = own.left == of_mutant.left
    return f"{shown}; {'the same results, so it is not needed' if is_same else 'other values, in the same places'}"


def joined(paths: list[Path]) -> dict[str, Any]:
    """What was found in several parts, with the sums of their counts."""
    parts = [json.loads(path.read_text()) for path in paths]
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["counts"])
    return {"counts": counts, "wrong": [row for part in parts for row in part["wrong"]], "parts": parts}


def main() -> None:
    """Judge all, print what is wrong, and write the numbers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--step", type=int, default=1, help="16, with `--first 8`: kernels with counters only")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--join", type=Path, nargs="*", help="what was written before, as one; nothing is judged")
    given = parser.parse_args()
    if given.join:
        given.output.write_text(json.dumps(joined(given.join), indent=1) + "\n")
        return
    each = -(-given.mutants * 4 // given.kernels)  # at least a quarter is proved
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    wrong: list[dict[str, Any]] = []
    seeds = [(given.first + given.step * number, each) for number in range(given.kernels)]

    def write() -> None:
        if given.output is not None:
            written = {"commit": commit(), "processor": platform.machine(), "counts": counts, "first": given.first,
                       "step": given.step, "wrong": wrong, "proved mutants": rows}  # fmt: skip
            given.output.write_text(json.dumps(written, indent=1) + "\n")

    for number, found in enumerate(results(judge, seeds, given.processes, given.seconds), 1):
        for row in found:
            kind = "kernel" if row["change"] is None else "mutant"
            counts[f"{kind} {row['level']}"] += 1
            counts[f"{kind} initialized"] += row["initialized"]
            counts[f"{kind} once"] += row.get("once", False)
            if row.get("wrong"):
                counts["contradiction"] += 1
                wrong.append(row)
                print(f"proved, but wrong: {row}", flush=True)
            counts["mutant that goes wrong"] += bool(row.get("needed"))
            counts["mutant that goes wrong, proved"] += bool(row.get("needed")) and row["level"] == "proved"
            counts["proved mutant with a reason"] += bool(row.get("reason"))
            if kind == "mutant" and row["level"] == "proved":
                rows.append(row)
        if not number % EVERY:
            write()
    write()
    print(json.dumps(dict(counts), indent=1))


if __name__ == "__main__":
    main()

"""Whether the estimate would have chosen well: variants and steps that were measured before, estimated without a GPU.

    python benchmarks/scheduled_judged.py FILE [--processes 2] [--seconds 280] [--only softmax]

Measurements are those in `evidence/`, on an H200. Of each algorithm: how much of the speed of the fastest variant the
one has that the estimate takes for the fastest; of each step: whether both agree that it is faster than the one before.
FILE keeps estimates, so that another run continues where one ended.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import scheduled_attention as attention
import scheduled_gemm as f32_products
import scheduled_rows as rows
import scheduled_tensor_gemm as products
from scheduled_search import Variants

from ptxlab.measure.machine import commit

EVIDENCE = Path(__file__).parent.parent / "evidence"


class Judged(NamedTuple):
    """Variants at some sizes, and the row of a file that has their times; steps are in their order."""

    file: str
    row: dict[str, Any]
    sizes: dict[str, int]
    variants: Variants
    are_steps: bool = False

    def measured(self) -> dict[str, float]:
        """The medians, in microseconds, of what was measured."""
        found = json.loads((EVIDENCE / self.file).read_text())["rows"]
        row = next(one for one in found if all(one.get(key) == value for key, value in self.row.items()))
        return {name: statistics.median(row["us"][name]) for name in self.variants if name in row["us"]}


def of_rows(what: str, variants: Variants) -> Judged:
    """What `scheduled_rows.py` measured at 4096 x 4096."""
    sizes = {"h": 4096, "w": 4096} if what == "convolution" else {"m": 4096, "n": 4096}
    return Judged("scheduled_rows.json", {"what": what, "size": [4096, 4096]}, sizes, variants)


CUBE = {"m": 4096, "n": 4096, "k": 4096}
STEPS = {"what": "steps", **CUBE}
ALL = {
    "steps of f32": Judged("scheduled_gemm.json", CUBE, CUBE, dict(f32_products.STEPS), True),
    "steps of bf16": Judged("scheduled_tensor_gemm.json", STEPS, CUBE, dict(list(products.STEPS.items())[:5]), True),
    "bf16 product": Judged("scheduled_tensor_gemm.json", STEPS, CUBE, dict(list(products.STEPS.items())[2:])),
    "f32 product": Judged("scheduled_gemm.json", CUBE, CUBE, dict(f32_products.STEPS)),
    "softmax": of_rows(
        "softmax",
        {f"{t} threads": lambda t=t: rows.by_rows(rows.softmax, 4096, t, 4, "x", "y") for t in (128, 256, 512)},
    ),
    "RMS norm": of_rows(
        "RMS norm",
        {f"{t} threads": lambda t=t: rows.by_rows(rows.rms_norm, 4096, t, 8, "x", "w", "y") for t in (64, 128, 256)},
    ),
    "row sums": of_rows(
        "row sums",
        {f"{t} threads": lambda t=t: rows.long_rows(rows.row_sum, t, 4, "x") for t in (128, 256)}
        | {f"{t} warps": lambda t=t: rows.warps_of_rows(rows.row_sum, t, 4, "x") for t in (4, 8)},
    ),
    "transpose": of_rows("transpose", {f"{d} rows, 32 x 32": lambda d=d: rows.by_tiles(d, 32) for d in (1, 4, 8)}),
    "GEMV": of_rows(
        "GEMV",
        {f"{t} threads": lambda t=t: rows.long_rows(rows.gemv, t, 8, "a", "x") for t in (64, 128)}
        | {f"{t} warps": lambda t=t: rows.warps_of_rows(rows.gemv, t, 8, "a", "x") for t in (4, 8)},
    ),
    "convolution": of_rows(
        "convolution",
        {
            f"{r} x {c}, {e} rows": lambda r=r, c=c, e=e: rows.by_patches(r, c, e)
            for r, c, e in ((4, 64, 4), (2, 128, 8), (8, 32, 4))
        },
    ),
    "attention": Judged(
        "scheduled_attention.json",
        {"batch": 8, "heads": 16, "length": 2048},
        {"h": 128, "m": 2048, "n": 2048},
        dict(attention.SCHEDULES),
    ),
}


def estimated(which: tuple[str, str]) -> tuple[str, str, float | str]:
    """The estimate of a variant, in microseconds."""
    what, name = which
    try:
        return what, name, ALL[what].variants[name]().estimate(**ALL[what].sizes).seconds * 1e6
    except Exception as problem:  # it is reported, and the variant left out
        return what, name, str(problem)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=280.0)
    parser.add_argument("--only", action="append", help="an algorithm, in place of all of them")
    given = parser.parse_args()
    record = json.loads(given.file.read_text()) if given.file.exists() else {"estimated": {}}
    record |= {"date": date.today().isoformat(), "commit": commit()}
    found: dict[str, dict[str, float]] = record["estimated"]
    for what, one in ALL.items():  # variants that are steps, too, are estimated once
        for other, values in list(found.items()):
            same = {n: v for n, v in values.items() if one.variants.get(n) is ALL[other].variants.get(n) is not None}
            if same and one.sizes == ALL[other].sizes:
                found[what] = {**same, **found.get(what, {})}
    wanted = [
        (what, name)
        for what, one in ALL.items()
        for name in one.measured()
        if name not in found.get(what, {}) and what in (given.only or ALL)
    ]
    end = time.time() + given.seconds
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        results = pool.imap_unordered(estimated, wanted)
        for _ in wanted:
            try:
                what, name, value = results.next(timeout=max(0.1, end - time.time()))
            except multiprocessing.TimeoutError:
                break
            print(f"{what}, {name}: {value}", flush=True)
            if not isinstance(value, str):
                found.setdefault(what, {})[name] = value
                given.file.write_text(json.dumps(record, indent=1))
    record |= judge(found)
    given.file.write_text(json.dumps(record, indent=1))


def judge(found: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The shares and signs of what was estimated, printed."""
    shares: dict[str, float] = {}
    signs: dict[str, bool] = {}
    for what, one in ALL.items():
        guesses = found.get(what, {})
        times = {name: value for name, value in one.measured().items() if name in guesses}
        if len(times) < len(one.measured()):
            continue
        for name, value in times.items():
            print(f"{what:17} {name:26} {value:10.1f} us, estimated {guesses[name]:10.1f}")
        if one.are_steps:
            for a, b in pairwise(times):
                signs[f"{what}: {a} to {b}"] = (times[a] > times[b]) == (guesses[a] > guesses[b])
        else:
            shares[what] = min(times.values()) / times[min(times, key=lambda name: guesses[name])]
    for name, share in shares.items():
        print(f"{name}: the variant that is chosen has {share:.3f} of the fastest")
    print(f"{sum(one >= 0.9 for one in shares.values())} of {len(shares)} algorithms are within 10 % of the fastest")
    print(
        f"{sum(signs.values())} of {len(signs)} steps have the sign of the measurement:",
        *(n for n in signs if not signs[n]),
    )
    return {"shares": shares, "signs": signs}


if __name__ == "__main__":
    main()

"""The pages of docs/hopper: the kernel of each is proved, and each wrong one is refuted by its run.

    python -m tests.prove.pages [--processes 16] [--seconds 200] [--output FILE] [NAME ...]

The blocks of a page are run, and their launches on the emulator are the examples. Beside them, the pipelines of
`tests/prove/pipelines.py`: `wgmma_gemm`, the steps of `tcgen05_gemm`, `nvfp4_gemm`, for any k from 1 on and any grid,
and their wrong twins.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab import launch as launches
from ptxlab.device.options import LaunchOptions
from ptxlab.learn import text_of
from ptxlab.measure.machine import commit
from ptxlab.prove.answers.replay import is_ruled_out
from tests.prove.pipelines import PIPELINES, SIZES, WRONG
from tests.prove.pool import results

PAGES = sorted((Path(__file__).parents[2] / "docs" / "hopper").glob("[0-9]*.md"))
PART = re.compile(r"^## (?P<heading>[^\n]+)$|^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
STORED = ["len(d) == m * n", "n % 16 == 0", "k >= 1"]
ASSUMED = {"03": ["count >= 1", "grid.x == 1", "len(x) == 128 * count", "len(y) == 128"],
           "04": ["len(x) == grid.x * 128", "len(y) * 4 == grid.x"], "05": ["grid.x == 2"], "06": STORED, "07": STORED,
           "08": STORED, "09": SIZES, "10": SIZES}  # fmt: skip


class Shown(NamedTuple):
    """A launch of a page."""

    kernel: ir.Function
    args: Sequence[object]
    options: LaunchOptions
    found: list[str]
    """What goes wrong in the page's run, of what a proof rules out: of some wrong kernels only the answer is wrong."""


def shown(page: Path) -> Iterator[tuple[str, Shown]]:
    """The launches of a page, each with its section."""
    names: dict[str, object] = {"__name__": "page"}
    section = ""
    run = launches.launch
    for part in PART.finditer(page.read_text(encoding="utf-8")):
        if part["heading"]:
            section = part["heading"].strip().lower()
            continue
        made: list[Shown] = []

        def launch(
            kernel: ir.Function, args: Sequence[object], options: LaunchOptions, made: list[Shown] = made
        ) -> Any:
            kept = [np.array(one) if isinstance(one, np.ndarray) else one for one in args]
            result = run(kernel, args, options)
            codes = [one.code for one in result.diagnostics if is_ruled_out(one)]
            made.append(Shown(kernel, kept, options, codes))
            return result

        with patch.object(launches, "launch", launch), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(part["text"], str(page), "exec"), names)
        yield from ((section, one) for one in made)


def judge(given: tuple[str, int]) -> list[dict[str, Any]]:
    """The verdicts on a page, or on a pipeline, or on one of its wrong twins."""
    name, number = given
    if name in PIPELINES:
        return [_pipeline(name, number)]
    rows = []
    seen: set[str] = set()
    for section, one in shown(next(page for page in PAGES if page.name.startswith(name))):
        text = ptxlab.format(one.kernel.module) if one.kernel.module is not None else ""
        is_first = section == "right" and not rows  # the others are the same, with notes of when things happen
        if (is_first or section == "wrong") and text not in seen:
            seen.add(text)
            section = section if is_first or one.found else "wrong, but only its answer"
            start = process_time()
            options = one.options
            try:
                found = ptxlab.prove(one.kernel, one.args, grid=options.grid, block=options.block,
                                     shared=options.shared, cluster=options.cluster, assume=ASSUMED.get(name, []),
                                     timeout=200)  # fmt: skip
            except ptxlab.PtxError as wrong:
                rows.append({"name": name, "section": section, "level": "refused", "found": str(wrong)[:80]})
                continue
            rows.append(_row(name, section, found, process_time() - start))
    return rows


def _pipeline(name: str, number: int) -> dict[str, Any]:
    pipeline, start = PIPELINES[name], process_time()
    launch = pipeline.launch(pipeline.sizes[-1])
    if number < 0:
        found = ptxlab.prove(launch, assume=pipeline.assume, replays=False, timeout=200)
        return _row(name, "right", found, process_time() - start)
    _, old, new, _ = WRONG[number]
    text = text_of(launch)
    changed = re.sub(old, new, text, count=0 if old.startswith(r"\], 8") else 1)
    found = ptxlab.prove(launch.changed((text, changed)), assume=pipeline.assume, timeout=200)
    return _row(name, f"wrong: {old} -> {new}", found, process_time() - start)


def _row(name: str, section: str, found: Any, seconds: float) -> dict[str, Any]:
    code = found.counterexample.finding.code if found.counterexample else None
    gaps = [str(one) for one in found.gaps[:2]]
    return {
        "name": name,
        "section": section,
        "level": found.level,
        "found": code,
        "seconds": round(seconds, 1),
        "gaps": gaps,
    }


def main() -> None:
    """Judge all, print the rows, and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    asked = [(page.name[:2], 0) for page in PAGES] + [(name, -1) for name in PIPELINES]
    asked += [(name, number) for number, (name, *_) in enumerate(WRONG)]
    asked = [one for one in asked if not given.names or one[0] in given.names]
    rows: list[dict[str, Any]] = []
    for found in results(judge, asked, given.processes, given.seconds):
        rows += found
        for row in found:
            print(*row.values(), flush=True)
    rows.sort(key=lambda row: (row["name"], row["section"]))
    rights, wrongs = "right", re.compile("wrong$|wrong:")
    right, wrong = ([row for row in rows if re.match(one, row["section"])] for one in (rights, wrongs))
    counts = {"right": len(right), "proved": sum(row["level"] == "proved" for row in right), "wrong": len(wrong),
              "refuted by a run": sum(row["level"] == "counterexample" for row in wrong),
              "wrong, but proved": sum(row["level"] == "proved" for row in wrong)}  # fmt: skip
    print(json.dumps(counts))
    if given.output is not None:
        given.output.write_text(json.dumps({"commit": commit(), "counts": counts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

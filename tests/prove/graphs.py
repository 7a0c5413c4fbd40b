"""Indigo3's labelled graph kernels: no code with a planted race may be proved, and how many without a bug are.

    python -m tests.prove.graphs FOLDER [--processes 8] [--seconds 270] [--output FILE]
    python -m tests.prove.graphs FOLDER --draw GENERATED --include HEADERS [--count 14]

FOLDER has the PTX of each code, and `sel.txt`: lines of a label, `racy` or `free`, and the path of a code. Neither is
kept here. The proof of a code is that of all its kernels, with blocks of 512 threads, accesses assumed to be in bounds.
`--draw` draws so many codes of each label from those that the suite generates with `bug: {all}`, and compiles them: of
`racy`, no other bug than `RaceBug` is in the name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import ptxlab
from ptxlab.measure.machine import commit
from ptxlab.toolchain import find
from tests.prove.pool import results

BLOCK = 512
GONE = ("-DclockRate=warpSize", "-DmemoryClockRate=warpSize")  # fields that CUDA 13 has no more, which are printed


def judge(given: tuple[str, Path, str, float]) -> dict[str, Any]:
    """What is proved of a kernel."""
    label, path, entry, timeout = given
    found = ptxlab.prove(ptxlab.load(path)[entry], block=BLOCK, bounds=False, replays=False, timeout=timeout)
    gaps = [str(one) for one in found.gaps[:2]]
    return {"label": label, "code": path.stem, "kernel": entry, "level": found.level, "gaps": gaps}


def summary(rows: list[dict[str, Any]], codes: Counter[str]) -> dict[str, dict[str, int]]:
    """Of each label: the codes, those whose kernels were all judged in time, and those that are proved."""
    levels: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        levels[row["label"], row["code"]].append(row["level"])
    found = {}
    for label in ("racy", "free"):
        own = [(code, one) for (other, code), one in levels.items() if other == label]
        judged = [(code, one) for code, one in own if len(one) == codes[code]]
        proved = sum(set(one) == {"proved"} for _, one in judged)
        found[label] = {"codes": len(own), "judged": len(judged), "proved": proved}
    return found


def draw(folder: Path, generated: Path, include: Path, count: int) -> None:
    """Draw codes of each label, the same each time, and compile them."""
    nvcc = str(find("nvcc").path)
    labels: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(generated.rglob("*.cu")):
        bugs = {one for one in path.stem.split("_") if one.endswith("Bug") and not one.startswith("No")}
        if bugs <= {"RaceBug"}:
            labels["racy" if bugs else "free"].append(path)
    lines = []
    for label in ("racy", "free"):
        codes = Random(0).sample(labels[label], len(labels[label]))
        found = 0
        for path in codes:
            target = folder / f"{path.stem}.ptx"
            command = [nvcc, "-arch=sm_80", "-ptx", "-w", *GONE, f"-I{include}", "-o", str(target), str(path)]
            if found < count and subprocess.run(command, capture_output=True, check=False).returncode == 0:
                lines.append(f"{label} {path.name}")
                found += 1
    (folder / "sel.txt").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Judge all, print the numbers, and write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--draw", type=Path, help="the codes that the suite has generated")
    parser.add_argument("--include", type=Path, default=Path())
    parser.add_argument("--count", type=int, default=14)
    given = parser.parse_args()
    if given.draw is not None:
        draw(given.folder, given.draw, given.include, given.count)
        return
    asked = []
    codes: Counter[str] = Counter()
    for line in (given.folder / "sel.txt").read_text().splitlines():
        label, source = line.split()
        path = given.folder / f"{Path(source).stem}.ptx"
        for entry in ptxlab.load(path).entries if path.exists() else ():
            asked.append((label, path, entry, given.timeout))
            codes[path.stem] += 1
    rows = list(results(judge, asked, given.processes, given.seconds))
    rows.sort(key=lambda row: (row["label"], row["code"], row["kernel"]))
    counts = summary(rows, codes)
    print(json.dumps(counts, indent=1))
    if given.output is not None:
        given.output.write_text(json.dumps({"commit": commit(), "counts": counts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

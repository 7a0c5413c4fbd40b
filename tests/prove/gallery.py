"""Which kernels of the gallery are proved: each variant, with a launch at each of its small sizes as the example.

    python -m tests.prove.gallery [--processes 16] [--output FILE] [NAME ...]

Sizes, the grid and the contents of arrays are arbitrary; the example shows what lengths of arrays are, and what sizes
are multiples of. A size that no launch of a variant is for is left out.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from time import process_time
from typing import Any

import ptxlab
from ptxlab import kernels
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure import Host
from ptxlab.measure.entry import Size
from ptxlab.measure.machine import commit
from tests.prove.pool import results


def judge(given: tuple[str, str, Size, float]) -> list[dict[str, Any]]:
    """What is proved of the kernels that a variant launches."""
    name, variant, size, timeout = given
    entry = kernels.entry(name)
    try:
        launches = entry.launches(variant, entry.arrays(Host(7), **size))
    except UnsuitedError:
        return []
    rows = []
    for launch in launches:
        start = process_time()
        found = ptxlab.prove(launch, timeout=timeout)
        rows.append({
            "name": name,
            "variant": variant,
            "size": dict(size),
            "kernel": found.kernel,
            "level": found.level,
            "seconds": round(process_time() - start, 1),
            "assumptions": list(found.assumptions),
            "gaps": [str(one) for one in found.gaps[:3]],
        })  # fmt: skip
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Of each variant, at how many of the sizes all that it launches is proved."""
    levels: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        levels[f"{row['name']}, {row['variant']}"][str(row["size"])].append(row["level"])
    return {
        name: f"{sum(set(one) == {'proved'} for one in sizes.values())} of {len(sizes)}"
        for name, sizes in sorted(levels.items())
    }


def main() -> None:
    """Prove all, print the table, and write it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    asked = [
        (name, variant, size, given.timeout)
        for name in given.names or kernels.names()
        for variant in kernels.entry(name).variants
        for size in kernels.entry(name).small
    ]
    rows: list[dict[str, Any]] = []
    for found in results(judge, asked, given.processes, given.seconds):
        rows += found
        for row in found:
            words = [row["level"], row["seconds"], row["name"], row["variant"], row["size"], *row["gaps"][:1]]
            print(*words, flush=True)
    rows.sort(key=lambda row: (row["name"], row["variant"], str(row["size"])))
    counts = summary(rows)
    print(json.dumps(counts, indent=1))
    if given.output is not None:
        given.output.write_text(json.dumps({"commit": commit(), "proved": counts, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

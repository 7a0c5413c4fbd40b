"""Kernels of others, each proved for any grid: GPUVerify's benchmarks, or any folder of CUDA files with such comments.

    python -m tests.prove.strangers FOLDER --ptx FOLDER [--header FILE] [--only NAME] [--output evidence/x.json]

The files are not part of this repository. The first line of each says what GPUVerify finds, `//pass` or `//xfail:...`;
the second one has the block and the grid. A file with `MUTATION` in it has a wrong twin, compiled with `-DMUTATION`.
There, an added access `x = x;` is made one that a compiler keeps. `--header` is included first: it defines the few
intrinsics of GPUVerify, and makes a `__requires` that does not hold end the launch. What compiles is kept in the folder
`--ptx`, and what is there is not compiled again.

A kernel that is not proved for any grid is tried again with the grid of its file. Arrays have no lengths there, so
accesses to arrays are assumed to be in bounds.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import ptxlab
from ptxlab.measure.machine import commit
from ptxlab.toolchain import find
from tests.prove.pool import results

KEPT = r'{ auto kept = \2; asm volatile("" ::: "memory"); \2 = kept; }'
DYNAMIC = 48 << 10  # bytes of dynamic shared memory: no file says how many it has


class Stranger(NamedTuple):
    """A file, as it is or as its wrong twin, and its PTX."""

    name: str
    source: Path
    ptx: Path
    is_twin: bool


def strangers(folder: Path, ptx: Path, only: str) -> Iterator[Stranger]:
    """The files of a folder, those with a wrong twin twice."""
    for source in sorted(folder.rglob("*.cu")):
        name = str(source.relative_to(folder))
        stem = name.replace("/", "__")[:-3]
        if only in name:
            yield Stranger(name, source, ptx / f"{stem}.ptx", False)
            if "MUTATION" in source.read_text(errors="replace"):
                yield Stranger(name, source, ptx / f"{stem}.mutant.ptx", True)


def compile(one: Stranger, header: Path | None) -> bool:
    """Compile a file, if it is not; whether that goes."""
    failed = one.ptx.with_suffix(".err")
    if not one.ptx.exists() and not failed.exists():
        text = one.source.read_text(errors="replace")
        _, second, *_ = text.splitlines()
        defined = re.findall(r"-D\S+", second) + ["-DMUTATION"] * one.is_twin
        if one.is_twin:
            text = re.sub(r"(?m)^([ \t]*)(\S.*) = \2;", rf"\1{KEPT}", text)
        source = one.ptx.with_suffix(".cu")
        source.write_text(text)
        included = [] if header is None else ["-I", str(header.parent), "-include", header.name]
        command = [str(find("nvcc").path), "-ptx", "-arch=sm_80", "-lineinfo", "-w", "-I", str(one.source.parent)]
        command += [*included, *defined, str(source), "-o", str(one.ptx)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed.write_text(done.stderr)
    return one.ptx.exists()


def extents(text: str, option: str) -> tuple[int, ...]:
    """What an option of GPUVerify says, as `--blockDim=[16,16]`; what it does not name is 1."""
    found = re.search(rf"--{option}=\[?([\d,]+)", text)
    said = [] if found is None else [int(one) for one in found[1].strip(",").split(",")]
    return tuple([*said, 1, 1, 1][:3])


def judge(one: Stranger, timeout: float) -> list[dict[str, Any]]:
    """A row for each kernel of a file."""
    first, second, *_ = one.source.read_text(errors="replace").splitlines()
    block, grid = extents(second, "blockDim"), extents(second, "gridDim")
    said = [f"grid.{axis} == {extent}" for axis, extent in zip("xyz", grid, strict=True)]
    module = ptxlab.load(one.ptx)
    has_dynamic = ".extern .shared" in one.ptx.read_text()
    rows = []
    for entry in module.entries:
        row = {"file": one.name, "kernel": entry, "expected": first.strip("/ "), "twin": one.is_twin, "block": block}
        start = time.process_time()
        for assume in ([], said):
            found = ptxlab.prove(
                module[entry],
                block=block,
                shared=DYNAMIC if has_dynamic else 0,
                assume=assume,
                bounds=False,
                replays=one.is_twin or bool(assume),
                timeout=timeout,
            )
            row |= {"grid": "any" if not assume else grid, "level": found.level}
            if found.level == "proved" or (one.is_twin and found.counterexample is not None):
                break
        row["seconds"] = round(time.process_time() - start, 1)
        if found.counterexample is not None:
            row["finding"] = found.counterexample.finding.code
        row["gaps"] = [{"kind": gap.kind, "lines": gap.lines[:4], "reason": gap.reason} for gap in found.gaps[:4]]
        rows.append(row)
    return rows


def _judge(given: tuple[Stranger, float]) -> list[dict[str, Any]]:
    one, timeout = given
    try:
        return judge(one, timeout)
    except Exception as wrong:  # a crash is a row, and the others continue
        kind = (
            "refused" if isinstance(wrong, ptxlab.PtxError | ptxlab.KernelError) else "crash"
        )  # a block of 4096 threads, for one
        return [{"file": one.name, "twin": one.is_twin, "level": kind, "gaps": [{"kind": kind, "reason": repr(wrong)}]}]


def spell(row: dict[str, Any]) -> str:
    """A row as a line."""
    gaps = "; ".join(f"{gap['kind']} {gap.get('lines', '')}: {gap['reason']}" for gap in row["gaps"][:2])
    words = [row["level"], "twin" if row["twin"] else row.get("expected", ""), f"grid {row.get('grid')}",
             f"{row.get('seconds')} s", row["file"], row.get("kernel", ""), row.get("finding", ""), gaps]  # fmt: skip
    return "  ".join(str(word) for word in words)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of all rows."""
    right = [row for row in rows if not row["twin"]]
    proved = [row for row in right if row["level"] == "proved"]
    return {
        "kernels": len(right),
        "proved": len(proved),
        "proved for any grid": sum(row["grid"] == "any" for row in proved),
        "median seconds": median(row["seconds"] for row in right if "seconds" in row) if right else None,
        "levels": dict(Counter(row["level"] for row in right)),
        "twins": dict(Counter(row["level"] for row in rows if row["twin"])),
    }


def main() -> None:
    """Prove all, print a table, and write what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ptx", type=Path, required=True)
    parser.add_argument("--header", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=1e6, help="after which those under way are stopped")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    given.ptx.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in strangers(given.folder, given.ptx, given.only) if compile(one, given.header)]
    rows: list[dict[str, Any]] = []
    for found in results(_judge, [(one, given.timeout) for one in chosen], given.processes, given.seconds):
        rows += found
        print("\n".join(map(spell, found)), flush=True)
        if given.output is not None:  # each time, so that what ends this leaves what is known
            given.output.write_text(json.dumps(written(rows, len(chosen)), indent=1) + "\n")
    print(json.dumps(written(rows, len(chosen))["summary"], indent=2))


def written(rows: list[dict[str, Any]], files: int) -> dict[str, Any]:
    """What is known of so many files, to be written."""
    judged = {(row["file"], row["twin"]) for row in rows}
    result = summary(rows) | {"files not judged in time": files - len(judged)}
    return {"commit": commit(), "summary": result, "rows": sorted(rows, key=lambda row: (row["file"], row["twin"]))}


if __name__ == "__main__":
    main()

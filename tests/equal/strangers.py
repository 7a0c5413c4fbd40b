"""Kernels of strangers against NumPy: right ones must not be refused, and no answer may be wrong.

    python -m tests.equal.strangers ROOT [--only PART ...] [--compiled FOLDER] [--output FILE] [--draw]

ROOT has a folder for each project of `PROJECTS`, which are not part of this repository. `--compiled` keeps the PTX of a
run for the next one. `--draw` prints the kernels that the seed draws, and nothing else: `projects` has those of
them that a launch with arrays can run, `LEFT_OUT` says why not the others. The output has one row a kernel, with the
answer, the line of a refusal, and the words of a difference; rows of kernels that are not compared again are kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import ir
from ptxlab.equal import Launch
from ptxlab.syntax import format
from ptxlab.toolchain import compilation, find
from tests.equal.projects import LEFT_OUT, STRANGERS
from tests.equal.projects.stranger import Stranger

PROJECTS = {  # the folder with kernels, and how many of them are drawn
    "llm.c": ("dev/cuda", 30), "SGEMM_CUDA": ("", 8), "LeetCUDA": ("kernels", 45), "polybench": ("CUDA", 14),
    "HeCBench": ("src", 25), "rodinia": ("cuda", 12), "cuda-samples": ("", 20),
}  # fmt: skip
SEED = 38
_KERNEL = re.compile(r"__global__[^;{]*?\b(\w+)\s*\(([^)]*)\)\s*\{")
_FLOATS = re.compile(r"float|half|double|bfloat|floatX|DATA_TYPE|\bT\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def draw(root: Path) -> list[str]:
    """Kernels with a parameter of floats, by the seed."""
    generator = random.Random(SEED)
    drawn: list[str] = []
    for project, (folder, count) in PROJECTS.items():
        found = []
        top = root / project / folder
        for file in sorted(one for one in top.rglob("*.cu*") if one.suffix in (".cu", ".cuh")):
            text = _COMMENT.sub(" ", file.read_text(errors="replace"))
            kernels = _KERNEL.findall(text)
            found += [f"{project} {file.relative_to(top)} {name}" for name, given in kernels if _FLOATS.search(given)]
        drawn += sorted(generator.sample(found, count))
    return drawn


class Compiled:
    """The modules of files, each compiled once."""

    def __init__(self, root: Path, folder: Path | None) -> None:
        self._root, self._folder = root, folder
        self._known: dict[str, ir.Module] = {}
        compilation.choose = lambda is_file, options=(): find("nvrtc")  # needs no headers of the host

    def kernel(self, one: Stranger) -> ir.Function:
        """The kernel of a file."""
        file = self._root / one.project / PROJECTS[one.project][0] / one.file
        instances = sorted({name for other in STRANGERS if (other.project, other.file) == (one.project, one.file)
                            for name in other.instance})  # fmt: skip
        key = hashlib.sha256(repr((str(one.file), one.options, instances)).encode()).hexdigest()[:12]
        if key not in self._known:
            self._known = {key: self._module(one, file, instances, key)}
        return self._known[key][one.entry]

    def _module(self, one: Stranger, file: Path, instances: Sequence[str], key: str) -> ir.Module:
        kept = self._folder / f"{key}.ptx" if self._folder else None
        if kept is not None and kept.is_file():
            return ptxlab.parse(kept.read_text(), name=file.name)
        beside = [f"-I{folder / 'utils'}" for folder in list(file.parents)[:3] if (folder / "utils").is_dir()]
        options = [option.replace("{root}", str(self._root)) for option in one.options]
        with chdir(file.parent), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ptxlab.cuda(Path(file.name), one.target, ["-std=c++17", "-I.", *options, *beside],
                                 instantiate=instances)  # fmt: skip
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(format(module))
        return module


def compare(one: Stranger, compiled: Compiled) -> dict[str, Any]:
    """What comes of a kernel."""
    row: dict[str, Any] = {"kernel": one.name, "level": "does not run", "words": [], "places": [], "refusal": ""}
    if one.mistake:
        row["mistake"] = one.mistake
    started = time.process_time()
    names = {f"p{number}": value for number, value in enumerate(one.args) if isinstance(value, np.ndarray)}

    def reference(**given: Any) -> dict[str, Any]:
        assert one.wanted is not None
        found = one.wanted(*(given.get(f"p{number}", value) for number, value in enumerate(one.args)))
        return {f"p{number}": value for number, value in found.items()} if isinstance(found, dict) else {"p0": found}

    try:
        launch = Launch(compiled.kernel(one), one.grid, one.block, list(one.args), one.shared)
        other = compiled.kernel(replace(one, options=(*one.options, "--fmad=false"))) if one.wanted is None else None
        found = ptxlab.equal(launch, reference if other is None else replace(launch, kernel=other), names=names,
                             assume_paths=True, timeout=60)  # fmt: skip
    except (ptxlab.PtxError, ptxlab.KernelError) as problem:
        row["refusal"] = "; ".join(f"{d.code}: {d.message}" for d in problem.diagnostics[:2])
        return row
    except Exception as problem:  # a bug, of the comparison or of this list: it is listed
        row["level"], row["refusal"] = "fails", "".join(traceback.format_exception(problem)[-3:])
        return row
    row["level"], row["cpu_seconds"] = found.level, round(time.process_time() - started, 1)
    row["paths"] = "where branches go as they did" in found.holds_for
    if found.refusal is not None:
        row["refusal"] = f"line {found.refusal.line}: {found.refusal.instruction}: {found.refusal.why}"
    if found.witness is not None and not found.same:
        row["words"] = [f"{found.witness.element}, {found.differing} of {found.elements}", *found.witness.words]
        row["places"] = [str(place) for place in found.witness.places if place is not None]
    if found.error is not None:
        row["error"] = [float(f"{value:.3g}") for value in found.error]
    return row


def main() -> None:
    """Compare the kernels that are asked for, and say how many are refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--compiled", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--draw", action="store_true")
    asked = parser.parse_args()
    root = asked.root.absolute()
    if asked.draw:
        print("\n".join(draw(root)))
        return
    compiled = Compiled(root, asked.compiled and asked.compiled.absolute())
    known = json.loads(asked.output.read_text())["kernels"] if asked.output and asked.output.is_file() else []
    rows = {row["kernel"]: row for row in known}
    for one in STRANGERS:
        if any(part in one.name for part in asked.only or [""]):
            row = rows[one.name] = compare(one, compiled)
            print(f"{row.get('cpu_seconds', 0.0):6.1f} s  {row['level']:14} {row['kernel']}", *row["words"][:2],
                  row["refusal"], flush=True)  # fmt: skip
            if asked.output:
                _write(asked.output, root, rows)
    levels = Counter(row["level"] for row in rows.values())
    print(f"{len(rows)} kernels: " + ", ".join(f"{count} {level}" for level, count in levels.most_common()))


def _write(output: Path, root: Path, rows: dict[str, dict[str, Any]]) -> None:
    """All rows, in the order of the list, and what they come to: a kernel with a mistake of its own is not right."""
    found = [rows[one.name] for one in STRANGERS if one.name in rows]
    right = [row for row in found if "mistake" not in row]
    commits = {name: (root / f"{name}.commit").read_text().strip() for name in PROJECTS
               if (root / f"{name}.commit").is_file()}  # fmt: skip
    result = {"command": "python -m tests.equal.strangers ROOT --output evidence/equal_strangers.json", "seed": SEED,
              "commits": commits, "drawn": len(STRANGERS) + len(LEFT_OUT), "left_out": LEFT_OUT,
              "right_kernels": len(right), "levels": dict(Counter(row["level"] for row in right)),
              "refused": [f"{row['kernel']}: {row['refusal']}" for row in right if row["level"] == "refused"],
              "kernels": found}  # fmt: skip
    output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

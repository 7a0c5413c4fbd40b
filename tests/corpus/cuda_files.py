"""Kernels of public `.cu` files, each from its file: compiled, run with all detectors, compared with NumPy.

    python -m tests.corpus.cuda_files ROOT [--only NAME] [--compiler nvcc] [--output FILE.json]

ROOT has the folders `cuda-samples`, `cutlass`, `llm.c`, ...: the repositories, which are no part of this one. What is
found is written as JSON, one row a kernel; `--output` keeps the rows of other compilers that the file has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from collections.abc import Sequence
from contextlib import chdir
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.report import Diagnostic, KernelError, PtxError, render
from ptxlab.toolchain import compilation, find
from tests.corpus.cuda_projects import PROJECTS
from tests.corpus.cuda_sample import Sample
from tests.corpus.cuda_samples import SAMPLES
from tests.corpus.cute_tutorials import TUTORIALS

ALL = [*SAMPLES, *TUTORIALS, *PROJECTS]


def run(sample: Sample, compiler: str) -> dict[str, Any]:
    """Compile and run one kernel, from the folder of its repository; what came of it."""
    about = {"repository": sample.repository, "file": sample.file, "kernel": sample.entry, "target": sample.target}
    row: dict[str, Any] = {**about, "compiler": compiler, "findings": []}
    if sample.known:
        row["known"] = sample.known
    wanted = [sample.entry] if sample.entry.endswith(">") and "..." not in sample.entry else []
    args = [value.copy() if isinstance(value, np.ndarray) else value for value in sample.args]
    expected = np.asarray(sample.wanted(*sample.args), np.float64).reshape(-1)
    started = time.monotonic()
    try:
        module = compiled(sample.file, sample.target, tuple(sample.options), tuple(wanted))
        for name, value in sample.variables.items():
            module.set(name, value)
        row["compiled"] = round(time.monotonic() - started, 1)
        result = module[sample.entry].launch(
            sample.grid, sample.block, args, device="cpu", on_error="collect", timeout=300, **sample.launch
        )
        row["findings"] = _lines(result.diagnostics)
    except (PtxError, KernelError) as wrong:
        row["refused"] = _lines(wrong.diagnostics)
        return row
    given = args[sample.result] if isinstance(sample.result, int) else sample.result
    found = np.asarray(given, np.float64).reshape(-1)[: expected.size]
    row["error"] = float(np.abs(found - expected).max() / max(1.0, float(np.abs(expected).max())))
    row["right"] = row["error"] <= sample.tolerance
    return row


@lru_cache(maxsize=2)
def compiled(file: str, target: str, options: tuple[str, ...], instantiate: tuple[str, ...]) -> ptxlab.ir.Module:
    """A file as a module; the kernels of one file follow each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ptxlab.cuda(Path(file), target, options, instantiate=instantiate)


def _lines(found: Sequence[Diagnostic]) -> list[str]:
    return render(found, "concise").splitlines()


def _commit(folder: Path) -> str:
    """The commit of a repository, where it is one; a copy has its commit in a file beside it."""
    beside = folder.with_name(f"{folder.name}.commit")
    if beside.is_file():
        return beside.read_text().strip()
    asked = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def main() -> None:
    """Run the kernels that are asked for, and say how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--compiler", choices=["nvcc", "nvrtc"], default="nvcc")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    compilation.choose = lambda is_file, options=(): find(asked.compiler)
    root, output = asked.root.absolute(), asked.output and asked.output.absolute()
    rows: list[dict[str, Any]] = []
    for sample in ALL:
        if asked.only in f"{sample.repository}/{sample.file} {sample.entry}":
            with chdir(root / sample.repository):
                rows.append(run(sample, asked.compiler))
            print(json.dumps(rows[-1]), flush=True)
            if output:
                _write(output, rows[-1:], root)
    right = sum(bool(row.get("right")) and not row["findings"] for row in rows)
    known = sum("known" in row for row in rows)
    print(f"{right} of {len(rows)} right and without findings, {known} with a mistake of their own")


def _write(output: Path, rows: Sequence[dict[str, Any]], root: Path) -> None:
    """Replace the rows of these kernels and compilers, and keep the others."""
    before = json.loads(output.read_text())["rows"] if output.is_file() else []

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in ("repository", "file", "kernel", "compiler"))

    found = {key(row): row for row in (*before, *rows)}
    order = [(one.repository, one.file, one.entry, name) for name in ("nvcc", "nvrtc") for one in ALL]
    names = sorted({one.repository for one in ALL})
    tools = {name: find(name).version for name in ("nvcc", "nvrtc")}
    about = {
        "command": f"python -m tests.corpus.cuda_files ROOT --output evidence/{output.name}",
        "compilers": tools,
        "repositories": {name: _commit(root / name) for name in names},
        "rows": [found[one] for one in order if one in found],
    }
    output.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()

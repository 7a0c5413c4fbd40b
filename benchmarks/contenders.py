"""Processes that take turns on a GPU, each with the functions of one tree of ptxlab: for programs that compare trees.

A program is started again with `--contender NAME`, prepares itself, and answers each line with one of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.measure.machine import commit, describe, require_torch

ROOT = Path(__file__).resolve().parent.parent


def start(program: str, name: str, tree: Path) -> subprocess.Popen[str]:
    """A contender, with the functions of a tree, and what this folder has."""
    paths = os.pathsep.join([str(tree / "src"), str(ROOT / "benchmarks")])
    command, pipe = [sys.executable, program, "--contender", name], subprocess.PIPE
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, stdin=pipe, stdout=pipe, text=True)


def ask(process: subprocess.Popen[str], what: str) -> Any:
    """What a contender answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(what + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def serve(answers: Mapping[str, Callable[[], object]]) -> None:
    """Answer until there is no more to be asked."""
    for line in sys.stdin:
        print(json.dumps(answers[line.strip()]()), flush=True)


def keep(name: str, found: Mapping[str, object]) -> None:
    """Write what was found to a file in `evidence`, or where `$OUT` says."""
    command = f"python benchmarks/{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}"
    about = {"command": command, "date": date.today().isoformat(), "commit": commit(), **describe(require_torch())}
    path = Path(os.environ.get("OUT", ROOT / "evidence"), name)
    path.write_text(json.dumps({"about": about, **found}) + "\n", encoding="utf-8")

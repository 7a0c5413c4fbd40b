"""A list of programs of others that was drawn blindly: by a seed, of all that have a `main()` and use CUDA.

    python -m tests.programs.draw MIRRORS --seed 35 --output tests/programs/drawn.json
    python -m tests.programs.draw MIRRORS --seed 36 --second --output tests/programs/drawn_second.json

The second list is of other folders and projects than the first. MIRRORS has the repositories as `owner+name/repo`,
without a work tree. The file has, for each suite, an order of its programs in which they are tried. What lacks a
library or data is named and the next is taken, so that the list is not chosen; `strangers.py` runs them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.programs.strangers_list import PROGRAMS

FIRST = Path(__file__).with_name("drawn.json")
_MAIN = r"^[^/*]*\bmain[[:space:]]*\("
_SPARE = 3  # as many times as many are drawn as must run


@dataclass(frozen=True)
class Suite:
    """Where the programs of a suite are; how many of them must run."""

    name: str
    repositories: tuple[str, ...]
    paths: str
    count: int


_AUTHORS = (
    "effective_reduction", "effective_transpose", "effective_scan", "effective_rms_norm", "tma_intro", "load_and_store",
    "fibonacci_gpu", "persistent_l2_cache_cuda", "vector_copy_vectorized", "matrix-multiplication-cuda", "cuda_streams",
)  # fmt: skip

SUITES = (
    Suite("cuda-samples", ("NVIDIA+cuda-samples",), r"Samples/", 11),
    Suite("hecbench", ("zjin-lcf+HeCBench",), r"src/[^/]+-cuda/", 12),
    Suite("llm.c", ("karpathy+llm.c",), r"", 6),
    Suite("rodinia", ("yuhc+gpu-rodinia",), r"cuda/", 6),
    Suite("polybench", ("sgrauerg+polybenchGpu",), r"CUDA/", 5),
    Suite("texts", ("siboehm+SGEMM_CUDA", *(f"simveit+{name}" for name in _AUTHORS)), r"", 6),
)

SECOND = (
    Suite("cuda-samples", ("NVIDIA+cuda-samples",), r"Samples/", 2),
    Suite("hecbench", ("zjin-lcf+HeCBench",), r"src/[^/]+-cuda/", 3),
    Suite("polybench", ("sgrauerg+polybenchGpu",), r"CUDA/", 1),
    Suite("books", ("brucefan1983+CUDA-Programming", "deeperlearning+professional-cuda-c-programming"), r"", 3),
    Suite("courses", ("CoffeeBeforeArch+cuda_programming", "olcf+cuda-training-series"), r"", 2),
    Suite("blog", ("NVIDIA-developer-blog+code-samples",), r"", 2),
    Suite("parboil", ("abduld+Parboil",), r"benchmarks/[^/]+/src/cuda", 1),
)


def _git(folder: Path, *arguments: str) -> list[str]:
    asked = subprocess.run(
        ["git", f"--git-dir={folder}", *arguments], capture_output=True, text=True, errors="replace", check=False
    )
    return asked.stdout.splitlines()


def programs(suite: Suite, mirrors: Path) -> list[str]:
    """All files with a `main()` that are CUDA, or name it, as `owner+name/path`."""
    found = []
    for repository in suite.repositories:
        folder = mirrors / repository / "repo"
        sources = ("--", "*.cu", "*.cpp", "*.cc", "*.c")
        mains = _git(folder, "grep", "-lE", _MAIN, "HEAD", *sources)
        named = set(_git(folder, "grep", "-liE", r"cuda|\.cu\b", "HEAD", *sources))
        for line in sorted(mains):
            path = line.removeprefix("HEAD:")
            if re.match(suite.paths, path) and (path.endswith(".cu") or line in named):
                found.append(f"{repository}/{path}")
    return found


def _folder(name: str) -> str:
    return name.split("/")[-2].removesuffix("-cuda")


def main() -> None:
    """Draw, and write what was drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--second", action="store_true")
    asked = parser.parse_args()
    first = {_folder(name) for suite in json.loads(FIRST.read_text())["suites"].values() for name in suite["order"]}
    left_out = {*first, *(one.name.split("/")[1] for one in PROGRAMS)} if asked.second else set()
    chance = random.Random(asked.seed)
    drawn: dict[str, object] = {"seed": asked.seed, "commits": {}, "suites": {}}
    for suite in SECOND if asked.second else SUITES:
        for repository in suite.repositories:
            head = _git(asked.mirrors / repository / "repo", "rev-parse", "HEAD")
            drawn["commits"][repository] = head[0] if head else ""  # type: ignore[index]
        known = [name for name in programs(suite, asked.mirrors) if _folder(name) not in left_out]
        order = chance.sample(known, min(len(known), _SPARE * suite.count))
        drawn["suites"][suite.name] = {"programs": len(known), "must_run": suite.count, "order": order}  # type: ignore[index]
    asked.output.write_text(json.dumps(drawn, indent=1) + "\n")


if __name__ == "__main__":
    main()

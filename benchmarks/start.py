"""How long it takes until a command line has done a small job, beyond a Python that does nothing.

`python benchmarks/start.py` prints a row a command: the seconds of a core that its processes take, the least of
several runs, less those of `python -c pass`. The bars are those of `check`, `explain` and `format` at a fifth of a
second, a first `run` on a machine at 1.5 s, and a new kernel at 0.5 s.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

KERNEL = Path(__file__).resolve().parents[1] / "src/ptxlab/kernels/sgemm/naive.ptx"
ARGUMENTS = ["f32[256]=ones", "f32[256]=ones", "f32[256]", "16", "16", "16"]
LAUNCH = ["--grid", "1", "--block", "16,16", *(word for one in ARGUMENTS for word in ("--arg", one))]


def seconds(arguments: list[str], times: int, cache: Path | None = None) -> float:
    """The least time of a core that Python takes with these arguments, with or without a cache folder of its own."""
    environment = os.environ if cache is None else {**os.environ, "PTXLAB_CACHE": str(cache)}
    found = []
    for _ in range(times):
        before = os.times()
        done = subprocess.run([sys.executable, *arguments], capture_output=True, env=environment)
        assert done.returncode in (0, 1), done.stderr.decode()
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(found)


def main() -> None:
    """Print the table."""
    nothing = seconds(["-c", "pass"], 9)
    ptxlab = ["-m", "ptxlab"]
    rows = {
        f"check {KERNEL.name}": seconds([*ptxlab, "check", str(KERNEL)], 9),
        f"format --check {KERNEL.name}": seconds([*ptxlab, "format", "--check", str(KERNEL)], 9),
        "explain shl": seconds([*ptxlab, "explain", "shl"], 9),
        "explain divergent-barrier": seconds([*ptxlab, "explain", "divergent-barrier"], 9),
        "explain hang": seconds([*ptxlab, "explain", "hang"], 9),
    }
    run = [*ptxlab, "run", *LAUNCH]
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        cache.mkdir(mode=0o700)
        rows["run, on a new machine"] = seconds([*run, str(KERNEL)], 1, cache)
        rows["run, the same again"] = seconds([*run, str(KERNEL)], 5, cache)
        new = []
        for number in range(3):
            changed = Path(folder) / f"new{number}.ptx"
            changed.write_text(KERNEL.read_text() + f"// {number}\n")
            new.append(seconds([*run, str(changed)], 1, cache))
        rows["run, a new kernel"] = min(new)
    for name, took in rows.items():
        print(f"{name:28} {took - nothing:6.2f} s")


if __name__ == "__main__":
    main()

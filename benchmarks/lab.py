"""How fast the page of `ptxlab lab` is on a recorded launch of ten million steps, in Chromium.

`python benchmarks/lab.py [run.ptxtrace] [--json evidence/lab.json]` records a product by `mma.sync` if no recording is
given, opens it as the command does, and measures how long the page takes to load, and from an input to the next frame
after all that is shown has changed. Run it with nothing else on the machine. `docs/build.py --measured` makes the table
of `docs/lab.md` from the file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.lab.browser import Browser, Page, chromium

import ptxlab
from ptxlab import kernels
from ptxlab.lab import Server, Views
from ptxlab.measure import Host

# From setting the state to the frame after every view has shown it, in milliseconds.
MEASURE = """(async (changes) => {
  const found = [];
  for (const change of changes) {
    const start = performance.now();
    lab.state.set(change);
    await Promise.resolve();
    await lab.views[lab.state.now.tab].update(lab.state.now);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    found.push(performance.now() - start);
  }
  return found;
})"""
# A warp step by step, over the end of a window of steps; then any time of any block, with a warp of that block.
STEPS = """(() => {
  const block = lab.run.blocks.find((one) => one.first <= 100000 && one.last > 100400);
  return Array.from({length: 60}, (_, i) => ({position: 100320 + i, warp: block.warps[0]}));
})()"""
JUMPS = """Array.from({length: 40}, (_, i) => {
  const block = lab.run.blocks[(i * 29 + 7) % lab.run.blocks.length];
  return {warp: block.warps[i % block.warps.length], position: block.first + (i * 7919) % (block.last - block.first)};
})"""
TABS = "[...Object.keys(lab.views), ...Object.keys(lab.views)].map((tab) => ({tab}))"


def record(path: Path) -> None:
    """A launch of at least ten million steps of threads."""
    entry = kernels.entry("mma_gemm")
    (launch,) = entry.launches("mma.sync", entry.arrays(Host(7), type="bf16", m=512, n=512, k=704))
    launch.run(device="cpu", checks=False, record=ptxlab.Record(path))


def measure(page: Page, name: str, changes: str) -> dict[str, float]:
    """The median and the longest of changes of the state, and the CPU time of the page's thread for one."""
    before = cpu_time(page)
    found = page.evaluate(f"{MEASURE}({changes})")
    one = {
        "median": round(statistics.median(found), 1),
        "longest": round(max(found), 1),
        "cpu": round(1000 * (cpu_time(page) - before) / len(found), 1),
    }
    print(f"  {name:<24} median {one['median']:6.1f} ms   longest {one['longest']:6.1f} ms   CPU {one['cpu']:6.1f} ms")
    return one


def cpu_time(page: Page) -> float:
    """Seconds of a core that the thread of the page has used."""
    metrics = {one["name"]: one["value"] for one in page.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def about() -> dict[str, Any]:
    """Where and when this is measured."""
    commit = (
        os.environ.get("PTXLAB_COMMIT")
        or subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip()
    )
    version = subprocess.run([str(chromium()), "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "commit": commit, "date": datetime.datetime.now(datetime.UTC).date().isoformat(), "chromium": version,
        "machine": platform.machine(), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2),
        "command": "python benchmarks/lab.py --json evidence/lab.json",
    }  # fmt: skip


def run(path: Path, profile: Path) -> dict[str, Any]:
    """Open a recording, and measure the page."""
    found: dict[str, Any] = {"about": about()}
    with Browser(profile) as browser:
        browser.send("Target.getTargets")  # the browser has started
        start, used = time.perf_counter(), time.process_time()
        trace = ptxlab.Trace.open(path)
        opened = time.perf_counter()
        with Server(Views(trace), 0) as server:
            prepared = time.perf_counter()
            server.start()
            with browser.open(server.url) as page:
                ready = time.perf_counter()
                found["steps"] = {"threads": trace.steps, "warps": server.views.steps.count}
                times = {"all": ready - start, "file": opened - start, "order": prepared - opened,
                         "page": ready - prepared, "cpu": time.process_time() - used}  # fmt: skip
                found["load"] = {name: round(seconds, 2) for name, seconds in times.items()}
                print(found["steps"], found["load"])
                page.send("Performance.disable")
                page.send("Performance.enable", timeDomain="threadTicks")
                time.sleep(4)  # what many answers need is made meanwhile
                found["views"] = {}
                for view in page.evaluate("Object.keys(lab.views)"):
                    page.evaluate(f"lab.state.set({{tab: '{view}'}})")
                    time.sleep(0.5)
                    found["views"][view] = {
                        "step": measure(page, f"{view}: a step", STEPS),
                        "jump": measure(page, f"{view}: a jump", JUMPS),
                    }
                found["tabs"] = measure(page, "another view", TABS)
            server.shutdown()
    return found


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("trace", nargs="?", type=Path)
    reader.add_argument("--json", type=Path, help="write what was measured to this file")
    given = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.trace or Path(folder) / "run.ptxtrace"
        if not path.exists():
            record(path)
        found = run(path, Path(folder) / "profile")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

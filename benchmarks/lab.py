"""How fast the page of `ptxlab lab` is on a recorded launch of ten million steps, in Chromium.

`python benchmarks/lab.py [run.ptxtrace]` records a product by `mma.sync` if no recording is given, opens it as the
command does, and prints how long the page takes to load, and from an input to the next frame.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.lab.browser import Browser, Page

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


def record(path: Path) -> None:
    """A launch of at least ten million steps of threads."""
    entry = kernels.entry("mma_gemm")
    (launch,) = entry.launches("mma.sync", entry.arrays(Host(7), type="bf16", m=512, n=512, k=704))
    launch.run(device="cpu", checks=False, record=ptxlab.Record(path))


def measure(page: Page, name: str, changes: str) -> None:
    """Print the median and the most that changes of the state take, and the CPU time of the page's thread for one."""
    before = cpu_time(page)
    found = page.evaluate(f"{MEASURE}({changes})")
    each = 1000 * (cpu_time(page) - before) / len(found)
    print(
        f"  {name:<24} median {statistics.median(found):6.1f} ms   most {max(found):6.1f} ms   CPU {each:6.1f} ms each"
    )


def cpu_time(page: Page) -> float:
    """Seconds of a core that the thread of the page has used."""
    metrics = {one["name"]: one["value"] for one in page.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "run.ptxtrace"
        if not path.exists():
            record(path)
        with Browser(Path(folder) / "profile") as browser:
            browser.send("Target.getTargets")  # the browser has started
            start, used = time.perf_counter(), time.process_time()
            trace = ptxlab.Trace.open(path)
            opened = time.perf_counter()
            with Server(Views(trace), 0) as server:
                prepared = time.perf_counter()
                server.start()
                with browser.open(server.url) as page:
                    ready = time.perf_counter()
                    print(f"{trace.steps:,} steps of threads, {server.views.steps.count:,} of warps")
                    print(f"  loaded in {ready - start:.2f} s: the file {opened - start:.2f} s, its order "
                          f"{prepared - opened:.2f} s, the page {ready - prepared:.2f} s; "
                          f"{time.process_time() - used:.2f} s of CPU beside the browser's")  # fmt: skip
                    page.send("Performance.disable")
                    page.send("Performance.enable", timeDomain="threadTicks")
                    time.sleep(4)  # what many answers need is made meanwhile
                    steps = "Array.from({length: 40}, (_, i) => ({position: 100000 + i}))"
                    jumps = "Array.from({length: 20}, (_, i) => ({position: (i * 7919 * 37) % lab.run.count}))"
                    for view in page.evaluate("Object.keys(lab.views)"):
                        page.evaluate(f"lab.state.set({{tab: '{view}'}})")
                        time.sleep(0.5)
                        measure(page, f"{view}: a step", steps)
                        measure(page, f"{view}: a jump", jumps)
                    measure(page, "another view", "Object.keys(lab.views).map((tab) => ({tab}))")
                server.shutdown()


if __name__ == "__main__":
    main()

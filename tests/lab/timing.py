"""How long changes of what the page shows take: from an input to the frame after the view and the timeline show it."""

from __future__ import annotations

import statistics
from pathlib import Path

import ptxlab
from ptxlab import kernels
from ptxlab.measure import Host
from tests.lab.browser import Page

# That the page shows its source, its first view and its timeline, in a frame that has been drawn.
FIRST = "document.querySelector('#code .line') !== null"
SHOWN = """(async () => {
  if (!window.lab) return false;
  await Promise.all([lab.views[lab.state.now.tab].update(lab.state.now), lab.timeline.following]);
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return document.querySelector('.line.current') !== null && lab.timeline.shownTracks?.length > 0
    && (lab.views.registers.rows.known.size > 0 || !lab.views.registers.none.hidden); // none is written before step 0
})()"""
# From setting the state to the frame after the view, the source and the timeline show it, in milliseconds.
MEASURE = """(async (changes) => {
  const found = [];
  for (const change of changes) {
    const start = performance.now();
    lab.state.set(change);
    await Promise.resolve();
    await Promise.all([lab.views[lab.state.now.tab].update(lab.state.now), lab.timeline.following]);
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
# The first of each, right after the page is shown.
FIRST_STEP = "[{position: lab.state.now.position + 1}]"
FIRST_JUMP = f"{JUMPS}.slice(20, 21)"
TABS = "[...Object.keys(lab.views), ...Object.keys(lab.views)].map((tab) => ({tab}))"


def record(path: Path) -> None:
    """A launch of at least ten million steps of threads."""
    entry = kernels.entry("mma_gemm")
    (launch,) = entry.launches("mma.sync", entry.arrays(Host(7), type="bf16", m=512, n=512, k=704))
    launch.run(device="cpu", detectors=False, record=ptxlab.Record(path))


def measure(page: Page, name: str, changes: str) -> dict[str, float]:
    """The median and the longest of changes of the state, and the CPU time of the page's thread for one."""
    before = cpu_time(page)
    found = page.evaluate(f"{MEASURE}({changes})")
    one = {
        "median": round(statistics.median(found), 1),
        "longest": round(max(found), 1),
        "which": found.index(max(found)),
        "cpu": round(1000 * (cpu_time(page) - before) / len(found), 1),
        "count": len(found),
    }
    print(f"  {name:<24} median {one['median']:6.1f} ms   longest {one['longest']:6.1f} ms (of change {one['which']})"
          f"   CPU {one['cpu']:6.1f} ms")  # fmt: skip
    return one


def cpu_time(page: Page) -> float:
    """Seconds of a core that the thread of the page has used."""
    metrics = {one["name"]: one["value"] for one in page.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])

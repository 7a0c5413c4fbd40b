"""How fast the page of `ptxlab lab` is on a recorded launch of ten million steps, in Chromium.

`python benchmarks/lab.py [run.ptxtrace] [--json evidence/lab.json]` records a product by `mma.sync` if no recording is
given, opens it as the command does, and measures how long it takes until the page shows its source, the registers and
the timeline; then, without a pause, the first step and the first jump to another block; then many of them in each view,
from an input to the next frame after the source, the view and the timeline have changed. Run it with nothing else on
the machine. `docs/build.py --measured` makes the table of `docs/lab.md` from the file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.lab.browser import Browser, chromium
from tests.lab.timing import FIRST, FIRST_JUMP, FIRST_STEP, JUMPS, SHOWN, STEPS, TABS, measure, record

import ptxlab
from ptxlab.lab import Server, Views


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
            with browser.open(server.url, until=FIRST) as page:
                first = time.perf_counter()
                page.wait(SHOWN)
                ready = time.perf_counter()
                page.send("Performance.enable", timeDomain="threadTicks")
                found["first"] = {
                    "step": measure(page, "the first step", FIRST_STEP),
                    "jump": measure(page, "the first jump", FIRST_JUMP),
                }
                found["steps"] = {"threads": trace.steps, "warps": server.views.steps.count}
                times = {
                    "all": ready - start, "file": opened - start, "order": prepared - opened,
                    "source": first - prepared, "rest": ready - first, "cpu": time.process_time() - used,
                }  # fmt: skip
                found["load"] = {name: round(seconds, 2) for name, seconds in times.items()}
                print(found["steps"], found["load"])
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

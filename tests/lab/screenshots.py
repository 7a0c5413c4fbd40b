"""Make the pictures of `docs/lab.md` and of the README: `python -m tests.lab.screenshots`, when the page looks new."""

import base64
import io
import json
import tempfile
import time
from importlib import import_module, util
from pathlib import Path

import numpy as np

import ptxlab
from ptxlab import kernels
from ptxlab.cli.samples import SAMPLES
from ptxlab.kernels import collectives
from ptxlab.lab import NodeViews, Server, Views
from ptxlab.measure import Host
from tests.lab.browser import Browser, Page
from tests.lab.kernels import ROOT, launched

FOLDER = ROOT / "docs" / "lab"
SIZE = 1200, 660
REST = 1.5  # seconds until all is shown
HIDE = "document.querySelector('#timeline').style.display = 'none'"


def recorded(name: str, variant: str) -> Views:
    entry = kernels.entry(name)
    *_, launch = entry.launches(variant, entry.arrays(Host(0), **entry.small[0]))
    trace = launch.run(device="cpu", record=ptxlab.Record()).trace
    assert trace is not None
    return Views(trace)


def race() -> Views:
    """The README's kernel that lacks a barrier."""
    kernel = ptxlab.parse(SAMPLES["reverse.ptx"], "reverse.ptx")["reverse"]
    data = np.arange(64, dtype=np.uint32)
    trace = kernel.launch(1, 64, [data], on_error="collect", record=ptxlab.Record(), device="cpu").trace
    assert trace is not None
    return Views(trace)


def ranks() -> NodeViews:
    """A two-shot all-reduce of four ranks."""
    node = ptxlab.node(4)
    x = [device.array(np.ones(64, np.float32), name="x") for device in node]
    collectives.all_reduce(collectives.Group(node), x, [device.zeros(64, name="total") for device in node], "two_shot")
    traces = node.synchronize(record=ptxlab.Record()).traces
    assert traces is not None
    return NodeViews(traces)


def save(page: Page, name: str) -> None:
    data = base64.b64decode(page.send("Page.captureScreenshot", format="png")["data"])
    if util.find_spec("PIL"):  # 256 colors are enough, and half of the bytes
        image, made = import_module("PIL.Image").open(io.BytesIO(data)).convert("RGB").quantize(256), io.BytesIO()
        image.save(made, "PNG", optimize=True)
        data = made.getvalue()
    (FOLDER / f"{name}.png").write_bytes(data)
    assert page.problems == []


def shoot(browser: Browser, views: Views | NodeViews, shots: list[tuple[str, dict[str, object], str]]) -> None:
    """Pictures of one launch: the name, the state, and what else is to be done in the page."""
    with Server(views, 0) as server:
        server.start()
        with browser.open(server.url, *SIZE) as page:
            for name, looked, script in shots:
                page.evaluate(f"lab.state.set({json.dumps(looked)})")
                time.sleep(REST)
                if script:
                    page.evaluate(script)
                    time.sleep(REST)
                save(page, name)
        server.shutdown()


def main() -> None:
    dark = "document.querySelector('#theme').click()"
    swizzle = launched("swizzle")[0]
    load = swizzle.get("line/62")["steps"][0]
    at = {"position": load, "warp": 0, "lane": 4}
    gemm = recorded("wgmma_gemm", "wgmma")
    tensor = recorded("tcgen05_gemm", "ring")
    loads = [one["step"] for one in tensor.get("tensor/0") if one["kind"] == "loads"]
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder)) as browser:
        shoot(browser, ranks(), [("ranks", {"tab": "ranks"}, "lab.node.go(1, lab.node.timeOf(1000))")])
        shoot(browser, swizzle, [
            ("1-array", {"position": swizzle.steps.count, "tab": "arrays"}, ""),
            ("2-tiles", {**at, "tab": "tiles"}, ""),
            ("3-banks", {**at, "tab": "shared"}, ""),
            ("4-origin", {**at, "tab": "registers"},
             "lab.views.registers.origin('%swizzle', 4)"),
        ])  # fmt: skip
        shoot(browser, gemm, [
            ("copies", {"position": 1360, "tab": "copies"}, HIDE),
            ("ring", {"position": 700, "tab": "barriers"}, f"{HIDE.replace('none', '')}; {dark}"),
        ])  # fmt: skip
        shoot(browser, tensor, [
            ("tensor", {"position": loads[len(loads) // 2], "tab": "tensor"}, HIDE),
        ])  # fmt: skip
        shoot(browser, race(), [("race", {"position": 10, "tab": "findings"}, "")])
        shoot(browser, launched("python")[0], [("finding", {"position": 10, "tab": "findings"},
                                                "document.querySelector('#ptx').click()")])  # fmt: skip


if __name__ == "__main__":
    main()

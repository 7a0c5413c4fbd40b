"""The page in a real Chromium: loaded, stepped, scrubbed, clicked; on a race, a hang, a ring, an MMA and `tcgen05`.

All views are shown of all launches. What takes how long on ten million steps, `benchmarks/lab.py` measures.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ptxlab.lab import Server, write_page
from tests.lab.browser import Browser, Page, chromium
from tests.lab.kernels import ROOT, launched

pytestmark = pytest.mark.bulk  # a browser takes its time
MODULES = ROOT / "src/ptxlab/lab/page"
POSITION = "lab.state.now.position"
FIRST = "Object.keys(lab.views)[0]"


class Pages:
    """The pages of launches; each is loaded once."""

    def __init__(self, browser: Browser, stack: ExitStack) -> None:
        self.browser = browser
        self.stack = stack
        self.known: dict[tuple[str, int], Page] = {}

    @contextmanager
    def shown(self, name: str, width: int = 1280, height: int = 800) -> Iterator[Page]:
        """The page of a launch at its start; nothing may be wrong in its console."""
        if (name, width) not in self.known:
            server = self.stack.enter_context(Server(launched(name)[0], 0))
            server.start()
            self.stack.callback(server.shutdown)
            self.known[name, width] = self.stack.enter_context(self.browser.open(server.url, width, height))
        page = self.known[name, width]
        page.evaluate(f"lab.state.set({{position: 0, warp: 0, lane: 0, tab: {FIRST}}})")
        yield page
        assert page.problems == []


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    if chromium() is None:
        pytest.skip("there is no Chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as browser, ExitStack() as stack:
        yield Pages(browser, stack)


def test_it_steps_and_scrubs(pages: Pages) -> None:
    with pages.shown("exchange") as page:
        assert page.text("#head h1") == "k"
        page.press("ArrowRight")
        page.wait(f"{POSITION} === 1")
        assert page.text(".line.current .number") == "8"
        page.press("ArrowLeft")
        page.wait(f"{POSITION} === 0")
        page.press("End")
        page.wait(f"{POSITION} === lab.run.count")
        page.evaluate(
            "(s => { s.value = 20; s.dispatchEvent(new Event('input')); })(document.getElementById('position'))"
        )
        page.wait("document.getElementById('where').innerText.startsWith('20 of')")
        page.press("Home")
        page.click("#play")
        page.wait(f"{POSITION} > 3")
        page.click("#play")


def test_registers_of_a_lane_and_of_all(pages: Pages) -> None:
    with pages.shown("exchange") as page:
        page.click("#tab-registers")
        page.evaluate("lab.state.set({position: 3, lane: 5})")
        page.wait("document.querySelector('[data-register=\"%r1\"] .value')?.innerText === '5'")
        page.click('[data-register="%r1"] .name')
        page.wait("document.querySelectorAll('#lanes .cell').length === 32")
        assert page.text('#lanes .cell[data-lane="31"] span') == "31"


def test_a_click_on_a_value_draws_its_origin(pages: Pages) -> None:
    with pages.shown("exchange") as page:
        page.evaluate("lab.state.set({position: lab.run.count, tab: 'arrays'})")
        page.click('[data-element="5"]')
        assert page.text(".origin-head strong") == "c[5]"
        page.wait("document.querySelectorAll('.path-line').length > 4")
        assert "%r3 of thread 5" in page.text(".path")
        page.click('.path-node[data-node="1"]')
        page.wait(f"{POSITION} === lab.views.origin.found.nodes[1].step")
        page.wait("document.querySelectorAll('.line.marked').length > 3")


def test_a_click_on_a_line_goes_there(pages: Pages) -> None:
    with pages.shown("exchange") as page:
        page.click('.line[data-line="20"] .words')
        page.wait("document.querySelector('.line.current')?.dataset.line === '20'")
        first = page.evaluate(POSITION)
        page.click('.line[data-line="20"] .words')
        assert page.wait(f"{POSITION} > {first}")


def test_light_and_dark(pages: Pages) -> None:
    with pages.shown("exchange") as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        light = page.evaluate(paper)
        page.click("#theme")
        assert page.evaluate(paper) != light
        page.click("#theme")
        assert page.evaluate(paper) == light


def test_a_race_shows_both_accesses(pages: Pages) -> None:
    with pages.shown("race") as page:
        assert "nothing orders line 12 before line 16" in page.text(".finding.open")
        page.wait("[...document.querySelectorAll('.line.marked')].map(e => e.dataset.line).join() === '12,16'")
        page.click(".access button.link")
        access = launched("race")[0].get("run")["findings"][0]["accesses"][0]
        page.wait(f"{POSITION} === {access['step']} && lab.state.now.warp === {access['warp']}")
        page.wait("document.querySelector('.line.current').dataset.line === '16'")


def test_a_hang_shows_the_barrier(pages: Pages) -> None:
    with pages.shown("hang") as page:
        assert "32 of 33 arrivals" in page.text(".finding.open")
        page.click('.access [data-last="53"]')
        page.wait("document.querySelector('.line.current')?.dataset.line === '53'")
        page.press("End")
        page.click("#tab-barriers")
        page.wait("document.querySelector('.ring')?.innerText.includes('32 of 33 arrived')")
        ring = page.text(".ring")
        assert "warp 1\n for parity 0, line 53" in ring.replace("\n\n", "\n") or "for parity 0, line 53" in ring
        assert "for parity 0, line 33" in ring


def test_a_ring_is_a_table_of_stages(pages: Pages) -> None:
    with pages.shown("ring") as page:
        page.click("#tab-barriers")
        page.wait("document.querySelectorAll('.ring tbody tr').length === 2")
        page.press("End")
        page.wait("document.querySelector('.ring')?.innerText.includes('phase 3')")
        page.click("#timeline canvas")
        assert page.wait(f"{POSITION} < lab.run.count")


def test_a_wrong_swizzle_is_seen(pages: Pages) -> None:
    with pages.shown("swizzle") as page:
        page.click("#tab-tiles")
        page.click(".links .link")
        assert page.text("#verdict-D").startswith("16 of 32 chunks do not come from where their neighbours do")
        assert page.evaluate("document.querySelectorAll('.chunk')[4].innerText").startswith("a[4, 32:40]")
        page.click("#tab-shared")
        assert "2-way bank conflict" in page.text("#conflict")
        page.click("#tab-fragments")
        cells = "[...document.querySelectorAll('.sheet:not(.unseen) .matrix')].map((one) => Number(one.dataset.cells))"
        page.wait(f"{cells}.join() === '64,64,64,64'")
        page.evaluate("document.querySelector('.sheet:not(.unseen) .matrix').focus()")
        before = page.evaluate(POSITION)
        page.press("ArrowRight")
        page.press("ArrowRight")
        assert page.text(".sheet:not(.unseen) h3 .note").startswith("[0, 1] = ")
        assert page.evaluate(POSITION) == before
        page.press("Enter")
        page.wait("lab.state.now.tab === 'origin'")


def test_the_right_swizzle_is_in_order(pages: Pages) -> None:
    with pages.shown("right swizzle") as page:
        page.click("#tab-tiles")
        page.click(".links .link")
        assert page.text("#verdict-D") == "All chunks are in the order of a."
        page.click("#tab-shared")
        assert "no bank conflict" in page.text("#conflict")


def test_a_box_lands(pages: Pages) -> None:
    with pages.shown("box") as page:
        page.click("#tab-copies")
        assert page.text("#copy-title") == "source[24:56, 16:48]"
        page.wait("document.querySelector('.copy-row .state')?.innerText === 'not issued'")
        page.press("End")
        page.wait("document.querySelector('.copy-row .state')?.innerText === 'landed'")
        assert "224 of 256 chunks are outside of the tensor" in page.text(".copy .outside")
        assert "4,096 bytes have landed and count on full, phase 0" in page.text(".moments")
        first = "[...document.querySelectorAll('.copy-parts section:last-child .box-row')][2]"  # the second of the box
        assert page.evaluate(f"[...{first}.querySelectorAll('i')].map((one) => one.innerText).slice(0, 4)") == [
            "1.1", "1.0", "1.3", "1.2"
        ]  # fmt: skip
        page.evaluate("document.querySelector('.moments .link').click()")
        assert page.wait("document.querySelector('.line.current')?.innerText.includes('cp.async.bulk.tensor')")


def test_words_of_tensor_memory(pages: Pages) -> None:
    with pages.shown("tensor words") as page:
        page.press("End")
        page.click("#tab-tensor")
        cell = 'document.querySelector(\'.word-row[data-lane="5"] [data-column="3"]\')'
        page.evaluate("lab.views.tensor.as = 'u32'; lab.views.tensor.arrange()")
        page.wait(f"{cell}?.innerText === '5'")
        page.click('.word-row[data-lane="5"] [data-column="3"]')
        assert page.text(".origin-head strong") == "tensor memory of block 0, lane 5, column 3"


def test_a_kernel_in_python_beside_its_ptx(pages: Pages) -> None:
    with pages.shown("python") as page:
        page.wait("document.querySelectorAll('.line.marked').length === 2")
        marked = page.evaluate(
            "[...document.querySelectorAll('.line.marked .words')].map((one) => one.innerText.trim())"
        )
        assert marked == ["slots[ptx.tid.x] = ptx.tid.x", "out[ptx.tid.x] = slots[ptx.tid.x ^ 32]"]
        assert page.evaluate("document.querySelector('.line .flag.error').innerText") == "data-race"
        assert "kernels.py:" in page.text(".finding.open .code.source")
        page.click("#ptx")
        page.wait("document.querySelectorAll('.listings .rows').length === 2")
        page.wait("document.querySelectorAll('.listings .rows:last-child .line.marked').length === 2")
        page.click(".access button.link")
        page.wait("document.querySelectorAll('.listings .line.current').length === 2")
        page.click("#ptx")


def test_tensor_memory(pages: Pages) -> None:
    with pages.shown("tcgen05") as page:
        page.click("#tab-tensor")
        page.press("End")
        page.wait("document.querySelectorAll('.tensor-map .product').length === 1")
        page.click("#tab-tiles")
        page.click(".links .link")
        assert page.wait("document.querySelectorAll('.tile').length === 2")


EVERYWHERE = """(async () => {
  const empty = [];
  for (const position of [0, lab.run.count >> 1, lab.run.count]) {
    for (const tab of Object.keys(lab.views)) {
      lab.state.set({ position, tab });
      await Promise.resolve();
      await lab.views[tab].update(lab.state.now);
      if (!document.querySelector(".tab-body").innerText.trim()) empty.push(`${tab} at ${position}`);
    }
  }
  return empty;
})()"""


@pytest.mark.parametrize(("name", "shown"), [
    ("race", "findings"), ("hang", "findings"), ("ring", "barriers"), ("swizzle", "fragments tiles"),
    ("tcgen05", "tensor tiles"), ("box", "copies"), ("python", "findings"), ("tensor words", "tensor fragments"),
])  # fmt: skip
def test_every_view_shows_every_launch(pages: Pages, name: str, shown: str) -> None:
    """At the start, in the middle and at the end; each launch has the views that it is there for."""
    with pages.shown(name) as page:
        views = page.evaluate("Object.keys(lab.views)")
        assert {*shown.split(), "registers", "warps", "arrays", "barriers", "origin"} <= {*views}
        assert page.evaluate(f"window.everywhere = {EVERYWHERE}") == []  # Chromium collects a promise that nothing has


def test_a_phone_shows_one_pane_at_a_time(pages: Pages) -> None:
    with pages.shown("ring", 390, 844) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.click('#panes [data-pane="inspector"]')
        assert "no register is written yet" in page.text(".tab-body")
        page.press("ArrowRight")
        page.wait("document.querySelector('.register') !== null")
        assert page.evaluate("document.getElementById('code').offsetWidth") == 0
        page.click('#panes [data-pane="time"]')
        page.wait("document.getElementById('timeline').offsetHeight > 100")
        page.wait("lab.timeline.tracks.length > 0")  # which depend on how wide the pane is


@pytest.mark.skipif(shutil.which("tsc") is None, reason="there is no TypeScript compiler on this machine")
def test_the_types_of_the_modules(tmp_path: Path) -> None:
    options = {
        "allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "target": "es2023", "module": "es2022",
        "moduleResolution": "bundler", "lib": ["es2023", "dom", "dom.iterable"], "types": [],
        "paths": {"lab/*": [f"{MODULES}/*"]},
    }  # fmt: skip
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": [f"{MODULES}/*.js"]}))
    result = subprocess.run(["tsc", "-p", str(tmp_path)], capture_output=True, text=True, timeout=120, check=False)
    assert result.stdout == ""


def test_a_file_needs_no_server(pages: Pages, tmp_path: Path) -> None:
    path = tmp_path / "race.html"
    path.write_text(write_page(launched("race")[0]), encoding="utf-8")
    with pages.browser.open(path.as_uri()) as page:
        page.click(".access button.link")
        page.wait(f"{POSITION} > 0")
        page.click("#tab-registers")
        page.wait("document.querySelector('[data-register=\"%r1\"]') !== null")
        page.evaluate("lab.state.set({position: lab.run.count, tab: 'arrays'})")
        page.click('[data-element="5"]')
        assert page.text(".origin-head strong") == "c[5]"
        assert page.problems == []

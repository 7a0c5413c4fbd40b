"""The page in a notebook: Python answers what the page in the frame asks for."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ptxlab.lab.page import page as whole_page
from tests.lab.browser import PATIENCE, Browser, chromium
from tests.lab.kernels import launched

FRAME = "document.querySelector('iframe')"
KEPT = 0.4  # seconds, after which the page has written its place into its address, where it has one
WIDGET = Path(__file__).parents[2] / "src" / "ptxlab" / "lab" / "widget.js"
# A notebook as the widget knows one: a model with values, which sends messages to Python and gets answers.
NOTEBOOK = """<!doctype html><html data-ready="yes"><body><script type="module">
const listeners = [];
const asked = [];
const values = { page: PAGE, height: 700 };
const model = { get: (name) => values[name], send: (message) => asked.push(message.name),
  on: (kind, listener) => listeners.push(listener), off: () => {} };
Object.assign(window, { asked, answer: (message) => listeners.forEach((one) => one(message)) });
const widget = (await import("data:text/javascript;base64," + btoa(WIDGET))).default;
widget.render({ model, el: document.body });
</script></body></html>"""


def test_python_answers_by_name() -> None:
    pytest.importorskip("anywidget")
    from ptxlab.lab.widget import Lab

    views, _ = launched("exchange")[:2]
    widget = Lab(views.trace)
    sent: list[dict[str, Any]] = []
    widget.send = sent.append
    widget._answer(widget, {"name": "run"}, [])
    widget._answer(widget, {"name": "nothing/3"}, [])
    assert sent[0] == {"name": "run", "found": views.get("run")}
    assert (sent[1]["name"], sent[1]["problem"][:11]) == ("nothing/3", "there is no")
    assert 'data-asks="parent"' in widget.page


@pytest.mark.bulk
@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on this machine")
def test_the_page_asks_the_notebook_around_it(tmp_path: Path) -> None:
    views = launched("exchange")[0]
    inside = json.dumps(whole_page(asks_parent=True)).replace("</", "<\\/")
    text = NOTEBOOK.replace("PAGE", inside, 1).replace("WIDGET", json.dumps(WIDGET.read_text("ascii")), 1)
    (tmp_path / "notebook.html").write_text(text, "utf-8")
    ready = f"{FRAME}?.contentDocument?.documentElement?.dataset.ready === 'yes'"
    with Browser(tmp_path / "profile") as browser, browser.open(f"file://{tmp_path}/notebook.html") as page:
        page.wait("window.asked !== undefined")
        until = time.monotonic() + PATIENCE
        while not page.evaluate(ready) and time.monotonic() < until:
            for name in page.evaluate("asked.splice(0)"):
                page.evaluate(f"answer({json.dumps({'name': name, 'found': views.get(name)})})")
        page.evaluate(f"{FRAME}.contentWindow.lab.state.set({{position: 1}})")
        time.sleep(KEPT)
        assert page.evaluate(f"{FRAME}.contentDocument.querySelector('#head h1').innerText") == "k"
        assert page.problems == []

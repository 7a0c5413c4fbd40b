"""Several ranks in the lab: the answers, and the page in a real Chromium."""

import re
from pathlib import Path

import pytest

import ptxlab
from ptxlab.lab import NodeViews, Server, write_page
from ptxlab.trace import Traces
from tests.lab.browser import Browser, chromium
from tests.node.messages import RELEASE, message_passing


def recorded(write: str = RELEASE, seed: int = 0) -> NodeViews:
    """A message from rank 0, which is launched last, to rank 1."""
    node, kernel, arrays = message_passing(write)
    for rank in (1, 0):
        node[rank].launch(kernel, 1, 1, [*arrays, rank])
    traces = node.synchronize(seed=seed, record=ptxlab.Record(), on_error="collect").traces
    assert traces is not None
    return NodeViews(traces)


def test_an_arrow_leads_from_the_write_to_the_read_that_saw_it() -> None:
    views = recorded()
    node = views.get("node")
    assert [one["title"] for one in node["launches"]] == ["rank 1", "rank 0"]
    (flag,) = node["flags"]
    (written, value, writer, _, line), ((reader, _, start, end, waits_at, polls, is_over),) = (
        *flag["writes"],
        flag["waits"],
    )
    assert (flag["name"], value, writer, line, reader, waits_at, is_over) == (
        "flag of rank 1[0]",
        1,
        1,
        18,
        0,
        21,
        True,
    )
    assert polls > 1
    assert start < written < end
    assert node["arrows"] == [[writer, 0, written, reader, 0, end, 0]]
    tracks = {one["name"]: one["periods"] for one in views.get("ranks/20/0")}
    assert list(tracks) == ["rank 1", "rank 0", "flag of rank 1[0]"]
    # The axis is short where warps only poll.
    assert node["axis"][1][-1] < 60 < node["end"] == node["axis"][0][-1]
    assert views.get("0/run")["kernel"] == "pass"
    for name in ("0/no", "2/run", "ranks/1", "no"):
        with pytest.raises(KeyError):
            views.get(name)


def test_a_finding_is_of_both_launches_and_each_knows_its_own_access() -> None:
    views = recorded("st.release.gpu.global.u32 [%flag], 1;", seed=1)
    known = [
        ["step" in access for access in views.get(f"{launch}/run")["findings"][0]["accesses"]] for launch in (0, 1)
    ]
    assert sorted(known) == [[False, True], [True, False]]


@pytest.mark.bulk
def test_the_page_shows_ranks_side_by_side(tmp_path: Path) -> None:
    if chromium() is None:
        pytest.skip("there is no Chromium on this machine")
    views, file = recorded(), tmp_path / "page.html"
    file.write_text(write_page(views), encoding="utf-8")
    with Browser(tmp_path / "profile") as browser, Server(views, 0) as server:
        server.start()
        for url, width in ((server.url, 1280), (file.as_uri(), 1280), (server.url, 390)):
            with browser.open(url, width) as page:
                page.evaluate("document.querySelectorAll('#panes button')[1].click()")
                page.wait("document.querySelectorAll('.rank').length === 2")
                page.evaluate("lab.node.go(1, lab.node.arrows[0][2] + 1)")
                page.wait("document.getElementById('launch').value === '1'")
                page.wait("document.querySelector('.barrier .phase')?.innerText === '= 1'")
                assert re.search(r"waits: rank 1 w0 line 21", page.text(".barrier"))
                page.evaluate("lab.node.go(0, lab.node.end)")
                page.wait("document.getElementById('launch').value === '0'")
                assert page.evaluate("lab.node.timeAt(0, lab.run.count)") == views.traces.end
                assert page.problems == []
        server.shutdown()


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ptxlab.TraceError, match="a directory without a recorded launch"):
        Traces.open(tmp_path)

"""The terminal, the debug adapter and the lab in a real browser stop at the same places, with the same values."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ptxlab.cli.debug import Session
from ptxlab.debug.terminal import Terminal
from ptxlab.lab import Server, Views
from ptxlab.toolchain.tools import can_find
from tests.lab.browser import Browser, Page, chromium

from .client import client_in_thread
from .test_cuda import ARGUMENTS, KERNEL, SUM

pytestmark = [pytest.mark.bulk, pytest.mark.skipif(not can_find("nvrtc"), reason="no NVRTC")]

REDUCE = """\
__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float part[64];
  int i = threadIdx.x;
  float sum = 0;
  for (int k = i; k < n; k += 64)
    sum += in[k];
  part[i] = sum;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (i < half)
      part[i] += part[i + half];
    __syncthreads();
  }
  if (i == 0)
    out[0] = part[0];
}
"""
COLLATZ = """\
struct Counted { unsigned value; int steps; };
__device__ __noinline__ unsigned following(unsigned v) {
  unsigned next = v % 2 ? 3 * v + 1 : v / 2;
  return next;
}
__global__ void collatz(Counted* all) {
  Counted mine = all[threadIdx.x];
  mine.value = threadIdx.x % 5 + 1;
  while (mine.value != 1) {
    mine.value = following(mine.value);
    ++mine.steps;
  }
  all[threadIdx.x] = mine;
}
"""


@dataclass(frozen=True)
class Case:
    """A kernel, the breakpoint in it, and the expressions that are asked there."""

    name: str
    text: str
    block: int
    arguments: list[str]
    line: int
    condition: str
    asked: tuple[str, ...]


CASES = [
    Case("scale", KERNEL, 8, ARGUMENTS, SUM, "", ("k", "sum", "factor", "row[k]")),
    Case("reduce", REDUCE, 64, ["f32[200]=arange", "f32[1]=zeros", "s32=200"], 11, "", ("half", "part[i]", "n", "i")),
    Case(
        "collatz",
        COLLATZ,
        32,
        ["s32[64]=zeros"],
        11,
        "mine.value > 4",
        ("mine.value", "mine.steps", "all[threadIdx.x].steps"),
    ),
]
Stops = list[tuple[int, int, tuple[str, ...]]]
"""Line, thread and values of each stop."""
MOST = 300


def terminal(request: dict[str, Any], case: Case) -> tuple[Stops, list[int]]:
    debugger = Session().with_request(request).open().debugger
    asked = Terminal(debugger, lambda _: None)

    def said(command: str) -> str:
        return "\n".join(asked.answer(command))

    said(f"break {case.line}" + f" if {case.condition}" * bool(case.condition))
    stops: Stops = []
    while debugger.run().reason == "breakpoint" and len(stops) < MOST:
        values = tuple(said(f"print {one}").rpartition(" = ")[2] for one in case.asked)
        stops.append((debugger.stack()[0].place.line, debugger.thread, values))
    debugger.go_to(0)
    debugger.stops.clear()
    said(f"break {case.line}" + f" if {case.condition}" * bool(case.condition))
    debugger.run()
    lines = []
    for _ in range(5):
        said("step")
        lines.append(debugger.stack()[0].place.line)
    return stops, lines


def adapter(request: dict[str, Any], case: Case) -> tuple[Stops, list[int]]:
    with client_in_thread() as client:
        client.body("initialize", adapterID="ptxlab")
        client.body("launch", **request)
        client.event("initialized")
        given = {"line": case.line} | ({"condition": case.condition} if case.condition else {})
        client.body("setBreakpoints", source={"path": request["program"]}, breakpoints=[given])
        client.body("configurationDone")
        client.event("stopped")
        stops: Stops = []
        first = 0
        while len(stops) < MOST:
            client.body("continue", threadId=1)
            stopped = client.event("stopped")
            if stopped["reason"] != "breakpoint":
                break
            first = first or stopped["threadId"]
            frame = client.body("stackTrace", threadId=stopped["threadId"])["stackFrames"][0]
            values = tuple(client.body("evaluate", expression=one, frameId=frame["id"])["result"] for one in case.asked)
            assert client.adapter is not None
            stops.append((frame["line"], client.adapter.debugger.thread, values))
        client.adapter.debugger.go_to(0)  # type: ignore[union-attr]
        client.body("continue", threadId=1)
        lines = []
        for _ in range(5):
            thread = client.event("stopped")["threadId"]
            client.body("stepIn", threadId=thread)
            lines.append(client.body("stackTrace", threadId=thread)["stackFrames"][0]["line"])
        client.event("stopped")
    return stops, lines


def lab(case: Case, page: Page, views: Views) -> tuple[Stops, list[int]]:
    def go() -> None:
        until = f"{case.line}" + f" if {case.condition}" * bool(case.condition)
        page.evaluate(f"document.querySelector('#until').value = '{until}'")
        page.evaluate("document.querySelector('#until').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")

    def current() -> int:
        frames = page.evaluate(f"lab.run.source.get(`variables/${{{_PLACE}}}`)")["frames"]
        return int(frames[0]["line"])

    threads = views.trace.accesses.threads_in_block
    page.evaluate("lab.state.set({position: 0, warp: 0, lane: 0, tab: 'variables'})")
    page.wait("document.querySelector('#until') !== null")
    stops: Stops = []
    while len(stops) < MOST:
        before = page.evaluate("lab.state.now.position")
        go()
        ended = "[...document.querySelectorAll('.note')].some((one) => /not after/.test(one.innerText))"
        page.wait(f"lab.state.now.position !== {before} || {ended}")
        if page.evaluate("lab.state.now.position") == before:
            break
        now = page.evaluate("lab.state.now")
        values = []
        for one in case.asked:
            name = "x" + one.encode().hex()
            found = page.evaluate(f"lab.run.source.get(`value/${{{_PLACE}}}/{name}`)")
            values.append(found.get("value", found.get("problem", "")))
        stops.append((current(), now["warp"] % (-(-threads // 32)) * 32 + now["lane"], tuple(values)))
    page.evaluate("lab.state.set({position: 0, warp: 0, lane: 0})")
    go()
    page.wait("lab.state.now.position > 0")
    lines = []
    for _ in range(5):
        before = page.evaluate("lab.state.now.position")
        page.press("i")
        page.wait(f"lab.state.now.position !== {before}")
        lines.append(current())
    return stops, lines


_PLACE = "lab.state.now.warp}/${lab.state.now.lane}/${lab.state.now.position"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("there is no Chromium on this machine")
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def sorted_by_thread(stops: Stops) -> list[Any]:
    """The stops of each thread in their order; the lab runs lanes of a warp together."""
    return sorted(stops, key=lambda one: one[1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_stops_and_values(case: Case, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / f"{case.name}.cu"
    path.write_text(case.text)
    request = {"program": str(path), "block": [case.block], "args": case.arguments, "deviceDebug": True}
    typed, typed_lines = terminal(request, case)
    edited, edited_lines = adapter(request, case)
    with ExitStack() as stack:
        opened = Session().with_request(request).open()
        views = Views(opened.debugger.trace, declarations=opened.debugger.declarations)
        server = stack.enter_context(Server(views, 0))
        server.start()
        stack.callback(server.shutdown)
        page = stack.enter_context(browser.open(server.url))
        seen, seen_lines = lab(case, page, views)
        assert page.problems == []
    assert len(typed) > 1
    assert {line for line, _, _ in typed} == {case.line}
    assert typed == edited
    assert sorted_by_thread(seen) == sorted_by_thread(typed)
    assert typed_lines == edited_lines == seen_lines

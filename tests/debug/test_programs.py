"""Whole programs under the debugger: `main()` runs, and its launches are gone through one after the other."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlab.cli.debug import Session
from ptxlab.debug import Debugger, UnknownError
from ptxlab.debug.terminal import Terminal
from ptxlab.toolchain.tools import can_find

from .client import Client, client_in_thread

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or not can_find("nvcc") or shutil.which("g++") is None, reason="no nvcc or g++"
    ),
    pytest.mark.slow,
]

PROGRAM = """\
#include <cstdio>
struct Pair { int a; float b; };

__device__ __forceinline__ float scaled(float x, float f) {
  float y = x * f;
  return y + 1.0f;
}

template <int N>
__global__ void fill(float* out, Pair p) {
  __shared__ float tile[N];
  int i = threadIdx.x;
  tile[i] = p.b + i;
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    sum += scaled(tile[(i + k) % N], p.a);
  }
  if (i % 2 == 0)
    sum = -sum;
  else
    sum = sum * 2;
  out[i] = sum;
}

__global__ void add(float* x, const float* y, int n) {
  int i = threadIdx.x;
  if (i < n)
    x[i] += y[i];
}

int main(int argc, char** argv) {
  float *x, *y;
  cudaMalloc(&x, 32 * 4);
  cudaMalloc(&y, 32 * 4);
  fill<32><<<1, 32>>>(x, Pair{argc, 0.5f});
  fill<32><<<1, 32>>>(y, Pair{3, 1.5f});
  add<<<1, 32>>>(x, y, 20);
  cudaDeviceSynchronize();
  cudaFree(x);
  cudaFree(y);
}
"""
LOOP, SUM, INLINED, ADDED, LAUNCH = 16, 17, 5, 29, 36
REQUEST = {"nvcc": "-cudart shared", "deviceDebug": True, "programArgs": ["one"]}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("program") / "two.cu"
    found.write_text(PROGRAM)
    return found


@pytest.fixture(scope="module")
def opened(path: Path) -> Debugger:
    session = Session().with_request({"program": path, **REQUEST}).open()
    session.debugger.owner = session  # type: ignore[attr-defined] # keeps the recordings
    return session.debugger


@pytest.fixture
def debugger(opened: Debugger) -> Iterator[Debugger]:
    opened.enter(0)
    opened.stops.clear()
    return opened


def test_a_breakpoint_stops_in_all_launches(debugger: Debugger) -> None:
    debugger.break_at("two.cu", SUM, condition="k == 1 && i == 5")
    debugger.break_at("two.cu", ADDED, condition="i == 4")
    seen = []
    while debugger.run().reason == "breakpoint":
        names = ("p.a", "sum") if debugger.launch < 2 else ("n", "x[i]", "y[i]")
        seen.append((debugger.launch, *(debugger.scope.text(name) for name in names)))
    assert seen == [(0, "2", "12.0"), (1, "3", "20.5"), (2, "20", "-36.0", "-61.5")]
    assert [debugger.run(backwards=True).reason for _ in range(2)] == ["breakpoint"] * 2
    assert debugger.launch == 1


def test_commands_name_launches(debugger: Debugger) -> None:
    terminal = Terminal(debugger, lambda _: None)
    rows = [*terminal.answer("info cuda kernels")]
    assert [row.split("  ")[1:2] for row in rows] == [["fill<32>"], ["kernel 1"], ["kernel 2"]]
    assert rows[0].endswith(f"two.cu:{LAUNCH}")
    assert next(terminal.answer(f"break {ADDED}")).endswith(" is in other launches: `info cuda kernels` lists them")
    assert next(terminal.answer("cuda kernel 2 thread 3")).startswith("kernel 2, block (0,0,0), thread (3,0,0)")
    assert "there is no kernel 7" in next(terminal.answer("cuda kernel 7"))
    assert next(terminal.answer("info breakpoints")).endswith(f"two.cu:{ADDED}, once")
    assert "it is host code" in next(terminal.answer(f"break {LAUNCH}"))


def test_lines_are_stepped_both_ways(debugger: Debugger) -> None:
    """Through inlined functions and at the back edge of a loop, and back the same way."""
    debugger.break_at("two.cu", SUM, thread=5)
    debugger.run()
    debugger.stops.clear()
    over = _lines(debugger, "over", 6)
    assert over == [SUM, LOOP, SUM, LOOP, SUM, LOOP, 19]
    assert _lines(debugger, "over", 6, backwards=True) == over[::-1]
    into = _lines(debugger, "in", 6)
    assert into == [SUM, INLINED, INLINED + 1, SUM, LOOP, SUM, INLINED]
    assert _lines(debugger, "in", 6, backwards=True) == into[::-1]


def _lines(debugger: Debugger, kind: str, count: int, *, backwards: bool = False) -> list[int]:
    found = []
    for number in range(count + 1):
        place = debugger.here()
        assert place is not None
        found.append(place.line)
        if number < count:
            debugger.step(kind, backwards=backwards)  # type: ignore[arg-type]
    return found


def test_an_editor_goes_through_launches(path: Path) -> None:
    with client_in_thread() as client:
        assert isinstance(client, Client)
        client.body("initialize")
        client.body("launch", program=str(path), stopOnEntry=False, **REQUEST)
        client.event("initialized")
        lines = [{"line": ADDED, "condition": "i == 4"}, {"line": SUM, "condition": "i == 5 && k == 0"}]
        made = client.body("setBreakpoints", source={"path": str(path)}, breakpoints=lines)["breakpoints"]
        assert [(one["verified"], one["line"]) for one in made] == [(True, ADDED), (True, SUM)]
        client.body("configurationDone")
        values = []
        for expression in ("p.a", "p.a", "x[i]"):
            stopped = client.event("stopped")
            assert stopped["reason"] == "breakpoint"
            values.append(client.body("evaluate", expression=expression)["result"])
            client.body("continue", threadId=stopped["threadId"])
        assert values == ["2", "3", "-36.0"]


def test_a_program_without_a_launch_says_so(tmp_path: Path) -> None:
    path = tmp_path / "none.cu"
    path.write_text("int main() { return 3; }\n")
    with pytest.raises(UnknownError, match="made no launch, and ended with status 3"):
        Session().with_request({"program": path, "nvcc": "-cudart shared"}).open()

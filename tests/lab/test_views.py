"""What the page is given: warp steps, registers and memory at any of them, barriers, counts."""

import json
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab.lab import Views
from ptxlab.lab.embedded import names_of, origins_of
from ptxlab.lab.page import page
from tests.debug.kernels import CALL, DOUBLE, EXCHANGE, LOAD, RACE, STORE
from tests.golden import compare
from tests.lab.kernels import launched
from tests.lab.reading import memory_at, registers_at

MOST = 400_000  # bytes of the page without what it shows


@cache
def recorded(text: str, block: int = 64) -> tuple[Views, ptxlab.Result]:
    kernel = ptxlab.parse(text, name="k.ptx")["k"]
    arrays = [np.zeros(64, np.uint32)] * len(kernel.parameters)
    result = kernel.launch(1, block, arrays, device="cpu", on_error="collect", record=ptxlab.Record())
    assert result.trace is not None
    return Views(result.trace), result


@pytest.mark.parametrize("text", [EXCHANGE, CALL], ids=["exchange", "call"])
def test_each_step_of_a_thread_is_in_one_step_of_its_warp(text: str) -> None:
    views, result = recorded(text)
    steps, trace = views.steps, result.trace
    assert trace is not None
    found = [steps.position_of(number) for number in range(trace.steps)]
    for thread in range(64):
        own = [found[number] for number in trace.steps_of(thread).tolist()]
        assert own == sorted(set(own))
    for number in range(0, trace.steps, 11):
        step, position = trace.step(number), found[number]
        assert steps.instruction(position) == trace.instruction_at(number)
        assert steps.active(*steps.locate(position)) >> step.lane & 1 == step.executed


def test_lanes_execute_together() -> None:
    views, _ = recorded(EXCHANGE)
    assert views.steps.count * 32 == views.trace.steps
    steps = views.get("steps/0")
    assert set(steps["active"]) == {0xFFFFFFFF, 0}  # no lane takes the branch out of the loop
    assert views.get(f"line/{DOUBLE}")["count"] == 3 * 2
    assert views.get("run")["counts"][DOUBLE] == [6, 192]


@pytest.mark.parametrize("thread", [0, 37])
def test_registers_are_those_of_the_recording(thread: int) -> None:
    views, result = recorded(EXCHANGE)
    trace = result.trace
    assert trace is not None
    for number in trace.steps_of(thread).tolist():
        position = views.steps.position_of(number) + 1
        shown = registers_at(views, thread // 32, position, thread % 32)
        expected = trace.registers(thread, step=number)
        assert {name: int.from_bytes(data, "little") for name, data in shown.items()} == expected


def test_shared_memory_has_what_warps_stored() -> None:
    views, _ = recorded(EXCHANGE)
    first, second = views.get(f"line/{STORE}")["steps"]
    warp = views.get(f"line/{STORE}")["warps"][0]
    assert views.get(f"ticks/{warp}/{first}")["line"] == STORE
    assert first in views.get(f"ticks/{warp}/{first}")["steps"]
    assert views.get(f"line/{STORE}/0")["steps"] == [first, second]
    before, between, after = (
        memory_at(views, "shared", 0, 0, at).view(np.uint32) for at in (first, first + 1, second + 1)
    )
    assert before.any() == 0
    numbers = np.arange(64)
    assert between.tolist() == np.where(numbers < 32, numbers, 0).tolist()
    assert after.tolist() == numbers.tolist()
    assert memory_at(views, "global", 0, 0, views.steps.count).view(np.uint32).tolist() == ((numbers ^ 32) * 8).tolist()


def test_accesses_have_lanes_and_addresses() -> None:
    views, _ = recorded(EXCHANGE)
    (step, _) = views.get(f"line/{LOAD}")["steps"]
    (access,) = [one for one in views.get("accesses/0") if one["step"] == step]
    assert (access["kind"], access["size"], access["owners"]) == ("load", 4, [0])
    warp = views.get("steps/0")["warps"][step]
    assert access["addresses"] == [4 * ((32 * warp + lane) ^ 32) for lane in range(32)]


def test_a_barrier_says_who_waits() -> None:
    views, _ = recorded(EXCHANGE)
    (barrier,) = views.get("barriers/0/0")
    assert (barrier["name"], barrier["mbarrier"]) == ("barrier 0", False)
    assert barrier["events"][-1][1:2] == ["phase"]
    assert {warp for warp, *_ in barrier["waits"]} <= {0, 1}


def test_where_warps_are() -> None:
    views, _ = recorded(EXCHANGE)
    one, other = views.get("warps/0/0")
    assert (one["before"], other["before"], one["after"]) == (-1, -1, -1)


WIDE = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { .reg .b32 %r; mov.u32 %r, %tid.x; bar.sync 0; ret; }
"""


def test_instructions_that_share_a_line_have_their_own_texts() -> None:
    text = """.version 8.0
.target sm_90
.entry k() {
  .reg .pred %p;
  .reg .b32 %r<3>;
  mov.u32 %r1, 1; @!%p mov.u32 %r2, 2;
  add.u32 %r1,
    %r1, %r2;
  ret;
}
"""
    views, _ = recorded(text, 32)
    texts = [one.get("text") for one in views.get("run")["instructions"]]
    assert texts == ["mov.u32 %r1, 1", "@!%p mov.u32 %r2, 2", "add.u32 %r1, %r1, %r2", None]


def test_a_block_of_1024_threads_has_32_warps() -> None:
    views, _ = recorded(WIDE, 1024)
    assert views.get("run")["blocks"][0]["warps"] == list(range(32))
    assert [one["warp"] for one in views.get("warps/0/0")] == list(range(32))
    assert views.steps.count == 3 * 32


def test_nothing_is_recorded() -> None:
    kernel = ptxlab.parse(WIDE, name="k.ptx")["k"]
    trace = kernel.launch(1, 32, [], device="cpu", record=ptxlab.Record(warps=[5])).trace
    assert trace is not None
    assert str(trace) == "<trace of `k`: 0 steps of 0 threads; the kernel ended>"
    views = Views(trace)
    assert (views.get("run")["steps"], views.get("run")["blocks"], views.get("steps/0")["warps"]) == (0, [], [])


def test_what_fails_is_not_executed() -> None:
    text = WIDE.replace("bar.sync 0;", "ld.shared.u32 %r, [%r+4096];")
    views, result = recorded(text, 32)
    assert [one.code for one in result.diagnostics] == ["out-of-bounds"]
    assert views.steps.count == 1


def test_what_is_not_there_is_a_key_error() -> None:
    views, _ = recorded(EXCHANGE)
    for name in ("nothing", "steps", "steps/x", "memory/shared/0", "memory/nowhere/0/0/0"):
        with pytest.raises(KeyError):
            views.get(name)


def test_the_page_is_small_and_asks_nothing_of_a_network() -> None:
    text = page()
    assert len(text.encode()) < MOST
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_the_page_starts_at_the_first_finding() -> None:
    views, _ = recorded(RACE)
    info = views.get("run")
    access = info["findings"][0]["accesses"][0]
    assert info["start"] == {"position": access["step"], "warp": access["warp"], "lane": access["lane"]}
    hanging, _ = recorded(EXCHANGE.replace("bar.sync 0;", "bar.sync 0, 96;"))
    (found,) = hanging.get("run")["findings"]
    assert (found["code"], found["accesses"]) == ("hang", [])
    assert hanging.get("run")["start"] == {"position": hanging.steps.count}  # each warp is at its barrier
    assert recorded(EXCHANGE)[0].get("run")["start"] == {}


def test_every_answer_is_what_it_was() -> None:
    """Of small launches, all that the page can ask for."""
    found: dict[str, object] = {}
    for launch in ("exchange", "race", "ring", "hang", "swizzle", "partial sums", "tensor words", "box"):
        views, _, _ = launched(launch)
        names = [name for name in names_of(views) if name != "sass"]
        names += islice(origins_of(views, views.get("run")), 60)
        kinds: dict[str, list[str]] = {}
        for name in names:
            kinds.setdefault(name.partition("/")[0], []).append(f"{name} {json.dumps(views.get(name))}")
        found |= {f"{launch}: {kind}": answers for kind, answers in kinds.items()}
    compare(Path(__file__).with_name("views.txt"), found)

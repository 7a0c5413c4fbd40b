"""The core of the debugger: where it stops, forwards and backwards, and what it shows there."""

import numpy as np
import pytest

import ptxlab
from ptxlab.debug import Debugger, UnknownError
from ptxlab.debug.machine_code import MachineCode
from ptxlab.debug.matrices import matrices
from ptxlab.debug.objects import Object, text
from ptxlab.debug.terminal import Terminal
from ptxlab.debug.types import array_of, of_dtype
from ptxlab.toolchain.tools import can_find
from tests.tools import header

from .expressions import FILE
from .kernels import CALL, COUNT, DOUBLE, EXCHANGE, HANG, INLINED, LAST, LOAD, LOOP, PRODUCT, RACE, STORE, debugger_of


@pytest.fixture(scope="module")
def exchange() -> Debugger:
    return debugger_of(EXCHANGE)


@pytest.fixture
def debugger(exchange: Debugger) -> Debugger:
    exchange.stops.clear()
    exchange.go_to(0, 0)
    return exchange


def line(debugger: Debugger) -> int:
    return debugger.stack()[0].place.line


def warp(debugger: Debugger) -> int:
    return debugger.thread // 32


def test_a_breakpoint_stops_each_warp_once(debugger: Debugger) -> None:
    debugger.break_at("", LOAD)
    stops = [debugger.run() for _ in range(3)]
    assert [stop.reason for stop in stops] == ["breakpoint", "breakpoint", "end"]
    assert {stop.thread // 32 for stop in stops[:2]} == {0, 1}
    assert debugger.position == debugger.trace.steps


def test_backwards_are_the_same_stops(debugger: Debugger) -> None:
    debugger.break_at("", DOUBLE)
    seen = []
    while debugger.run().reason == "breakpoint":
        seen.append((debugger.position, debugger.thread))
    assert len(seen) == 6  # two warps, three times
    back = []
    while debugger.run(backwards=True).reason == "breakpoint":
        back.append((debugger.position, debugger.thread))
    assert back[::-1] == seen
    assert debugger.position == 0


def test_conditions_count_for_the_threads_that_meet_them(debugger: Debugger) -> None:
    debugger.break_at("", COUNT, condition="%r3 >= 40 && %tid.x < 32 && %r4 == 1")
    assert debugger.run().reason == "breakpoint"
    scope = debugger.scope
    assert scope.register("%r3") >= 40
    assert scope.register("%r4") == 1
    assert debugger.run().reason == "end"  # other lanes of the warp are at the same place


def test_hit_counts_and_threads(debugger: Debugger) -> None:
    debugger.break_at("", DOUBLE, hit_count=3)
    debugger.run()
    assert debugger.scope.register("%r4") == 2
    debugger.stops.clear()
    debugger.go_to(0)
    debugger.break_at("", DOUBLE, thread=37)
    threads = []
    while debugger.run().reason == "breakpoint":
        threads.append(debugger.thread)
    assert threads == [37, 37, 37]


def test_a_step_is_one_line_of_one_thread_and_back(debugger: Debugger) -> None:
    lines, positions = [line(debugger)], [debugger.position]
    while debugger.step().reason == "step":
        lines.append(line(debugger))
        positions.append(debugger.position)
    loop = [DOUBLE, COUNT, COUNT + 1, COUNT + 2]
    assert lines == [*range(7, 19), *loop * 3, LAST - 1, LAST, LAST + 1]
    assert debugger.thread == 0
    back = []
    while debugger.step(backwards=True).reason == "step":
        back.append(line(debugger))
    assert back == lines[::-1]
    assert debugger.position == 0


def test_watchpoints_of_registers_and_memory(debugger: Debugger) -> None:
    debugger.watch("%r4")
    values = []
    while debugger.run().reason == "watchpoint":
        values.append(debugger.scope.register("%r4"))
    assert values == [0, 1, 2, 3]
    debugger.stops.clear()
    debugger.go_to(0)
    debugger.watch("c[5]")
    assert debugger.run().reason == "watchpoint"
    assert (debugger.thread, debugger.scope.evaluate("c[5]")) == (5, 37 * 8)
    assert debugger.step("in", "instruction", backwards=True).reason == "step"
    assert (line(debugger), debugger.scope.evaluate("c[5]")) == (LAST, 0)
    debugger.stops.clear()
    debugger.watch("s[9]")
    debugger.go_to(0)
    debugger.run()
    assert debugger.thread == 9


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("%r1", 7),
        ("%tid.x + 2 * %ntid.x", 135),
        ("%r2 == 39 and not %r1 > 7", True),
        ("s[40]", 40),
        ("shared.u32[160]", 40),
        ("shared.u32[%rd5]", 39),
        ("global.u32[%rd1 + 4]", 264),
        ("c[3]", 280),
        ("(short)20000", 20000),
        ("(short)40000", -25536),
        ("(signed char)200", -56),
        ("(%r1 << 2) | 1", 29),
    ],
)
def test_expressions(debugger: Debugger, text: str, value: int) -> None:
    debugger.break_at("", LOAD, thread=7)
    debugger.run()
    assert debugger.scope.evaluate(text) == value


def test_random_expressions_have_the_values_of_cpp(debugger: Debugger) -> None:
    for line in FILE.read_text().splitlines():
        value, _, text = line.partition(" = ")
        assert float(debugger.scope.evaluate(text)) == float(value), text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%r77", "no register `%r77`"),
        ("%r3", "not written yet"),
        ("nothing[3]", "nothing called `nothing`"),
        ("%r1 +", "cannot be read"),
        ("c[1000]", "out of bounds"),
        ("shared.u32[100000]", "no shared memory"),
        ("global.u32[0]", "no memory at 0x0"),
        ("global.u32[0x8000000000000000]", "no memory at 0x8000000000000000"),
        ("there.f32[0]", "no state space `there`"),
        ("__import__('os')", "can be asked for"),
        ("%r1 / 0", "division"),
    ],
)
def test_what_cannot_be_asked(debugger: Debugger, text: str, message: str) -> None:
    debugger.break_at("", LOAD, thread=7)
    debugger.run()
    with pytest.raises(UnknownError, match=message):
        debugger.scope.evaluate(text)


def test_a_warp_ends_with_its_block() -> None:
    text = header("8.0", "sm_80") + ".visible .entry k() { .reg .b32 %r; mov.u32 %r, %tid.x; ret; }\n"
    trace = ptxlab.parse(text)["k"].launch(2, 40, [], record=ptxlab.Record()).trace
    assert trace is not None
    debugger = Debugger(trace)
    assert debugger.lanes(35) == [*range(32, 40)]
    assert debugger.lanes(75) == [*range(72, 80)]


def test_a_register_across_lanes(debugger: Debugger) -> None:
    debugger.break_at("", COUNT, hit_count=2)
    debugger.run()
    first = warp(debugger) * 32
    assert debugger.across_lanes("%r3") == {thread: (thread ^ 32) * 4 for thread in range(first, first + 32)}


def test_registers_are_those_of_the_position(debugger: Debugger) -> None:
    debugger.break_at("", STORE, thread=3)
    debugger.run()
    known = debugger.scope.registers()
    assert known["%r1"] == 3
    assert "%r2" not in known


def test_calls_are_entered_stepped_over_and_left() -> None:
    debugger = debugger_of(CALL, 1)
    debugger.break_at("", 12)
    debugger.run()
    assert (line(debugger), debugger.scope.register("%r3")) == (12, 5)
    debugger.step("in")
    assert [frame.place.function for frame in debugger.stack()] == ["twice", "k"]
    assert [frame.place.line for frame in debugger.stack()] == [5, 12]
    debugger.step("out")
    assert (line(debugger), debugger.scope.register("%r3")) == (13, 10)
    debugger.step("over", backwards=True)
    assert (line(debugger), debugger.scope.register("%r3")) == (12, 5)
    debugger.step("over")
    assert (line(debugger), debugger.scope.register("%r3")) == (13, 10)


def test_lines_of_a_source_and_inlined_frames() -> None:
    debugger = debugger_of(INLINED, 1)
    assert debugger.stack()[0].place.file == "kernel.cu"
    lines = [line(debugger)]
    while debugger.step().reason == "step":
        lines.append(line(debugger))
    assert lines == [10, 11, 3, 12]
    debugger.go_to(0)
    debugger.break_at("/home/someone/kernel.cu", 3)
    debugger.run()
    assert [frame.place.line for frame in debugger.stack()] == [3, 11]
    debugger.in_ptx = True
    assert line(debugger) == 13
    with pytest.raises(UnknownError, match="no instruction at line 4"):
        debugger.break_at("kernel.cu", 4)


def test_steps_back_stay_in_the_function_that_is_inlined() -> None:
    second = "  .loc 1 4 1, function_name $helper, inlined_at 1 11 2\n  add.u32 %r1, %r1, 2;\n  .loc 1 12 1"
    debugger = debugger_of(INLINED.replace("  .loc 1 12 1", second), 1)
    debugger.break_at("kernel.cu", 4)
    debugger.run()
    assert [frame.place.line for frame in debugger.stack()] == [4, 11]
    debugger.step("over", backwards=True)
    assert [frame.place.line for frame in debugger.stack()] == [3, 11]


def test_a_breakpoint_on_a_line_stops_where_it_is_entered() -> None:
    debugger = debugger_of(LOOP, 1)
    made = debugger.break_at("kernel.cu", 11)
    assert len(made.hits.positions) == 3
    assert debugger.run().reason == "breakpoint"
    assert debugger.step("over").reason == "step"  # over the function that is inlined, and all of the line
    assert debugger.place(debugger.instruction(debugger.thread) or 0).line == 12
    assert debugger.run().reason == "breakpoint"
    lines = []
    for _ in range(4):
        debugger.step("in")
        lines.append(debugger.place(debugger.instruction(debugger.thread) or 0).line)
    assert lines == [3, 11, 12, 11]  # not in the header
    assert [len(debugger.break_at("kernel.cu", line).hits.positions) for line in (3, 12, 13)] == [3, 3, 1]
    assert [frame.place.function for frame in debugger.stack()] == ["k"]


def test_a_race_stops_where_it_is() -> None:
    debugger = debugger_of(RACE)
    stop = debugger.run()
    assert stop.reason == "finding"
    assert "data-race" in stop.description
    assert debugger.run().reason == "end"


def test_positions_beyond_the_recording(debugger: Debugger) -> None:
    debugger.go_to(10**9)
    assert debugger.position == debugger.trace.steps
    assert debugger.instruction(0) is None
    assert debugger.step().reason == "end"
    debugger.go_to(-1)
    assert debugger.position == debugger.trace.steps
    debugger.go_to(0)
    assert debugger.step(backwards=True).reason == "start"


def test_fragments_are_matrices() -> None:
    debugger = debugger_of(PRODUCT, 32)
    debugger.break_at("", 11)
    debugger.run()
    debugger.focus(5)
    found = {one.operand: one.values for one in matrices(debugger)}
    lanes = np.arange(32, dtype=np.float32).reshape(8, 4)
    assert np.array_equal(found["a"][:8, :4], lanes)  # its other registers are zero
    assert not found["a"][8:].any()
    assert not found["a"][:, 4:].any()
    assert np.array_equal(found["b"], np.r_[np.ones((4, 8)), np.zeros((4, 8))])
    assert np.array_equal(found["c"], np.tile(np.repeat(lanes, 2, axis=1), (2, 1)))
    assert np.array_equal(found["d"], found["a"] @ found["b"] + found["c"])


def test_delete_without_a_number_deletes_all_breakpoints() -> None:
    debugger = debugger_of(PRODUCT, 32)
    terminal = Terminal(debugger, lambda _: None)
    for line in (10, 11):
        next(terminal.answer(f"break {line}"))
    assert [*debugger.stops] == [1, 2]
    assert next(terminal.answer("delete 99")) == "there is no breakpoint `99`"
    assert not [*terminal.answer("delete 2")]
    assert [*debugger.stops] == [1]
    next(terminal.answer("break 11"))
    assert not [*terminal.answer("delete")]
    assert not debugger.stops


def test_other_instructions_hold_no_matrix(debugger: Debugger) -> None:
    assert list(matrices(debugger)) == []


def test_a_hang_is_at_the_end_of_what_was_recorded() -> None:
    debugger = debugger_of(HANG, 32)
    stop = debugger.run()
    assert stop.reason == "finding"
    assert "barrier-divergence" in stop.description
    assert debugger.instruction(0) is None
    assert debugger.ending(0) == "no step is recorded after line 8: @%p bra other"


@pytest.mark.skipif(not can_find("ptxas", "nvdisasm"), reason="needs ptxas and nvdisasm")
def test_sass_is_beside_the_instructions(debugger: Debugger) -> None:
    debugger.break_at("", LOAD)
    debugger.run()
    shown = list(Terminal(debugger, lambda _: None).answer("sass"))
    assert shown[0] == "sm_80"
    at = shown.index(f"→   {LOAD}  ld.shared.u32 %r3, [%rd5]")
    assert shown[at + 1].split()[0] == "LDS"


def test_sass_that_cannot_be_made_says_why() -> None:
    assert "unsupported" in MachineCode.of(".version 8.0\n.target sm_999\n.address_size 64\n").absence


def test_a_function_is_entered_once_though_its_first_line_is_a_loop() -> None:
    text = CALL.replace("  add.u32 %out, %in, %in;", "  .reg .pred %p;\nagain:\n  add.u32 %in, %in, 1;\n"
                        "  setp.lt.u32 %p, %in, 9;\n  @%p bra again;\n  mov.u32 %out, %in;")  # fmt: skip
    debugger = debugger_of(text, 1)
    assert len(debugger.break_in("twice").hits.positions) == 1
    assert len(debugger.break_at("", 7).hits.positions) == 4


def test_arrays_in_arrays_are_shown_with_eight_elements() -> None:
    memory = debugger_of(CALL, 1).scope
    content = np.arange(40, dtype=np.int32).reshape(2, 20)
    whole = Object(array_of(of_dtype(content.dtype), content.shape), data=content.tobytes())
    assert text(whole, memory) == "{{0, 1, 2, 3, 4, 5, 6, 7, …}, {20, 21, 22, 23, 24, 25, 26, 27, …}}"
    short = Object(array_of(of_dtype(content.dtype), (1, 8)), data=content.tobytes()[:32])
    assert text(short, memory) == "{{0, 1, 2, 3, 4, 5, 6, 7}}"

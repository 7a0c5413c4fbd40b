"""Kernels in CUDA C++ in their own words: names, types, expressions, and the functions that a thread is in."""

import random
import re
from pathlib import Path

import numpy as np
import pytest

from ptxlab.cli.debug import Session
from ptxlab.debug import Debugger, UnknownError, inspection
from ptxlab.debug.local_writes import changes_local, changes_register
from ptxlab.debug.shared_arrays import declared_type
from ptxlab.debug.terminal import Terminal
from ptxlab.debug.types import array_of, named
from ptxlab.lab import Views
from ptxlab.toolchain.tools import can_find

from . import agreement, cuda_gdb, printed

pytestmark = pytest.mark.skipif(not can_find("nvrtc"), reason="no NVRTC")

KERNEL = """\
enum Color { RED, GREEN = 5 };
struct Inner { short low, high; };
struct Pair { int x; float y; Inner in; unsigned bits : 3, more : 5; Color color; };
__constant__ float table[4] = {1, 2, 4, 8};
__device__ int counter = 7;

__device__ __forceinline__ int twice(int v) {
  int doubled = v * 2;
  return doubled + 1;
}

template <int N>
__device__ __noinline__ float dot(const float (&row)[N], float factor) {
  float sum = 0;
  for (int k = 0; k < N; ++k)
    sum += row[k] * factor;
  return sum;
}

__global__ void scale(float* out, int n, Pair pair) {
  __shared__ float tile[8][4];
  int i = threadIdx.x;
  bool is_even = n % 2 == i % 2;
  char letter = 'a' + i;
  Pair mine = pair;
  mine.x += i;
  for (int k = 0; k < 4; ++k)
    tile[i][k] = table[k] + i;
  __syncthreads();
  const Pair* p = &mine;
  float result = dot(tile[i], p->y);
  int odd = twice(i);
  out[i] = result + odd + n + is_even + letter;
}
"""
FIRST, SUM, CALLED, STORE = 22, 16, 8, 33
PAIR = (
    np.array([3], "i4").tobytes()
    + np.array([0.5], "f4").tobytes()
    + bytes([1, 0, 255, 255, 0b10101, 0, 0, 0, 5, 0, 0, 0])
)

ARGUMENTS = ["f32[8]=zeros", "s32=100", f"bytes={PAIR.hex()}"]


def opened(folder: Path, *, device_debug: bool) -> Debugger:
    path = folder / "scale.cu"
    path.write_text(KERNEL)
    request = {"program": path, "block": 8, "args": ARGUMENTS, "deviceDebug": device_debug}
    session = Session().with_request(request).open()
    session.debugger.owner = session  # type: ignore[attr-defined] # keeps the recording
    return session.debugger


@pytest.fixture(scope="module")
def unoptimized(tmp_path_factory: pytest.TempPathFactory) -> Debugger:
    return opened(tmp_path_factory.mktemp("scale"), device_debug=True)


@pytest.fixture
def debugger(unoptimized: Debugger) -> Debugger:
    unoptimized.stops.clear()
    unoptimized.go_to(0, 0)
    return unoptimized


def stop_at(debugger: Debugger, line: int, thread: int = 3) -> None:
    debugger.break_at("scale.cu", line, thread=thread)
    assert debugger.run().reason == "breakpoint"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i", "3"),
        ("i * 2 + 1", "7"),
        ("letter", "100 'd'"),
        ("n", "100"),
        ("pair", "{x = 3, y = 0.5, in = {low = 1, high = -1}, bits = 5, more = 2, color = GREEN}"),
        ("mine.x", "6"),
        ("p->in.high", "-1"),
        ("(*p).y * 4", "2.0"),
        ("mine.color == GREEN && i != 4", "true"),
        ("mine.color == Color::RED", "false"),
        ("tile[3]", "{4.0, 5.0, 7.0, 11.0}"),
        ("tile[i][1] - table[1]", "3.0"),
        ("*(float2*)&tile[3][2]", "{x = 7.0, y = 11.0}"),
        ("tile[3][0]@2", "{4.0, 5.0}"),
        ("&tile[3][1]", "(float *) 0x34 <tile+52>"),
        ("&tile[3][1] - &tile[0][0]", "13"),
        ("&tile[0][0]", "(float *) 0x0 <tile>"),
        ("counter + 1", "8"),
        ("result", "13.5"),
        ("result > 13.25f ? i : n", "3"),
        ("(int) result / 2", "6"),
        ("-7 / 2", "-3"),
        ("0u - 1", "4294967295 (0xffffffff)"),
        ("(unsigned char) 300", "44 ','"),
        ("sizeof(Pair) + sizeof(i)", "24"),
        ("threadIdx.x + 10 * blockDim.x", "83"),
        ("blockDim.y + gridDim.z", "2"),
        ("0x10 | 1 << 2", "20"),
        ("out == &out[0] and not i > 3", "true"),
        ("%tid.x == i", "true"),
    ],
)
def test_expressions(debugger: Debugger, text: str, value: str) -> None:
    stop_at(debugger, STORE)
    assert debugger.scope.text(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "there is nothing called `nothing`"),
        ("k", "`k` is not visible here"),
        ("doubled", "`doubled` is not visible here"),
        ("mine.z", "`Pair` has no member `z`; it has x, y, in, bits, more, color"),
        ("tile[8][0]", r"index 8 is out of bounds of `float \[8\]\[4\]`"),
        ("*i", "only a pointer"),
        ("&i", "is in a register"),
        ("&mine.bits", "is a bit field"),
        ("mine + 1", "`Pair` is not a number"),
        ("i +", "cannot be read"),
        ("twice(3)", "`twice` is not called"),
        ("*(float *) 64", "no memory at 0x40"),
        ("i / 0", "division by zero"),
        ("1 << 5000", "cannot be shifted"),
        ("(((" * 60, "too deep"),
    ],
)
def test_what_cannot_be_asked(debugger: Debugger, text: str, message: str) -> None:
    stop_at(debugger, STORE)
    with pytest.raises(UnknownError, match=message):
        debugger.scope.evaluate(text)


def test_variables_have_values_where_they_are_set(debugger: Debugger) -> None:
    debugger.break_at("scale.cu", SUM, condition="k == 2 && sum > 3.0f", thread=5)
    sums = []
    while debugger.run().reason == "breakpoint":
        sums.append((debugger.scope.evaluate("k"), debugger.scope.evaluate("sum"), debugger.scope.evaluate("row[k]")))
    assert sums == [(2, 6.5, 9.0)]


def test_functions_of_the_stack_have_their_own_variables(debugger: Debugger) -> None:
    terminal = Terminal(debugger, lambda _: None)
    stop_at(debugger, SUM)
    assert [frame.place.function for frame in debugger.stack()] == ["dot<4>", "scale"]
    assert "factor = 0.5" in [*terminal.answer("info args")][1]
    assert next(terminal.answer("up")).endswith("scale.cu:31")
    assert debugger.scope.evaluate("mine.x") == 6
    debugger.stops.clear()
    stop_at(debugger, CALLED)
    terminal_frames = [*terminal.answer("where")]
    assert terminal_frames[0].startswith("→#0  twice(v=3) at ")
    assert terminal_frames[0].endswith("scale.cu:8, inlined")
    assert terminal_frames[1].startswith(" #1  scale(out=")
    next(terminal.answer("up"))
    assert debugger.scope.evaluate("result") == 13.5


def test_a_condition_that_names_nothing_is_refused(debugger: Debugger) -> None:
    with pytest.raises(UnknownError, match="nothing called `sums`"):
        debugger.break_at("scale.cu", SUM, condition="sums > 1")
    assert not debugger.stops


def test_a_local_variable_is_watched(debugger: Debugger) -> None:
    stop_at(debugger, SUM, thread=1)
    debugger.stops.clear()
    made = debugger.watch("sum")
    assert made.times == 5  # 0, and after each of four additions
    debugger.run()
    assert debugger.scope.evaluate("sum") == 1.0


def test_a_line_with_a_call_is_entered_once(debugger: Debugger) -> None:
    debugger.break_at("scale.cu", 31, thread=2)
    assert [debugger.run().reason for _ in range(2)] == ["breakpoint", "end"]


def test_breakpoints_on_functions_and_messages(debugger: Debugger) -> None:
    made = debugger.break_in("dot", thread=4)
    assert debugger.run().reason == "breakpoint"
    assert [frame.place.line for frame in debugger.stack()] == [14, 31]
    del debugger.stops[made.number]
    debugger.break_at("scale.cu", SUM, thread=4, message="k is {k}, {nothing}")
    debugger.run()
    assert debugger.said() == [
        f"k is {k}, <there is nothing called `nothing`: registers start with %>" for k in range(4)
    ]


def test_python_has_arrays_and_numbers_of_expressions(debugger: Debugger) -> None:
    stop_at(debugger, STORE)
    table, tile = debugger.scope.evaluate("table"), debugger.scope.evaluate("tile")
    assert (table.tolist(), table.dtype) == ([1, 2, 4, 8], np.float32)
    assert tile.shape == (8, 4)
    assert tile[2].tolist() == [3, 4, 6, 10]
    assert (debugger.scope.evaluate("tile[2][1] + 1"), debugger.scope.evaluate("n")) == (5, 100)


def test_focus_is_in_the_words_of_cuda_gdb(debugger: Debugger) -> None:
    terminal = Terminal(debugger, lambda _: None)
    stop_at(debugger, STORE)
    assert next(terminal.answer("cuda thread (5,0,0)")) == "kernel 0, block (0,0,0), thread (5,0,0), warp 0, lane 5"
    assert next(terminal.answer("cuda block 0 lane 1")).endswith("thread (1,0,0), warp 0, lane 1")
    assert next(terminal.answer("cuda block (3,0,0)")) == "there is no block (3,0,0): there are 1 × 1 × 1"
    threads = [*terminal.answer("info cuda threads")]
    assert any("thread (3,0,0) " in row and "scale.cu:33" in row for row in threads)
    assert next(terminal.answer("info cuda kernels")) == "→ kernel 0  scale  grid (1,1,1)  block (8,1,1)  seed 0"
    assert [*terminal.answer("info cuda blocks")] == ["→ block (0,0,0)          4 threads run"]
    next(terminal.answer("cuda thread 3"))
    assert [*terminal.answer("print/x mine.x")] == ["0x6"]
    assert [*terminal.answer("lanes i")] == ["lane  0: 0  1  2  3  4  5  6  7"]
    assert len([*terminal.answer("lanes mine")]) == 8  # structures are long: one in a row


def test_optimized_code_has_parameters_and_shared_variables(tmp_path: Path) -> None:
    """Their types come from compiling again; local variables are not known, and that is said."""
    debugger = opened(tmp_path, device_debug=False)
    debugger.break_at("scale.cu", STORE, thread=3)
    debugger.run()
    scope = debugger.scope
    assert scope.text("tile[3]") == "{4.0, 5.0, 7.0, 11.0}"
    assert scope.text("pair.in") == "{low = 1, high = -1}"
    assert scope.text("n + table[3]") == "108.0"
    with pytest.raises(UnknownError, match="`result` is not known in optimized code: start with `-G`"):
        scope.evaluate("result")


def test_the_lab_shows_the_same(unoptimized: Debugger) -> None:
    views = Views(unoptimized.trace, None, unoptimized.declarations)
    end = views.steps.count - 3
    (frame,) = views.get(f"variables/0/3/{end}")["frames"]
    shown = {one["name"]: (one["type"], one["value"]) for one in frame["variables"]}
    assert (frame["function"], shown["i"], shown["result"]) == ("scale", ("int", "3"), ("float", "13.5"))
    encoded = b"tile[i][1]".hex()
    assert views.get(f"value/0/3/{end}/x{encoded}") == {"value": "5.0", "type": "float"}
    assert "nothing called" in views.get(f"value/0/3/{end}/x{b'nothing'.hex()}")["problem"]


def test_the_lab_moves_by_lines_and_conditions(unoptimized: Debugger) -> None:
    views = Views(unoptimized.trace, None, unoptimized.declarations)

    def line(position: int) -> int:
        return int(views.get(f"variables/0/5/{position}")["frames"][0]["line"])

    found = views.get(f"stop/0/0/x{b'16 if k == 2 && factor == 0.5f'.hex()}")
    assert (found["warp"], line(found["position"])) == (0, SUM)
    at = [found["position"]]
    for kind in ("over", "over", "out", "over"):
        at.append(views.get(f"step/0/5/{at[-1]}/{kind}/0")["position"])
    assert [line(one) for one in at] == [SUM, SUM - 1, SUM, 31, 32]
    assert line(views.get(f"step/0/5/{at[2]}/over/1")["position"]) == SUM - 1
    again = views.get(f"stop/{at[-1]}/1/x{b'16 if k == 2'.hex()}")
    assert again["position"] == at[0]
    assert "has no code" in views.get(f"stop/0/0/x{b'999'.hex()}")["problem"]


CHANGED = """\
struct Pair { int a; float b; };
__device__ __noinline__ void touch(int* p) { *p += 1; }
__global__ void k(float* x, int n, int m, Pair kept, Pair changed, int touched, float* y, int down) {
  x += threadIdx.x;
  m -= 2;
  changed.a += m;
  touch(&touched);
  for (; down > 3; --down) *x += down;
  *x += kept.b + changed.b + touched + n + changed.a;
  y[n] = 1;
}
"""


def test_optimized_code_shows_no_parameter_that_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "changed.cu"
    path.write_text(CHANGED)
    given = ["f32[8]=zeros", "7", "9", "(1, 2.0)", "(3, 4.0)", "5", "f32[8]=ones", "6"]
    session = Session().with_request({"program": path, "block": 8, "args": given}).open()
    debugger = session.debugger
    debugger.break_at("changed.cu", 9, thread=3)
    debugger.run()
    values = {one.name: inspection.value_text(debugger.scope, one.name) for one in debugger.scope.variables()}
    known = {name: value for name, value in values.items() if "not known in optimized code" not in value}
    assert set(values) - set(known) == {"x", "m", "changed", "touched", "down"}
    assert (known["n"], known["kept"]) == ("7", "{a = 1, b = 2.0}")
    assert "or ask for `::x`, as it was launched" in values["x"]
    assert debugger.scope.text("::y[2]") == "1.0"


def test_a_condition_without_a_value_is_refused(debugger: Debugger) -> None:
    with pytest.raises(UnknownError, match="the condition has no value where it would stop: `i` is not written yet"):
        debugger.break_at("scale.cu", FIRST, condition="i == 3")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (21, "breakpoint 1 at line 22, reached once: the compiler made no instruction of it"),
        (20, "breakpoint 1 at line 22, reached once: line 20 starts the function, and it stops after the prologue"),
        (19, "line 19 has no code: it is blank, or a comment"),
        (4, "line 4 has no code: the compiler made no instruction of it"),
        (27, "breakpoint 1 at line 27, reached once"),
        (36, "line 36 has no code: the file ends before it"),
    ],
)
def test_lines_without_code(debugger: Debugger, line: int, said: str) -> None:
    """They move within their function only, and a `for` is one stop."""
    terminal = Terminal(debugger, lambda _: None)
    answer = next(terminal.answer(f"break {line}"))
    assert re.sub(r"^breakpoint \d+", "breakpoint 1", answer) == said


@pytest.mark.parametrize("device_debug", [False, True])
def test_random_lines_stop_where_the_line_table_says(tmp_path: Path, device_debug: bool) -> None:
    if device_debug and not cuda_gdb.can_ask():
        pytest.skip("no llvm-dwarfdump")
    path = tmp_path / "scale.cu"
    path.write_text(KERNEL)
    given = {"program": str(path), "block": 8, "args": ARGUMENTS, "deviceDebug": device_debug}
    assert agreement.agree(given, random.Random(5), 12) == (12, [])


@pytest.mark.bulk
def test_values_at_random_lines_are_those_that_the_kernel_prints(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(KERNEL)
    lines, values, wrong = printed.agree({"program": str(path), "block": 8, "args": ARGUMENTS}, random.Random(5), 6)
    assert (lines, wrong) == (6, [])
    assert values > 50


@pytest.mark.parametrize(
    ("register", "is_changed"),
    [("%r10", False), ("%rd1", False), ("%f2", False), ("%r11", True), ("%r5", True), ("%r12", True), ("%r1", True)],
)
def test_parameter_that_a_register_holds(register: str, is_changed: bool) -> None:
    """One that is written once, from the parameter, is the parameter everywhere."""
    text = """
        ld.param.u64 %rd1, [k_param_0];
        ld.param.v2.f32 {%f1, %f2}, [k_param_5];
        ld.param.u32 %r10, [k_param_3];
        add.s32 %r1, %r10, 1;
        st.global.v2.u32 [%rd1], {%r10, %r1};
        mov.b64 {%r4, %r5}, %rd1;
        ld.param.u32 %r11, [k_param_4];
        @%p1 mov.u32 %r11, %r10;
        @!%p1 add.s32 %r12, %r10, 1;
    """
    assert changes_register(text, register) == is_changed


@pytest.mark.parametrize(
    ("body", "start", "is_changed"),
    [
        ("ld.local.u32 %r2, [%SP+4];", 4, False),
        ("st.local.u32 [%SP+4], %r1;", 4, True),
        ("st.local.u32 [%SP+8], %r1;", 4, False),
        ("add.u64 %rd1, %SP, 4;\nld.local.u32 %r2, [%rd1];", 4, False),
        ("add.u64 %rd1, %SP, 4;\nst.local.u32 [%rd1], %r1;", 4, True),
        ("add.u64 %rd1, %SP, 4;\nst.param.b64 [param0], %rd1;", 4, True),
        ("add.u64 %rd1, %SP, 8;\nst.local.u32 [%rd1], %r1;", 4, False),
        ("add.u64 %rd1, %SP, 8;\nst.local.u32 [%rd1], %r1;", 8, True),
    ],
)
def test_parameter_that_local_memory_holds(body: str, start: int, is_changed: bool) -> None:
    """Its four bytes are written by the prologue; later, or by a pointer, they are changed."""
    prologue = f".loc 1 3 0\nld.param.u32 %r1, [k_param_0];\nst.local.u32 [%SP+{start}], %r1;\n"
    assert changes_local(f"{prologue}.loc 1 4 3\n{body}\nret;", start, 4) == is_changed


@pytest.mark.parametrize(
    ("declared", "bytes", "said"),
    [
        ("tile[TILE][TILE]", 4096, "float [32][32]"),
        ("tile[2][TILE][TILE]", 8192, "float [2][32][32]"),
        ("tile[TILE][TILE + 1]", 4224, "float [1056]"),  # what the second extent is, nothing says
        ("tile[TILE][TILE]", 4224, "float [1056]"),
        ("tile[4][TILE]", 4096, "float [4][256]"),
        ("tile[]", 0, "float []"),
    ],
)
def test_extents_that_are_macros_follow_from_the_size(tmp_path: Path, declared: str, bytes: int, said: str) -> None:
    path = tmp_path / "tile.cu"
    path.write_text(f"__global__ void k() {{ __shared__ float {declared}; }}")
    found = declared_type("tile", bytes, [str(path)], named)
    assert found is not None
    assert (str(found), found.size) == (said, bytes)


def test_an_array_without_an_extent_has_no_size() -> None:
    """`extern __shared__ float a[][3]`: its rows are known, and not how many."""
    assert (array_of(named("float"), [None, 3]).size, array_of(named("float"), [2, 3]).size) == (0, 24)

"""What no GPU would take, or what a kernel must not do: reported on its line, with everything else left as it was."""

import gc
import re
import resource
import signal
import threading
import time

import numpy as np
import pytest

import ptxlab
from tests.emulate.launching import kernel, launch, line_of, problem

STORE = """
ld.param.u64 %rd1, [p];
mov.u32 %r1, 7;
st.global.u32 [%rd1], %r1;
ret;
"""


# Arguments.


@pytest.mark.parametrize(
    ("parameters", "args", "text"),
    [
        (".u64 p", [], "`k` takes 1 argument, not 0"),
        (".u64 p", [1, 2], "`k` takes 1 argument, not 2"),
        ("", [1], "`k` takes 0 arguments, not 1"),
        (".u32 n", [1 << 32], "argument 0 of `k`: 4294967296 does not fit `.u32`"),
        (".s32 n", [1 << 31], "2147483648 does not fit `.s32`"),
        (".u8 n", [256], "256 does not fit `.u8`"),
        (".u32 n", [1.5], "1.5 is not an integer, which `.u32` needs"),
        (".u32 n", ["four"], "str is not a number, array or bytes"),
        (".u32 n", [None], "NoneType is not a number, array or bytes"),
        (".f16 x", [1e9], "argument 0"),
        (".f32 x", [10**400], "argument 0"),
        (".u32 n", [np.zeros(4, "f4")], "an array needs a 64-bit parameter"),
        (".u64 p", [np.zeros((4, 4), "f4")[:, ::2]], "the array has gaps"),
        (".u64 p", [np.array([object()])], "an array of Python objects"),
        (".u64 p", [np.zeros(3, ">f4")], "the bytes of an array of >f4 are in an order that no GPU reads"),
        (".f32 a", [1e39], "the number is too large for `.f32`"),
        (".f16 a", [65520.0], "the number is too large for `.f16`"),
        (".f64 a", [10**400], "the number is too large for `.f64`"),
        (".align 4 .b8 s[12]", [b"1"], "1 byte for a parameter of 12"),
        (".align 4 .b8 s[12]", [b"12345"], "5 bytes for a parameter of 12"),
        (".align 4 .b8 s[12]", [3], "the parameter is an aggregate of 12 bytes"),
    ],
)
def test_a_wrong_argument_is_refused(parameters: str, args: list[object], text: str) -> None:
    found = problem("ret;", parameters, args)
    assert found.code == "bad-argument"
    assert text in found.message
    assert found.line is not None


def test_all_wrong_arguments_are_reported_at_once() -> None:
    with pytest.raises(ptxlab.KernelError) as caught:
        launch("ret;", ".u32 a, .u64 b, .u32 c", [1 << 32, 5, 1 << 32])
    assert [found.message.split(":")[0] for found in caught.value.diagnostics] == [
        "argument 0 of `k`",
        "argument 2 of `k`",
    ]


def test_numbers_of_every_kind_are_arguments() -> None:
    out = np.zeros(4, "u4")
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.b32 %r1, [a];
    ld.param.b32 %r2, [b];
    ld.param.b32 %r3, [c];
    st.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r3};
    ret;
    """
    launch(body, ".u64 p, .u32 a, .s32 b, .f32 c", [out, np.uint8(3), True, np.float64(0.5)])
    assert out.tolist() == [3, 1, 0x3F000000, 0x3F000000]


# Sizes.


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"block": 1025}, "1025 threads, at most 1024"),
        ({"block": (32, 33)}, "1056 threads, at most 1024"),
        ({"block": (1, 1, 65)}, "at most 1024 are possible (64 in z)"),
        ({"block": 0}, "at least 1"),
        ({"grid": 0}, "at least 1"),
        ({"grid": -1}, "at least 1"),
        ({"grid": 1 << 31}, "a grid of"),
        ({"grid": (1, 65536)}, "a grid of"),
        ({"shared": -4}, "-4 bytes of shared memory"),
        ({"shared": 164 * 1024}, "167936 bytes of shared memory, `sm_80` has 166912"),
        ({"blocks": [(1, 0, 0)]}, "outside of the grid"),
        ({"blocks": [(-1, 0, 0)]}, "outside of the grid"),
    ],
)
def test_a_launch_that_no_gpu_takes_is_refused(how: dict[str, object], text: str) -> None:
    found = problem("ret;", **how)
    assert found.code == "bad-launch"
    assert text in found.message


@pytest.mark.parametrize("extent", [1.5, "4", (1, 1, 1, 1), (), None, (1, 2.5)])
def test_an_extent_is_one_to_three_whole_numbers(extent: object) -> None:
    for name, how in (("grid", {"grid": extent}), ("block", {"block": extent}), ("blocks", {"blocks": [extent]})):
        with pytest.raises(ValueError, match=re.escape(f"{name}={extent!r}: one to three whole numbers are wanted")):
            launch("ret;", **how)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "5"])
def test_a_timeout_is_a_time(timeout: object) -> None:
    with pytest.raises(ValueError, match="a number of seconds above 0 is wanted"):
        launch("ret;", timeout=timeout)
    launch("ret;", timeout=np.float32(1000))
    launch("ret;", timeout=float("inf"))


def test_blocks_are_named_by_one_to_three_numbers() -> None:
    # Block 1 is named twice, and runs once.
    assert launch("ret;", grid=(2, 2), blocks=[(1, 1), (1,), 0, np.uint8(1)]).counters["instructions"] == 3


def test_the_largest_launch_is_taken() -> None:
    assert launch("bar.sync 0;\nret;", block=1024, shared=163 * 1024).counters["instructions"] == 2048


def test_local_memory_has_a_limit() -> None:
    assert "bytes of local memory, a thread may have" in problem(".local .b8 x[600000];\nret;").message
    body = """
    .local .align 4 .b8 x[500000];
    mov.u32 %r1, 5;
    st.local.u32 [x+499996], %r1;
    ret;
    """
    assert launch(body, block=32).diagnostics == []


def test_memory_that_this_machine_lacks_is_stated_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxlab.emulate.host.running.available", lambda: 1 << 20)
    found = problem(".local .b8 x[500000];\nret;", block=64)
    assert found.code == "out-of-memory"
    assert re.search(r"a block takes 30\.\d MiB on this machine, which has 1\.0 MiB free", found.message)


def test_a_grid_of_any_size_takes_the_same_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = problem("ret;", grid=(2**31 - 1, 65535, 65535), timeout=0.3)
    assert found.code == "timeout"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


def test_no_blocks_at_all() -> None:
    assert launch("trap;\nret;", grid=4, blocks=[]).diagnostics == []


# Arrays.


def test_an_empty_array_has_no_memory() -> None:
    assert launch("ret;", ".u64 p", [np.zeros(0, "f4")]).diagnostics == []
    found = problem(STORE, ".u64 p", [np.zeros(0, "f4")])
    assert found.code == "out-of-bounds"
    assert "argument 0 (`p`) has 0 bytes" in found.notes[0]


def test_a_read_only_array_is_not_written() -> None:
    array = np.zeros(4, "u4")
    array.flags.writeable = False
    found = problem(STORE, ".u64 p", [array])
    assert found.code == "read-only-write"
    assert "argument 0 (`p`), which is read-only" in found.message
    assert array.tolist() == [0, 0, 0, 0]
    array.flags.writeable = True
    assert launch(STORE, ".u64 p", [array]).diagnostics == []
    assert array.tolist() == [7, 0, 0, 0]


def test_a_store_that_writes_elsewhere_first_still_finds_a_read_only_array() -> None:
    """The place that an instruction remembers is that of memory it may write."""
    wet, dry = np.zeros(4, "u4"), np.zeros(4, "u4")
    dry.flags.writeable = False
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 0;
    ld.global.u32 %r2, [%rd2];
    selp.b64 %rd3, %rd1, %rd2, %p1;
    st.global.u32 [%rd3], %r1;
    ret;
    """
    found = problem(body, ".u64 p, .u64 q", [wet, dry], block=2)
    assert found.code == "read-only-write"
    assert dry.tolist() == [0, 0, 0, 0]


def test_arrays_that_overlap_are_one_memory() -> None:
    array = np.zeros(8, "u4")
    body = """
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    sub.u64 %rd3, %rd2, %rd1;
    st.global.u64 [%rd1], %rd3;
    ret;
    """
    launch(body, ".u64 p, .u64 q", [array, array[2:4]])
    assert array[0] == 8
    assert "overlaps argument 0 (`p`) in part" in problem(body, ".u64 p, .u64 q", [array[:5], array[3:]]).message


# Addresses.


@pytest.mark.parametrize(
    ("address", "code", "note"),
    [
        ("mov.u64 %rd1, 0;", "out-of-bounds", "a null pointer"),
        ("mov.u64 %rd1, -4;", "out-of-bounds", None),
        ("add.u64 %rd1, %rd1, 16;", "out-of-bounds", "has 16 bytes; the access starts at its end"),
        ("add.u64 %rd1, %rd1, -4;", "out-of-bounds", None),
        ("add.u64 %rd1, %rd1, 2;", "misaligned", None),
        ("mov.u32 %r2, 0;\nmov.u32 %r3, 5;\ndiv.u32 %r2, %r3, %r2;\ncvt.u64.u32 %rd1, %r2;", "misaligned", None),
    ],
)  # fmt: skip
def test_a_bad_address_is_reported(address: str, code: str, note: str | None) -> None:
    array = np.zeros(4, "u4")
    found = problem(STORE.replace("mov.u32", f"{address}\nmov.u32"), ".u64 p", [array])
    assert found.code == code
    assert line_of(found) == "st.global.u32 [%rd1], %r1;"
    assert "thread (0,0,0) of block (0,0,0)" in found.labels[0].text
    if note:
        assert note in found.notes[0]
    assert array.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("space", ["global", "shared", "local"])
@pytest.mark.parametrize(("type", "size"), [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("v2.u64", 16)])
def test_every_place_around_the_ends_is_distinguished(space: str, type: str, size: int) -> None:
    """An access that is right comes first, so that the emulator knows where to look."""
    bytes = 48 if space == "local" else 47  # local memory is a multiple of 16 bytes
    base = "ld.param.u64 %rd1, [p];" if space == "global" else "mov.u64 %rd1, memory;"
    result = "{%rd5, %rd6}" if size == 16 else "%rd5"
    body = f"""
    {"" if space == "global" else f".{space} .align 16 .b8 memory[{bytes}];"}
    {base}
    ld.param.u64 %rd2, [at];
    mov.u32 %r1, 0;
again:
    ld.{space}.{type} {result}, [%rd1];
    add.u64 %rd1, %rd1, %rd2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra again;
    ret;
    """
    written = kernel(body, ".u64 p, .u64 at")
    for offset in range(-17, 66):
        args = [np.zeros(bytes, "u1"), offset % (1 << 64)]
        result = written.launch(1, 1, args, device="cpu", checks=False, on_error="collect")
        aligned, inside = offset % size == 0, 0 <= offset <= bytes - size
        wanted = [] if aligned and inside else ["out-of-bounds" if aligned else "misaligned"]
        assert [found.code for found in result.diagnostics] == wanted, offset


def test_the_last_address_is_not_memory() -> None:
    found = problem("mov.u64 %rd1, -1;\nld.global.u8 %r1, [%rd1];\nret;", checks=False)
    assert found.code == "out-of-bounds"


def test_an_mbarrier_is_in_shared_memory() -> None:
    array = np.zeros(4, "u8")
    body = "ld.param.u64 %rd1, [p];\nmbarrier.init.b64 [%rd1], 1;\nret;"
    found = problem(body, ".u64 p", [array])
    assert found.code == "out-of-bounds"
    assert array.tolist() == [0, 0, 0, 0]


def test_a_fault_of_all_blocks_is_reported_once() -> None:
    found = problem("mov.u64 %rd1, 0;\nld.global.u32 %r1, [%rd1];\nret;", grid=64, checks=False, workers=2)
    assert found.code == "out-of-bounds"


# What a kernel does to itself.


def test_trap() -> None:
    assert problem("trap;\nret;").code == "trap"


RECURSE = """.func (.param .b32 result) deeper(.param .b32 n)
{
    .reg .b32 %r<4>;
    .reg .pred %p1;
    ld.param.b32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra end;
    sub.u32 %r1, %r1, 1;
    {
        .param .b32 passed;
        .param .b32 returned;
        st.param.b32 [passed], %r1;
        call (returned), deeper, (passed);
        ld.param.b32 %r2, [returned];
    }
    add.u32 %r1, %r2, 1;
end:
    st.param.b32 [result], %r1;
    ret;
}
"""
CALL = """
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
.param .b32 passed;
.param .b32 returned;
st.param.b32 [passed], %r1;
call (returned), deeper, (passed);
ld.param.b32 %r2, [returned];
st.global.b32 [%rd1], %r2;
ret;
"""


def test_deep_recursion_ends_the_thread() -> None:
    out = np.zeros(1, "u4")
    launch(CALL, ".u64 p, .u32 n", [out, 100], before=RECURSE)
    assert out[0] == 100
    found = problem(CALL, ".u64 p, .u32 n", [out, 1 << 30], before=RECURSE)
    assert found.code == "stack-overflow"
    assert line_of(found) == "call (returned), deeper, (passed);"


def test_endless_calls_are_stopped() -> None:
    """A loop that does nothing but call takes no fuel from the caller."""
    before = ".func f() { ret; }\n"
    start = time.perf_counter()
    found = problem("again:\ncall f;\nbra again;", before=before, timeout=0.3)
    assert found.code == "timeout"
    assert time.perf_counter() - start < 5


def test_a_tree_of_calls_is_stopped() -> None:
    tree = RECURSE.replace(
        "add.u32 %r1, %r2, 1;",
        """{
        .param .b32 passed;
        .param .b32 returned;
        st.param.b32 [passed], %r1;
        call (returned), deeper, (passed);
        ld.param.b32 %r3, [returned];
    }
    add.u32 %r1, %r2, %r3;""",
    )
    start = time.perf_counter()
    found = problem(CALL, ".u64 p, .u32 n", [np.zeros(1, "u4"), 60], before=tree, timeout=0.3)
    assert found.code == "timeout"
    assert time.perf_counter() - start < 5


def test_a_call_of_no_function() -> None:
    body = """
    ld.param.u64 %rd1, [p];
    prototype: .callprototype _ ();
    call %rd1, prototype;
    ret;
    """
    found = problem(body, ".u64 p", [0x1234])
    assert found.code == "bad-call"
    assert "0x1234" in found.message


def test_a_call_of_a_function_that_the_kernel_does_not_name() -> None:
    """It has an address in the module, but no code in this kernel."""
    before = """.func f() { ret; }
.visible .entry other() { call f; ret; }
"""
    body = """
    ld.param.u64 %rd1, [p];
    prototype: .callprototype _ ();
    call %rd1, prototype;
    ret;
    """
    codes = set()
    for number in range(5):
        result = launch(body, ".u64 p", [(4 << 56) + 16 * number], before=before, on_error="collect")
        codes.update(found.code for found in result.diagnostics)
    assert codes == {"bad-call"}


@pytest.mark.parametrize(
    ("function", "prototype", "call"),
    [
        ("f()", "_ (.param .align 16 .b8 _[60000])", "call %rd1, (large), prototype;"),
        ("(.param .align 8 .b8 r[4096]) f()", "_ ()", "call %rd1, prototype;"),
        ("(.reg .u64 r) f()", "(.reg .u32 _) _ ()", "call (%r1), %rd1, prototype;"),
        ("(.reg .u32 r) f()", "_ (.reg .u32 _)", "call %rd1, (%r1), prototype;"),
        ("f(.reg .u32 a, .reg .u64 b)", "_ (.reg .u64 _, .reg .u32 _)", "call %rd1, (%rd2, %r1), prototype;"),
        ("f(.reg .pred a)", "_ (.reg .b8 _)", ".reg .b8 %c; call %rd1, (%c), prototype;"),
    ],
)
def test_a_call_by_the_wrong_prototype(function: str, prototype: str, call: str) -> None:
    body = f"""
    .param .align 16 .b8 large[60000];
    mov.u64 %rd1, f;
    prototype: .callprototype {prototype};
    {call}
    ret;
    """
    found = problem(body, before=f".func {function} {{ ret; }}\n")
    assert found.code == "bad-call"
    assert found.message == "a call of `f`, whose results and parameters are not those of `prototype`"
    assert [label.text for label in found.labels] == ["thread (0,0,0) of block (0,0,0)", "declared here"]


def test_a_call_of_a_kernel() -> None:
    found = problem("mov.u64 %rd1, k;\nprototype: .callprototype _ ();\ncall %rd1, prototype;\nret;")
    assert (found.code, found.message) == ("bad-call", "a call of `k`, which is a kernel")


HEAP = """.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
"""
ALLOCATE = """
.param .b64 size;
.param .b64 address;
mov.u64 %rd1, 64;
st.param.b64 [size], %rd1;
call (address), malloc, (size);
ld.param.b64 %rd2, [address];
"""
FREE = """
st.param.b64 [size], %rd2;
call free, (size);
"""


def test_memory_of_the_kernel_is_freed_once() -> None:
    assert launch(f"{ALLOCATE}{FREE}ret;", before=HEAP, block=64).diagnostics == []
    assert problem(f"{ALLOCATE}{FREE}{FREE}ret;", before=HEAP).code == "bad-free"
    assert problem(f"{ALLOCATE}add.u64 %rd2, %rd2, 8;{FREE}ret;", before=HEAP).code == "bad-free"
    assert problem(f"{ALLOCATE}{FREE}ld.global.u32 %r1, [%rd2];\nret;", before=HEAP).code == "out-of-bounds"


def test_the_heap_is_limited() -> None:
    body = (
        ALLOCATE.replace("mov.u64 %rd1, 64;", "mov.u64 %rd1, 300000000;\nagain:")
        + "setp.ne.u64 %p1, %rd2, 0;\n@%p1 bra again;\nret;"
    )
    assert launch(body, before=HEAP).diagnostics == []


def test_alloca_of_any_size_stays_in_its_stack() -> None:
    for size in ("-1", "0x7fffffffffffffff", "65552", "-16"):
        found = problem(f"mov.u64 %rd1, {size};\nalloca.u64 %rd2, %rd1, 16;\nst.local.u32 [%rd2], %r1;\nret;")
        assert found.code == "stack-overflow", size


# Being stopped.


SPIN = "again:\nadd.u32 %r1, %r1, 1;\nbra again;"


def test_ctrl_c_stops_at_once_and_says_where() -> None:
    spin = kernel(SPIN)
    spin.launch(1, 1, [], device="cpu", timeout=0.01, on_error="collect")  # compiles it before the signal comes
    started = time.perf_counter()
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        spin.launch(64, 128, [], device="cpu")
    assert time.perf_counter() - started < 3
    assert "the kernel was stopped by Ctrl-C" in str(caught.value)
    assert "bra again;" in str(caught.value)
    assert launch("ret;").diagnostics == []


def test_what_progress_raises_stops_the_kernel() -> None:
    def progress(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="0 of 4"):
        launch(SPIN, grid=4, progress=progress)
    gc.collect()


def test_a_thread_that_prints_forever_is_stopped() -> None:
    before = """.extern .func (.param .b32 result) vprintf(.param .b64 text, .param .b64 arguments);
.global .align 1 .b8 text[8] = {37, 57, 57, 57, 57, 57, 100, 0};
"""
    body = """
    .local .align 8 .b8 numbers[8];
    .param .b64 first;
    .param .b64 second;
    .param .b32 count;
    st.local.u64 [numbers], 0;
    again:
    mov.u64 %rd1, text;
    cvta.global.u64 %rd1, %rd1;
    st.param.b64 [first], %rd1;
    mov.u64 %rd2, numbers;
    cvta.local.u64 %rd2, %rd2;
    st.param.b64 [second], %rd2;
    call (count), vprintf, (first, second);
    bra again;
    """
    result = launch(body, before=before, timeout=0.5, on_error="collect")
    assert [found.code for found in result.diagnostics] == ["timeout"]
    assert 1024 <= len(result.output) <= 16 << 20

"""Data races between threads of a block: the wrong kernel is found on its lines, the right one beside it is silent."""

import numpy as np
import pytest

import ptxlab
from ptxlab.report import render
from tests.emulate.ordering import HEAD, races, run, silent

EXCHANGE = """
    st.shared.u32 [%own], %t; // with
    {}
    ld.shared.u32 %r1, [{}]; // race
"""


@pytest.mark.parametrize(
    "barrier",
    [
        "bar.sync 0;",
        "bar.sync 1, 64;",
        "barrier.sync 5;",
        "barrier.sync.aligned 5, 64;",
        "bar.red.popc.u32 %r2, 0, %p1;",
        "bar.warp.sync 0xffffffff; bar.sync 0;",
    ],
)
def test_threads_of_other_warps_are_ordered_by_barriers(barrier: str) -> None:
    silent(EXCHANGE.format(barrier, "%far"))


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "bar.warp.sync 0xffffffff;",
        "membar.cta;",
        "membar.sys;",
        "fence.sc.gpu;",
        "bar.arrive 1, 96;",
        "vote.sync.any.pred %p2, %p1, 0xffffffff;",
    ],
)
def test_other_statements_do_not_order_threads_of_other_warps(statement: str) -> None:
    races(EXCHANGE.format(statement, "%far"))


@pytest.mark.parametrize(
    "statement",
    [
        "bar.warp.sync 0xffffffff;",
        "bar.sync 0;",
        # Pairs of lanes meet by themselves.
        "and.b32 %r2, %t, 30; mov.u32 %r3, 3; shl.b32 %r3, %r3, %r2; bar.warp.sync %r3;",
    ],
)
def test_lanes_of_a_warp_are_ordered_by_barriers(statement: str) -> None:
    silent(EXCHANGE.format(statement, "%near"))


@pytest.mark.parametrize(
    "statement",
    [
        "shfl.sync.bfly.b32 %r2, %t, 1, 31, 0xffffffff;",
        "vote.sync.any.pred %p2, %p1, 0xffffffff;",
        "match.any.sync.b32 %r2, %t, 0xffffffff;",
        "redux.sync.add.u32 %r2, %t, 0xffffffff;",
        "elect.sync _|%p2, 0xffffffff;",
        # Only pairs of lanes.
        "and.b32 %r2, %t, 30; mov.u32 %r3, 3; shl.b32 %r3, %r3, %r2; shfl.sync.bfly.b32 %r4, %t, 1, 31, %r3;",
        "shfl.sync.bfly.b32 %r2, %t, 1, 31, 0xffffffff; bar.warp.sync 1;",
    ],
)
def test_collectives_order_no_memory(statement: str) -> None:
    if "bar.warp.sync 1" in statement:
        statement = statement.replace("bar.warp.sync 1;", "setp.eq.u32 %p3, %t, 0; @%p3 bar.warp.sync 1;")
    for seed in range(3):
        found = run(EXCHANGE.format(statement, "%near"), seed=seed)
        assert [(one.code, one.level) for one in found] == [("unordered-collective", "warning")]


@pytest.mark.parametrize(
    "statement",
    [
        "",
        # Each lane meets itself.
        "and.b32 %r2, %t, 31; mov.u32 %r3, 1; shl.b32 %r3, %r3, %r2; bar.warp.sync %r3;",
    ],
)
def test_other_statements_do_not_order_lanes(statement: str) -> None:
    races(EXCHANGE.format(statement, "%near"))


def test_words_of_a_race() -> None:
    (found,) = run(EXCHANGE.format("", "%far"))
    assert (
        render([found])
        == """error[data-race]: unsynchronized: one thread reads shared memory that another writes
  --> k.ptx:25:5
   |
23 |     st.shared.u32 [%own], %t; // with
   |     ------------------------- thread (32,0,0) of block (0,0,0) wrote bytes 128..132 of `tile`
24 |
25 |     ld.shared.u32 %r1, [%far]; // race
   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ thread (0,0,0) of the same block read them
   |
   = note: nothing orders line 23 before line 25: no barrier, and no release/acquire pair
"""
    )


def test_the_seed_is_reported() -> None:
    (found,) = run(EXCHANGE.format("", "%far"), seed=7)
    assert "replay with `--seed 7`" in found.notes


# Reductions, as people write them.

REDUCTION = """
    st.shared.u32 [%own], %t; // with
    {first}
    mov.u32 %r1, 32;
loop:
    setp.lt.u32 %p1, %t, %r1;
    mad.lo.u32 %r2, %r1, 4, %own;
    @!%p1 bra join;
    ld.shared.u32 %r3, [%r2]; // race
    ld.shared.u32 %r4, [%own];
    add.u32 %r3, %r3, %r4;
    st.shared.u32 [%own], %r3; // written
join:
    {each}
    shr.u32 %r1, %r1, 1;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra loop;
"""


def test_a_reduction() -> None:
    silent(REDUCTION.format(first="bar.sync 0;", each="bar.sync 0;"))
    races(REDUCTION.format(first="", each="bar.sync 0;"))
    wrong = REDUCTION.replace("// with", "").replace("// race", "// with").replace("// written", "// race")
    races(wrong.format(first="bar.sync 0;", each=""))


def test_a_reduction_whose_last_steps_rely_on_the_warp() -> None:
    half = REDUCTION.replace("%r1, 32", "%r1, 16")
    silent(half.format(first="bar.sync 0;", each="bar.warp.sync 0xffffffff;"), block=32)
    wrong = half.replace("// with", "").replace("// race", "// with").replace("// written", "// race")
    races(wrong.format(first="bar.sync 0;", each=""), block=32)


def test_a_tile_is_overwritten_only_when_all_have_read_it() -> None:
    body = """
    mov.u32 %r1, 4;
loop:
    st.shared.u32 [%own], %r1; // with
    bar.sync 0;
    ld.shared.u32 %r2, [%far]; // race
    {}
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra loop;
"""
    silent(body.format("bar.sync 0;"))
    races(body.format(""))


# Named barriers.

GROUPS = """
    shr.u32 %r1, %t, 6;
    add.u32 %r1, %r1, 1;
    st.shared.u32 [%own], %t; // with
    bar.sync %r1, 64;
    ld.shared.u32 %r2, [{}]; // race
"""


def test_each_half_of_a_block_has_a_barrier() -> None:
    silent(GROUPS.format("%far"), block=128)
    races("xor.b32 %r3, %own, 256;" + GROUPS.format("%r3"), block=128)


def test_order_by_one_barrier_continues_through_another() -> None:
    chain = """
    setp.lt.u32 %p1, %t, 64;
    setp.ge.u32 %p2, %t, 32;
    st.shared.u32 [%own], %t; // with
    @%p1 bar.sync 1, 64;
    {}
    setp.ge.u32 %p3, %t, 64;
    @%p3 ld.shared.u32 %r1, [%own+-256]; // race
"""
    silent(chain.format("@%p2 bar.sync 2, 64;"), block=96)
    races(chain.format("@%p3 bar.sync 2, 32;").replace("@%p3 bar", "setp.ge.u32 %p4, %t, 64; @%p4 bar"), block=96)


PRODUCER = """
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra consumer;
    {before}
    bar.arrive 1, 64;
    {after}
    bra end;
consumer:
    bar.sync 1, 64;
    ld.shared.u32 %r1, [%far]; // race
end:
"""


def test_arriving_hands_over_what_was_done_before() -> None:
    silent(PRODUCER.format(before="st.shared.u32 [%own], %t;", after=""))
    silent(PRODUCER.format(before="st.shared.u32 [%own], %t;", after="ld.shared.u32 %r2, [%own];"))
    races(PRODUCER.format(before="", after="st.shared.u32 [%own], %t; // with"))


def test_who_arrives_learns_nothing() -> None:
    body = """
    setp.ge.u32 %p1, %t, 32;
    @%p1 bra consumer;
    bar.{} 1, 64;
    ld.shared.u32 %r1, [%far]; // with
    bra end;
consumer:
    st.shared.u32 [%own], %t; // race
    bar.sync 1, 64;
end:
"""
    silent(body.format("sync"))
    races(body.format("arrive"))


def test_that_a_thread_has_exited_orders_nothing() -> None:
    races(
        """
    st.shared.u32 [%own], %t; // with
    setp.lt.u32 %p1, %t, 32;
    @%p1 exit;
    bar.sync 0;
    ld.shared.u32 %r1, [%far]; // race
"""
    )


# Sizes.


def test_neighbouring_bytes_do_not_conflict() -> None:
    silent("add.u32 %r1, %r15, %t; st.shared.u8 [%r1], %t; ld.shared.u8 %h1, [%r1];")
    races(
        """
    mad.lo.u32 %r1, %t, 2, %r15;
    st.shared.u16 [%r1], 7; // with
    add.u32 %r2, %r1, 3;
    st.shared.u8 [%r2], %t; // race
"""
    )


def test_vectors_that_overlap() -> None:
    body = "mad.lo.u32 %r1, %t, {}, %r15;\n    st.shared.v2.u32 [%r1], {{%t, %b}}; // both"
    silent(body.format(8))
    races("shr.u32 %r2, %t, 1; mad.lo.u32 %r1, %r2, 8, %r15;\n    st.shared.v2.u32 [%r1], {%t, %b}; // both")


def test_words_written_whole_and_in_parts() -> None:
    races(
        """
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [tile], 5; // with
    setp.eq.u32 %p2, %t, 33;
    @%p2 st.shared.u8 [tile+3], 1; // race
"""
    )


def test_writing_what_is_there_already_does_no_harm() -> None:
    silent("st.shared.u32 [tile], 5;")
    races("st.shared.u32 [tile], %t; // both")


# Atomic operations.


def test_atomic_operations_do_not_race() -> None:
    start = "setp.eq.u32 %p1, %t, 0;\n    @%p1 st.shared.u32 [tile], 9; // with\n    {}\n"
    count = start + "    red.shared.add.u32 [tile], 1; // race\n"
    silent(count.format("bar.sync 0;"))
    races(count.format(""))
    silent(count.format("bar.sync 0;") + "bar.sync 0; ld.shared.u32 %r1, [tile];")


def test_a_histogram_is_read_before_it_is_complete() -> None:
    body = """
    st.shared.u32 [%own], 0;
    bar.sync 0;
    mul.lo.u32 %r1, %t, 7;
    and.b32 %r1, %r1, 15;
    mad.lo.u32 %r1, %r1, 4, %r15;
    atom.shared.add.u32 %r2, [%r1], 1; // with
    {}
    ld.shared.u32 %r3, [%own]; // race
"""
    silent(body.format("bar.sync 0;"))
    races(body.format(""))


COUNTED = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [tile], 0;
    bar.sync 0;
    atom.shared.add.u32 %r1, [tile], 1; // with
    setp.eq.u32 %p2, %r1, {};
    @%p2 {} // race
"""


@pytest.mark.parametrize("access", ["ld.shared.u32 %r2, [tile];", "st.shared.u32 [tile], 99;"])
def test_what_an_atomic_operation_finds_is_before_what_its_thread_does_next(access: str) -> None:
    silent(COUNTED.format(63, access))
    races(COUNTED.format(0, access))


def test_what_an_atomic_operation_finds_is_before_what_a_barrier_orders_after_it() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 atom.global.add.u32 %r1, [%flag], 1; // with
    @%p1 st.shared.u32 [tile], %r1;
    bar.sync 0;
    ld.shared.u32 %r2, [tile];
    setp.eq.u32 %p2, %r2, {};
    setp.eq.u32 %p3, %t, 40;
    and.pred %p2, %p2, %p3;
    @%p2 st.global.u32 [%flag], 99; // race
"""
    silent(body.format(3), grid=4)
    races(body.format(3).replace("atom.global", "atom.cta.global"), grid=4)


def test_what_an_atomic_operation_of_another_size_finds_is_not_before() -> None:
    races(
        """
    setp.eq.u32 %p1, %t, 0;
    @%p1 atom.global.add.u32 %r1, [%flag], 1; // with
    bar.sync 0;
    @%p1 atom.global.add.u64 %rd1, [%flag], 1; // race
""",
        grid=2,
    )


def test_atomic_operations_of_different_sizes() -> None:
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u64 [tile], 0;
    bar.sync 0;
    setp.lt.u32 %p2, %t, 32;
    @%p2 red.shared.add.u64 [tile], 1; // with
    @!%p2 red.shared.add.u{} [tile], 1; // race
"""
    silent(body.format(64))
    found = races(body.format(32))
    assert found.notes[0] == "both are strong, but of different sizes: such accesses race as weak ones do"


def test_a_cas_on_the_word_around_a_byte_is_a_warning() -> None:
    body = """
    setp.lt.u32 %p1, %t, 32;
    @%p1 ld.relaxed.gpu.global.u8 %h1, [%out+1]; // with
    @!%p1 atom.relaxed.gpu.global.cas.b32 %r1, [%out], 0, 256; // race
"""
    races(body, level="warning")
    races(body.replace("atom.relaxed.gpu.global.cas.b32 %r1, [%out], 0, 256", "red.global.add.u32 [%out], 1"))


def test_a_read_that_only_helps_a_cas_is_a_warning() -> None:
    body = """
    ld{}.global.u32 %r1, [%out]; // with
again:
    add.u32 %r2, %r1, 1;
    atom.global.cas.b32 %r3, [%out], %r1, %r2; // race
    setp.ne.u32 %p1, %r1, %r3;
    mov.u32 %r1, %r3;
    @%p1 bra again;
"""
    silent(body.format(".relaxed.gpu"), grid=2)
    races(body.format(""), level="warning", grid=2)


def test_lanes_that_read_what_one_of_them_writes_next_are_a_warning() -> None:
    body = """
    ld.global.u32 %r1, [%out]; // with
    {}
    add.u32 %r1, %r1, 1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.global.u32 [%out], %r1; // race
"""
    silent(body.format("bar.warp.sync 0xffffffff;"), block=32)
    races(body.format(""), level="warning", block=32)
    silent(body.format("bar.sync 0;"))
    races(body.format("").replace("%t, 0", "%t, 32"))


# Kernels and arguments.


def test_launches_are_ordered() -> None:
    body = "mad.wide.u32 %rd1, %t, 4, %out;\n st.global.u32 [%rd1], %t;\n xor.b32 %r1, %t, 1;\n"
    body += "mad.wide.u32 %rd2, %r1, 4, %flag;\n ld.global.u32 %r2, [%rd2];\n ret;\n}\n"
    kernel = ptxlab.parse(HEAD + body)["k"]
    first, second = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    assert kernel.launch((1,), (64,), [first, second], device="cpu").diagnostics == []
    assert kernel.launch((1,), (64,), [second, first], device="cpu").diagnostics == []


def test_arguments_that_are_one_array() -> None:
    body = """
    mad.wide.u32 %rd1, %t, 4, %out;
    st.global.u32 [%rd1], %t; // with
    xor.b32 %r1, %t, 32;
    mad.wide.u32 %rd2, %r1, 4, %flag;
    ld.global.u32 %r2, [%rd2]; // race
"""
    silent(body)
    found = races(body, same=True)
    assert "of argument 0 (`out`)" in found.labels[1].text


def test_variables_of_the_module() -> None:
    body = "setp.eq.u32 %p1, %t, 0;\n @%p1 st.global.u32 [word], %t; // with\n {}\n ld.global.u32 %r1, [word]; // race"
    silent(body.replace("%t; // with", "7; // with").format("bar.sync 0;"))
    races(body.replace("%t; // with", "7; // with").format(""))


def test_loads_that_may_not_see_what_the_kernel_writes() -> None:
    body = """
    mad.wide.u32 %rd1, %t, 4, %out;
    st.global.u32 [%rd1], 7; // with
    bar.sync 0;
    ld.global{}.u32 %r1, [%out]; // race
"""
    silent(body.format(""))
    silent(body.format(".nc").replace("[%out];", "[%flag];"))
    found = races(body.format(".nc"))
    assert found.message == "a load through the non-coherent cache of memory that the kernel writes"


def test_pointers_that_come_from_memory_are_watched() -> None:
    body = """
    st.global.u64 [%flag], %out;
    ld.global.u64 %rd1, [%flag];
    st.global.u32 [%rd1], %t; // both
"""
    races(body)

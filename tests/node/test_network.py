"""Puts, signals and atomic operations over a network: what a fence, a quiet and a signal order, and what is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Diagnostic

PUT, SET, ADD, SIGNAL = 0, 1 << 8 | 8 << 12, 2 << 8 | 8 << 12, 8 << 12
BLOCKING = 1 << 16
HEADER = """.version 8.0
.target sm_90
.address_size 64
.extern .func ptxlab_network_put(
    .param .b64 to, .param .b64 from, .param .b64 size, .param .b64 signal, .param .b64 value, .param .b32 how);
.extern .func ptxlab_network_get(.param .b64 to, .param .b64 from, .param .b64 size, .param .b32 how);
.extern .func ptxlab_network_atomic(.param .b64 at, .param .b64 value, .param .b32 how);
.extern .func (.param .b64 found) ptxlab_network_fetch(
    .param .b64 at, .param .b64 value, .param .b64 compare, .param .b32 how);
.extern .func ptxlab_network_fence();
.extern .func ptxlab_network_quiet();
"""
ENTRY = """.visible .entry {name}(.param .u64 x, .param .u64 data, .param .u64 flag, .param .u64 other)
{{
    .reg .pred %p;
    .reg .b32 %r, %t;
    .reg .b64 %x, %data, %more, %flag, %other, %seen, %old;
    ld.param.u64 %x, [x];
    ld.param.u64 %data, [data];
    ld.param.u64 %flag, [flag];
    ld.param.u64 %other, [other];
    add.u64 %more, %data, 4;
    mov.u32 %t, %tid.x;
    setp.ne.u32 %p, %t, 0;
{lines}
    ret;
}}
"""
FENCE = "call.uni ptxlab_network_fence;\nfence.sc.sys;"
QUIET = "call.uni ptxlab_network_quiet;\nfence.sc.sys;"
READ = "ld.global.u32 %r, [%data];\nst.global.u32 [%x], %r;"


def put(peer: int, to: str = "%data", signal: str = "0", value: int = 0, how: int = PUT) -> str:
    """A put of the word at `%x`."""
    return f"call.uni ptxlab_network_put, ({to}, %x, 4, {signal}, {value}, {peer | how});"


def atomic(peer: int, at: str = "%flag", value: int = 1, how: int = SET) -> str:
    return f"call.uni ptxlab_network_atomic, ({at}, {value}, {peer | how});"


def wait(at: str = "%flag", value: int = 1) -> str:
    """What NVSHMEM's waits do."""
    return f"""again{at[1:]}{value}:
    ld.volatile.global.u64 %seen, [{at}];
    setp.lt.u64 %p, %seen, {value};
    @%p bra again{at[1:]}{value};
    fence.sc.sys;"""


def run(*programs: Sequence[str], seeds: Sequence[int] = range(3), threads: int = 1) -> list[Diagnostic]:
    """Run a program on each rank; `data`, `flag` and `other` are of rank 1, and `x` its own."""
    texts = [ENTRY.format(name=f"k{rank}", lines="\n".join(lines)) for rank, lines in enumerate(programs)]
    module = ptxlab.parse(HEADER + "\n".join(texts), "network.ptx")
    found: list[Diagnostic] = []
    for seed in seeds:
        node = ptxlab.node(len(programs))
        shared = [node[1].zeros(4, np.uint64, name=name) for name in ("data", "flag", "other")]
        for rank in range(len(programs)):
            x = node[rank].array(np.full(4, 7 + rank, np.uint32), name="x")
            node[rank].launch(module[f"k{rank}"], 1, threads, [x, *shared])
        new = node.synchronize(seed=seed, on_error="collect", timeout=60).diagnostics
        assert not found or bool(new) == bool(found), "not on every seed"
        found += new
    return found


def codes(*programs: Sequence[str], threads: int = 1) -> set[str]:
    return {one.code for one in run(*programs, threads=threads)}


@pytest.mark.parametrize(
    "right",
    [
        [put(1), FENCE, atomic(1)],
        [put(1), QUIET, atomic(1)],
        [put(1, signal="%flag", value=1, how=SET)],
        [put(1, signal="%flag", value=1, how=SET | BLOCKING)],
        [put(1), FENCE, put(1, "%more", "%flag", 1, SET)],
        [put(1), FENCE, FENCE, atomic(1, how=ADD)],
        [put(1), FENCE, "call.uni (%old), ptxlab_network_fetch, (%flag, 1, 0, 8449);".replace("8449", str(ADD | 1))],
    ],
)
def test_a_put_is_delivered_before_a_later_signal(right: list[str]) -> None:
    assert codes(right, [wait(), READ]) == set()


@pytest.mark.parametrize(
    "wrong",
    [
        [put(1), atomic(1)],
        [put(1, how=BLOCKING), atomic(1)],  # its source may be written again, that is all
        [put(1), "fence.sc.sys;", atomic(1)],  # not a fence of the network
        [put(1), put(1, "%more", "%flag", 1, SET)],  # a signal is of its own put
        [FENCE, put(1), atomic(1)],
        [atomic(1), FENCE, put(1)],
    ],
)
def test_a_put_that_a_signal_may_overtake(wrong: list[str]) -> None:
    assert codes(wrong, [wait(), READ]) == {"data-race"}


def test_the_message_names_the_put_and_the_read() -> None:
    found = run([put(1), atomic(1)], [wait(), READ], seeds=[0])[0]
    assert found.message == "unsynchronized: rank 1 reads global memory that rank 0 writes"
    texts = [label.text for label in found.labels]
    assert "thread (0,0,0) of block (0,0,0) of rank 0 started a put that writes them" in texts
    assert found.notes[0].startswith("a put over the network is delivered at any time, in any order")
    assert "nvshmem_fence()" in found.helps[0].text


def test_a_fence_is_of_one_peer_and_a_quiet_of_all() -> None:
    # Rank 0 writes to rank 1, and signals rank 2, which signals rank 1.
    relay = [wait("%other"), "add.u64 %flag, %flag, 0;", atomic(1)]
    for between, expected in [(FENCE, {"data-race"}), (QUIET, set())]:
        assert codes([put(1), between, atomic(2, "%other")], [wait(), READ], relay) == expected


def test_the_source_of_a_put() -> None:
    write = "st.global.u32 [%x], 5;"
    assert codes([put(1), write], []) == {"data-race"}
    assert codes([put(1, how=BLOCKING), write], []) == set()
    assert codes([put(1), QUIET, write], []) == set()
    assert codes([put(1), FENCE, write], []) == {"data-race"}
    # A thread that has seen the signal of the put knows that its source was read.
    answer = [wait(), "fence.sc.sys;", atomic(0, "%other")]
    assert codes([put(1, signal="%flag", value=1, how=SET), wait("%other"), write], answer) == set()


def test_a_get_is_complete_after_a_quiet() -> None:
    get = "call.uni ptxlab_network_get, (%x, %data, 4, 1);"
    read = "ld.global.u32 %r, [%x];"
    assert codes([get, QUIET, read], []) == set()
    assert codes([get, FENCE, read], []) == {"data-race"}


def test_a_fence_of_one_thread_is_of_all_it_knows() -> None:
    one = "@%p bra done;\n{}\ndone:"
    both = [put(1), "bar.sync 0;", one.format("\n".join([FENCE, atomic(1)]))]
    assert codes(both, [wait(), READ], threads=1) == set()
    # The thread that signals comes after the thread that fences, and that after those that put.
    second = "setp.ne.u32 %p, %t, 33;\n@%p bra end;\n{}\nend:"
    handed = [put(1), "bar.sync 0;", one.format(FENCE), "bar.sync 0;", second.format(atomic(1))]
    assert codes(handed, [wait(), READ], threads=64) == {"data-race"}  # 64 puts to one word
    apart = [
        "mul.wide.u32 %seen, %t, 4;", "setp.ge.u32 %p, %t, 4;", "@%p bra past;", "add.u64 %more, %data, %seen;",
        put(1, "%more"), "past:", "bar.sync 0;", "setp.ne.u32 %p, %t, 0;", one.format(FENCE), "bar.sync 0;",
        second.format(atomic(1)),
    ]  # fmt: skip
    assert codes(apart, ["@%p bra none;", wait(), READ, "none:"], threads=64) == set()
    without = [line for line in apart if "ptxlab_network_fence" not in line]
    assert codes(without, ["@%p bra none;", wait(), READ, "none:"], threads=64) == {"data-race"}


def test_two_signals_may_come_in_any_order() -> None:
    """The last of two values may be the first: a wait for the second then hangs on some seeds; a fence orders them."""
    ended = [len(run([atomic(1, value=1), atomic(1, value=2)], [wait(value=2)], seeds=[seed])) for seed in range(12)]
    assert 0 in ended
    assert 1 in ended
    assert codes([atomic(1, value=1), FENCE, atomic(1, value=2)], [wait(value=2)]) == set()


def test_without_detectors_the_values_are_right() -> None:
    text = ENTRY.format(name="k", lines="\n".join([put(1), FENCE, atomic(1)]))
    reader = ENTRY.format(name="r", lines="\n".join([wait(), READ]))
    module = ptxlab.parse(HEADER + text + reader, "network.ptx")
    for seed in range(4):
        node = ptxlab.node(2)
        x = [node[rank].array(np.full(4, 7 + rank, np.uint32)) for rank in range(2)]
        shared = [node[1].zeros(4, np.uint64) for _ in range(3)]
        node[0].launch(module["k"], 1, 1, [x[0], *shared])
        node[1].launch(module["r"], 1, 1, [x[1], *shared])
        node.synchronize(seed=seed, detectors=False)
        assert x[1].numpy()[0] == 7


def test_there_is_no_network_on_one_gpu() -> None:
    module = ptxlab.parse(HEADER + ENTRY.format(name="k", lines=put(0)), "network.ptx")
    x = np.zeros(4, np.uint64)
    result = module["k"].launch(grid=1, block=1, args=[x, x.copy(), x.copy(), x.copy()], on_error="collect")
    assert [one.code for one in result.diagnostics] == ["bad-call"]


def launched(*programs: tuple[int, Sequence[str]], words: int = 4) -> set[str]:
    """What is found of kernels, each of a rank: those of one rank run in order, others wait by an event."""
    texts = [ENTRY.format(name=f"k{number}", lines="\n".join(lines)) for number, (_, lines) in enumerate(programs)]
    module = ptxlab.parse(HEADER + "\n".join(texts), "network.ptx")
    found: set[str] = set()
    for seed in range(3):
        node = ptxlab.node(2)
        shared = [node[1].zeros(words, np.uint64, name=name) for name in ("data", "flag", "other")]
        rank = programs[0][0]
        for number, (following, _) in enumerate(programs):
            if following != rank:
                node[following].wait(node[rank].record())
            rank = following
            x = node[rank].array(np.full(4, 7, np.uint32), name="x")
            node[rank].launch(module[f"k{number}"], 1, 1, [x, *shared])
        found |= {one.code for one in node.synchronize(seed=seed, on_error="collect", timeout=60).diagnostics}
    return found


def test_the_end_of_a_kernel_completes_nothing_that_it_has_sent() -> None:
    sent = [put(1, how=BLOCKING)]
    assert launched((0, sent), (1, [READ])) == {"data-race"}
    assert launched((0, [*sent, QUIET]), (1, [READ])) == set()
    assert launched((0, sent), (0, [QUIET]), (1, [READ])) == set()
    assert launched((0, [put(1, signal="%flag", value=1, how=SET)]), (1, [wait(), READ])) == set()
    assert launched((0, sent), (0, ["st.global.u32 [%x], 3;"])) == set()  # its source was read at once


@pytest.mark.parametrize("apart", [1, 7, 8, 9, 16])
def test_a_signal_hands_over_no_earlier_put_with_another(apart: int) -> None:
    more = []
    for number in range(apart):
        more += ["add.u64 %more, %more, 8;", put(1, "%more", "%other", number + 1, SET)]
    last = put(1, "%more", "%flag", 1, SET)
    more += ["add.u64 %more, %more, 8;"]
    words = apart + 4
    first = put(1, signal="%other", value=1, how=SET)
    assert launched_together([first, *more, last], [wait(), READ], words) == {"data-race"}
    assert launched_together([first, *more, FENCE, last], [wait(), READ], words) == set()
    assert launched_together([first, *more, QUIET, last], [wait(), READ], words) == set()


def launched_together(sender: Sequence[str], receiver: Sequence[str], words: int) -> set[str]:
    """What is found of two kernels that run at the same time, `data` being of so many words."""
    texts = [ENTRY.format(name=f"k{rank}", lines="\n".join(lines)) for rank, lines in enumerate((sender, receiver))]
    module = ptxlab.parse(HEADER + "\n".join(texts), "network.ptx")
    node = ptxlab.node(2)
    shared = [node[1].zeros(words, np.uint64, name=name) for name in ("data", "flag", "other")]
    for rank in range(2):
        x = node[rank].array(np.full(4, 7, np.uint32), name="x")
        node[rank].launch(module[f"k{rank}"], 1, 1, [x, *shared])
    return {one.code for one in node.synchronize(on_error="collect", timeout=60).diagnostics}

"""Reported bugs of kernels over several GPUs, rebuilt from their descriptions: each is found, its fix is silent.

The kernel sums an array over all ranks, as one-shot all-reduces do. Ranks synchronize by words that one sets to 1 and
the other, once it has seen that, to 0 again: a pad of signals on each rank, with as many words for each channel as
there are ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.author import f32, kernel, pointer, ptx, u8, u32, u64
from ptxlab.kernels.collectives.kernel import of_rank
from ptxlab.node import Node, Stream

COUNT = 64


def put_signal(address: Any, order: str) -> None:
    with ptx.loop():
        found = ptx.atom[order].sys.global_.cas.b32(address, 0, 1)
        ptx.repeat_when(found.view(u32) != 0)


def wait_signal(address: Any, order: str) -> None:
    with ptx.loop():
        found = ptx.atom[order].sys.global_.cas.b32(address, 1, 0)
        ptx.repeat_when(found.view(u32) != 1)


def synchronize(pads: Any, rank: Any, channel: Any, ranks: int, is_ordered: bool) -> None:
    with ptx.when(ptx.tid.x < ranks):
        first = channel * ranks
        put_signal(of_rank(pads, ptx.tid.x, u32) + (first + rank), "release" if is_ordered else "relaxed")
        wait_signal(of_rank(pads, rank, u32) + (first + ptx.tid.x), "acquire" if is_ordered else "relaxed")


@kernel(target="sm_70")
def sum_ranks(
    inputs: pointer[u64], result: pointer[f32], pads: pointer[u64], rank: u32, channel: u32,
    *, RANKS: int = 2, START: bool = True, END: bool = True, SYNCHRONIZES: bool = True,  # noqa: N803
):  # fmt: skip
    if SYNCHRONIZES:
        synchronize(pads, rank, channel, RANKS, START)
    ptx.bar.sync(0)
    total = f32(0.0)
    for other in range(RANKS):
        total += of_rank(inputs, other)[ptx.tid.x]
    result[ptx.tid.x] = total
    ptx.bar.sync(0)
    if SYNCHRONIZES:
        synchronize(pads, rank, channel, RANKS, END)


class Ranks:
    """Some ranks of a node, with an input, a result and a pad of signals on each."""

    def __init__(self, node: Node, ranks: list[int], pads: list[Any] | None = None) -> None:
        self.node, self.ranks = node, ranks
        self.x = [node[rank].zeros(COUNT, name="x") for rank in ranks]
        self.result = [node[rank].zeros(COUNT, name="result") for rank in ranks]
        self.pads = pads or [node[rank].zeros(64, np.uint32, name="pad") for rank in ranks]

    def give(self, value: int, streams: list[Stream]) -> None:
        """Write the inputs, by copies on the streams of the ranks."""
        for number, stream in enumerate(streams):
            given = self.node[self.ranks[number]].array(np.full(COUNT, value, np.float32))
            stream.copy(self.x[number], given)

    def sum(self, streams: list[Stream], channel: int = 0, **how: Any) -> None:
        chosen = sum_ranks.specialize(RANKS=len(self.ranks), **how)
        for number, stream in enumerate(streams):
            tables = ptxlab.PointerArray(self.x), self.result[number], ptxlab.PointerArray(self.pads)
            stream.launch(chosen, 1, COUNT, [*tables, number, channel])


def found(node: Node) -> set[str]:
    """The codes of what is found, under the first of a few schedules that finds something."""
    return {one.code for one in node.synchronize(seeds=range(1, 7), on_error="collect").diagnostics}


def defaults(node: Node) -> list[Stream]:
    return [device.default for device in node]


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_relaxed_start_barrier_reads_what_was_not_written_yet(is_fixed: bool) -> None:
    """vllm#57059: the barrier before the first read of peers orders nothing."""
    node = ptxlab.node(2)
    both = Ranks(node, [0, 1])
    both.give(1, defaults(node))
    both.sum(defaults(node), START=is_fixed)
    assert found(node) == (set() if is_fixed else {"data-race"})


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_relaxed_end_barrier_lets_inputs_be_written_while_they_are_read(is_fixed: bool) -> None:
    """vllm#8404: flags without a fence, so that the next use of a buffer is not ordered after this one."""
    node = ptxlab.node(2)
    both = Ranks(node, [0, 1])
    both.sum(defaults(node), END=is_fixed)
    both.give(1, defaults(node))
    assert found(node) == (set() if is_fixed else {"data-race"})


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_barrier_that_does_nothing(is_fixed: bool) -> None:
    """pytorch#191858: a barrier that is silently left out."""
    node = ptxlab.node(2)
    both = Ranks(node, [0, 1])
    both.give(1, defaults(node))
    both.sum(defaults(node), SYNCHRONIZES=is_fixed)
    assert found(node) == (set() if is_fixed else {"data-race"})


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_pad_that_is_zeroed_while_peers_signal(is_fixed: bool) -> None:
    """pytorch#196546: each rank zeroes its own pad, and nothing orders that with the signals of its peers."""
    node = ptxlab.node(2)
    both = Ranks(node, [0, 1])
    for device, pad in zip(node, both.pads, strict=True):
        device.fill(pad)
    if is_fixed:
        events = [device.record() for device in node]
        for device in node:
            for event in events:
                device.wait(event)
    both.sum(defaults(node))
    assert found(node) - {"hang"} == (set() if is_fixed else {"data-race"})


@pytest.mark.parametrize("is_fixed", [False, True])
def test_two_streams_that_share_signals(is_fixed: bool) -> None:
    """pytorch#189228: sums on two streams synchronize by the same signals, and take those of each other."""
    node = ptxlab.node(2)
    first = Ranks(node, [0, 1])
    second = Ranks(node, [0, 1], first.pads)
    others = [device.stream() for device in node]
    first.give(1, defaults(node))
    second.give(2, others)
    first.sum(defaults(node), channel=0)
    second.sum(others, channel=int(is_fixed))
    assert bool(found(node) & {"data-race", "hang"}) != is_fixed


@pytest.mark.parametrize("is_fixed", [False, True])
def test_signals_of_two_groups_collide(is_fixed: bool) -> None:
    """pytorch#192581: a signal of one group ends a wait in another, since both number their ranks from 0."""
    node = ptxlab.node(3)
    pads = [device.zeros(64, np.uint32, name="pad") for device in node]
    near, far = Ranks(node, [0, 1], pads[:2]), Ranks(node, [0, 2], [pads[0], pads[2]])
    streams = [[node[0].default, node[1].default], [node[0].stream(), node[2].default]]
    near.give(1, streams[0])
    far.give(2, streams[1])
    near.sum(streams[0], channel=0)
    far.sum(streams[1], channel=int(is_fixed))
    assert bool(found(node) & {"data-race", "hang"}) != is_fixed


@kernel(target="sm_70")
def await_bytes(data: pointer[u32], flags: pointer[u8], result: pointer[u32], rank: u32, *, WIDE: bool = False):  # noqa: N803
    """Rank 0 sends a word; rank 1 waits for its flag: a byte, or two of them in one read."""
    with ptx.when(rank == 0):
        data[0] = u32(42)
        ptx.fence.acq_rel.sys()
        ptx.st.relaxed.sys.global_.u8(flags + 1, u32(1))
    with ptx.otherwise():
        seen = u32(0)
        with ptx.loop():
            if WIDE:
                ptx.ld.relaxed.sys.global_.u16(flags, out=seen)
            else:
                ptx.ld.relaxed.sys.global_.u8(flags + 1, out=seen)
            ptx.repeat_when(seen == 0)
        ptx.fence.acq_rel.sys()
        result[0] = data[0]


@pytest.mark.parametrize("is_fixed", [False, True])
def test_flags_that_are_bytes_of_one_word(is_fixed: bool) -> None:
    """vllm#2760: each rank writes a byte of a signal that others read whole: strong, but not morally strong."""
    node = ptxlab.node(2)
    data, result = (node[1].zeros(1, np.uint32, name=name) for name in ("data", "result"))
    flags = node[1].zeros(8, np.uint8, name="flags")
    for device in node:
        device.launch(await_bytes.specialize(WIDE=not is_fixed), 1, 1, [data, flags, result, device.rank])
    assert found(node) == (set() if is_fixed else {"data-race"})


@kernel(target="sm_70")
def sum_in_two_stages(
    inputs: pointer[u64], buffers: pointer[u64], result: pointer[f32], pads: pointer[u64], rank: u32,
    *, RANKS: int = 2, IS_ORDERED: bool = True,  # noqa: N803
):  # fmt: skip
    """Each rank sums its part, then reads the parts of the others."""
    at = ptx.tid.x
    synchronize(pads, rank, 0, RANKS, True)
    ptx.bar.sync(0)
    total = f32(0.0)
    for other in range(RANKS):
        total += of_rank(inputs, other)[rank * (COUNT // RANKS) + at]
    of_rank(buffers, rank)[at] = total
    ptx.bar.sync(0)
    synchronize(pads, rank, 0, RANKS, IS_ORDERED)
    ptx.bar.sync(0)
    for other in range(RANKS):
        result[at + other * (COUNT // RANKS)] = of_rank(buffers, other)[at]
    ptx.bar.sync(0)
    synchronize(pads, rank, 0, RANKS, True)


@pytest.mark.parametrize("is_fixed", [False, True])
def test_two_stages_without_a_release_between_them(is_fixed: bool) -> None:
    """vllm#2760: parts that other ranks have summed are read without a release and an acquire."""
    node = ptxlab.node(2)
    both = Ranks(node, [0, 1])
    buffers = [device.zeros(COUNT // 2, name="buffer") for device in node]
    both.give(1, defaults(node))
    for device in node:
        tables = (
            ptxlab.PointerArray(both.x),
            ptxlab.PointerArray(buffers),
            both.result[device.rank],
            ptxlab.PointerArray(both.pads),
        )
        device.launch(sum_in_two_stages.specialize(IS_ORDERED=is_fixed), 1, COUNT // 2, [*tables, device.rank])
    assert found(node) == (set() if is_fixed else {"data-race"})


@kernel(target="sm_90")
def arrive_by_multicast(flags: pointer[u32], own: pointer[u32], *, RANKS: int = 2):  # noqa: N803
    """Add one to the flag of each rank, and wait until all ranks have."""
    ptx.multimem.red.release.sys.global_.add.u32(flags, u32(1))
    seen = u32(0)
    with ptx.loop():
        ptx.ld.acquire.sys.global_.u32(own, out=seen)
        ptx.repeat_when(seen < RANKS)


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_flag_that_is_made_while_a_peer_adds_to_it(is_fixed: bool) -> None:
    """cutlass#3143: ranks make new flags and launch at once, so that what a fast rank adds on a slow one is lost."""
    node = ptxlab.node(2)
    flags = [device.array(np.full(1, 7, np.uint32), name="flag") for device in node]
    for device in node:
        device.fill(flags[device.rank])
    if is_fixed:
        events = [device.record() for device in node]
        for device in node:
            for event in events:
                device.wait(event)
    for device in node:
        device.launch(arrive_by_multicast, 1, 1, [ptxlab.Multicast(flags), flags[device.rank]])
    codes = found(node)
    assert codes - {"hang"} == (set() if is_fixed else {"data-race"})


@kernel(target="sm_70")
def await_flag(flag: pointer[u32]):
    seen = u32(0)
    with ptx.loop():
        ptx.ld.acquire.sys.global_.u32(flag, out=seen)
        ptx.repeat_when(seen == 0)


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_copy_engine_that_signals_before_the_flag_is_ready(is_fixed: bool) -> None:
    """nccl#2290: a copy that sets the flag of a peer may run before the peer has set it up, which waits forever."""
    node = ptxlab.node(2)
    flag = node[1].zeros(1, np.uint32, name="flag")
    one = node[0].array(np.ones(1, np.uint32), name="one")
    node[1].fill(flag)
    if is_fixed:
        node[0].wait(node[1].record())
    node[0].copy(flag, one)
    if is_fixed:
        node[1].wait(node[0].record())  # a copy is not strong: a stream waits for it, as for a value in memory
    node[1].launch(await_flag, 1, 1, [flag])
    assert bool(found(node) & {"data-race", "hang"}) != is_fixed


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_rank_that_leaves_out_a_barrier(is_fixed: bool) -> None:
    """DeepEP#570: one rank of a group does not come to a barrier; the others print a timeout, and not which one."""
    node = ptxlab.node(3)
    every = Ranks(node, [0, 1, 2])
    streams = defaults(node)
    chosen = sum_ranks.specialize(RANKS=3)
    for number in range(3 if is_fixed else 2):
        tables = ptxlab.PointerArray(every.x), every.result[number], ptxlab.PointerArray(every.pads)
        streams[number].launch(chosen, 1, COUNT, [*tables, number, 0])
    diagnostics = node.synchronize(on_error="collect", seed=1).diagnostics
    assert [one.code for one in diagnostics] == ([] if is_fixed else ["hang"])
    if not is_fixed:
        assert "rank 0 and rank 1 wait" in diagnostics[0].message
        assert any("bytes 8..12 of `pad`" in note for note in diagnostics[0].notes)


@pytest.mark.parametrize("is_fixed", [False, True])
def test_a_fill_on_another_stream_than_the_kernel(is_fixed: bool) -> None:
    """DeepEP#600: the result is filled on the stream of the computation after the other stream has waited for it."""
    node = ptxlab.node(2)
    both = Ranks(node, [0, 1])
    others = [device.stream() for device in node]
    if not is_fixed:
        for device, other in zip(node, others, strict=True):
            other.wait(device.record())
    for device in node:
        device.fill(both.result[device.rank], 255)
    if is_fixed:
        for device, other in zip(node, others, strict=True):
            other.wait(device.record())
    both.sum(others)
    assert found(node) == (set() if is_fixed else {"data-race"})

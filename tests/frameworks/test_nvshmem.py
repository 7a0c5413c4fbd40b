"""NVSHMEM on the GPUs of a node: the state that its device functions read, and its own headers where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import ir, nvshmem
from ptxlab.frameworks.packages import MissingPackageError

SOURCE = Path(__file__).with_suffix("").with_name("nvshmem.cu")
# The offsets are those of NVSHMEM 3.8; each PE writes its number to the next one's array.
STORE = """.version 8.0
.target sm_90
.address_size 64
.const .align 8 .b8 nvshmemi_device_state_d[128];
.visible .global .align 8 .u64 ptxlab_nvshmem_fields[12] = {0, 4, 8, 12, 16, 32, 40, 48, 56, 96, 104, 112};
.visible .entry store(.param .u64 x)
{
    .reg .b64 %x, %base, %peers;
    .reg .b32 %me, %count, %next;
    ld.param.u64 %x, [x];
    ld.const.u32 %me, [nvshmemi_device_state_d+4];
    ld.const.u32 %count, [nvshmemi_device_state_d+8];
    ld.const.u64 %base, [nvshmemi_device_state_d+40];
    ld.const.u64 %peers, [nvshmemi_device_state_d+56];
    sub.u64 %x, %x, %base;
    add.u32 %next, %me, 1;
    rem.u32 %next, %next, %count;
    mad.wide.u32 %peers, %next, 8, %peers;
    ld.global.u64 %base, [%peers];
    add.u64 %x, %x, %base;
    st.global.u32 [%x], %me;
    ret;
}
"""


def test_each_pe_finds_the_memory_of_the_others() -> None:
    module = ptxlab.parse(STORE, "store.ptx")
    node = ptxlab.node(3)
    node[1].zeros(100)
    job = nvshmem.Job(node, module)
    x = job.zeros(4, np.uint32)
    for device in node:
        device.launch(module["store"], 1, 1, [x[device.rank]])
    assert [int(one.numpy()[0]) for one in x] == [2, 0, 1]


def test_what_was_not_compiled_for_it_is_refused() -> None:
    other = ptxlab.parse(STORE.replace("ptxlab_nvshmem_fields", "other"), "other.ptx")
    with pytest.raises(ValueError, match=r"compile it with `ptxlab\.nvshmem\.cuda`"):
        nvshmem.Job(ptxlab.node(2), other)
    with pytest.raises(ValueError, match="no kernel of the job uses teams"):
        nvshmem.Job(ptxlab.node(2), ptxlab.parse(STORE, "store.ptx")).team(0, 1, 2)


@pytest.fixture(scope="module")
def module() -> ir.Module:
    try:
        nvshmem.headers()
    except MissingPackageError:
        pytest.skip("needs NVSHMEM's headers: pip install nvidia-nvshmem-cu13")
    return nvshmem.cuda(SOURCE)


def run(module: ir.Module, name: str, seed: int, *more: int, machines: int = 1) -> tuple[list[int], list[str]]:
    """The first element of each PE's result, and what is found."""
    node = ptxlab.node(4)
    job = nvshmem.Job(node, module, machines=machines)
    data: dict[str, Any] = {
        "data": job.zeros(64, np.int32, name="data"),
        "source": [device.array(np.arange(64, dtype=np.int32) + 100 * device.rank, name="source") for device in node],
        "signal": job.zeros(1, np.uint64, name="signal"),
        "counter": job.zeros(1, np.int32, name="counter"),
        "flags": job.zeros(1, np.int32, name="flags"),
        "slots": job.zeros(16, np.int32, name="slots"),
        "result": [device.zeros(64, np.int32, name="result") for device in node],
    }
    names = ("counter", "flags", "slots", "result") if name == "count" else ("data", "source", "signal", "result")
    for device in node:
        device.launch(module[name], 1, 64, [*(data[one][device.rank] for one in names), *more])
    found = node.synchronize(seed=seed, on_error="collect").diagnostics
    return [int(one.numpy()[0]) for one in data["result"]], [one.code for one in found]


@pytest.mark.parametrize("seed", range(3))
def test_signals_order_what_was_put(module: ir.Module, seed: int) -> None:
    assert run(module, "put_with_signal", seed) == ([300, 0, 100, 200], [])
    assert run(module, "put_then_signal", seed, 1) == ([300, 0, 100, 200], [])
    assert run(module, "put_then_signal", seed, 0)[1] == ["data-race"]
    assert run(module, "count", seed) == ([47] * 4, [])


@pytest.mark.parametrize("machines", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_over_a_network_only_fences_order_what_was_put(module: ir.Module, machines: int, seed: int) -> None:
    right: tuple[list[int], list[str]] = ([300, 0, 100, 200], [])
    assert run(module, "put_with_signal", seed, machines=machines) == right
    for name in ("put_then_signal", "reuse", "values"):
        assert run(module, name, seed, 1, machines=machines) == right, name
    for name in ("put_then_signal", "reuse", "values"):
        assert "data-race" in run(module, name, seed, 0, machines=machines)[1], name
    # With NVLink, the source of a put is read at once.
    assert run(module, "reuse", seed, 0) == right
    near = 4 // machines - 1  # `nvshmem_ptr` of the next PE
    assert run(module, "count", seed, machines=machines) == ([46 + (near > pe % (near + 1)) for pe in range(4)], [])


def test_pes_are_spread_over_machines() -> None:
    module = ptxlab.parse(STORE, "store.ptx")
    with pytest.raises(ValueError, match="4 PEs on machines=3: as many must be on each of these"):
        nvshmem.Job(ptxlab.node(4), module, machines=3)


def test_a_signal_that_never_comes(module: ir.Module) -> None:
    node = ptxlab.node(2)
    signal = nvshmem.Job(node, module).zeros(1, np.uint64, name="signal")
    node[1].launch(module["never_signalled"], 1, 1, [signal[1]])
    (found,) = node.synchronize(on_error="collect").diagnostics
    assert found.code == "hang"
    assert "rank 1 reads 0 in bytes 0..8 of `signal` of rank 1" in found.notes[0]


def test_as_written_waits_do_not_order_other_pes(module: ir.Module) -> None:
    as_written = nvshmem.cuda(SOURCE, as_written=True)
    assert run(as_written, "put_with_signal", 0)[1] == ["data-race"]


# Collectives and teams.


@pytest.fixture(scope="module")
def collectives() -> ir.Module:
    try:
        nvshmem.headers()
    except MissingPackageError:
        pytest.skip("needs NVSHMEM's headers: pip install nvidia-nvshmem-cu13")
    return nvshmem.cuda(SOURCE.with_name("nvshmem_collectives.cu"))


def collect(module: ir.Module, name: str, machines: int, *more: Any, seed: int = 0) -> tuple[list[int], list[str]]:
    """What each of four PEs has in the end, and what is found."""
    node = ptxlab.node(4)
    job = nvshmem.Job(node, module, machines=machines)
    arrays = {one: job.zeros(64, np.int32, name=one) for one in ("data", "source", "all")}
    arrays["result"] = [device.zeros(1, np.int32, name="result") for device in node]
    for rank, array in enumerate(arrays["source"]):
        array.set(np.arange(64) + 10 * rank)
    taken = [one.name for one in module[name].parameters]
    count = {"barrier": ["data", "result"], "collect": ["data", "source", "all", "result"], "absent": ["data"]}
    for device in node:
        given = [arrays[one][device.rank] for one in count.get(name, ["data", "source", "result"])]
        rest = [one[device.rank] if isinstance(one, list) else one for one in more]
        assert len(taken) == len(given) + len(rest)
        device.launch(module[name], 1, 64, [*given, *rest])
    if name == "teams":
        job.barrier_all()
    found = node.synchronize(seed=seed, on_error="collect").diagnostics
    return [int(one.numpy()[0]) for one in arrays["result"]], [one.code for one in found]


@pytest.mark.parametrize("machines", [1, 2, 4])
def test_collectives(collectives: ir.Module, machines: int) -> None:
    assert collect(collectives, "barrier", machines, 1) == ([4, 1, 2, 3], [])
    assert collect(collectives, "collect", machines) == ([1069 + 48 * pe for pe in range(4)], [])
    assert collect(collectives, "sums", machines, 4) == ([204] * 4, [])
    assert collect(collectives, "after", machines, 1, seed=machines) == ([64] * 4, [])
    assert collect(collectives, "after", machines, 0)[1] == ["data-race"]  # of the others nothing is promised


def test_a_sync_does_not_wait_for_puts_over_a_network(collectives: ir.Module) -> None:
    """It orders stores, which puts are with NVLink; a barrier waits for puts as well."""
    assert collect(collectives, "barrier", 1, 0) == ([4, 1, 2, 3], [])
    assert collect(collectives, "barrier", 4, 0)[1] == ["data-race"]


def test_teams(collectives: ir.Module) -> None:
    node = ptxlab.node(4)
    job = nvshmem.Job(node, collectives, machines=2)
    assert job.team(1, 2, 2) == [-1, 7, -1, 7]
    assert job.team(0, 1, 3) == [8, 8, 8, -1]
    with pytest.raises(ValueError, match="there are 4 PEs"):
        job.team(1, 2, 3)
    # The largest first element, 1000 times the last PE of the team, and 10000 times the PEs of a machine.
    assert collect(collectives, "teams", 2, [-1, 3, -1, 3]) == ([20000, 20000 + 3000 + 30] * 2, [])
    assert collect(collectives, "teams", 2, 2) == ([21010, 21010, 23030, 23030], [])


def test_a_barrier_that_a_pe_does_not_come_to(collectives: ir.Module) -> None:
    assert collect(collectives, "absent", 1)[1] == ["hang"]

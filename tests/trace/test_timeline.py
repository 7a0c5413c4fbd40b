"""What warps and asynchronous operations did when, as Perfetto reads it."""

from collections import Counter
from pathlib import Path

import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.measure import Host
from ptxlab.trace.timeline import periods_of

from .recorded import record, ring


def fields_of(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a message of protocol buffers."""
    at, found = 0, []

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        field, kind = divmod(varint(), 8)
        size = 8 if kind == 1 else varint()
        if kind == 0:
            found.append((field, size))
            continue
        found.append((field, data[at : at + size]))
        at += size
    return found


def test_warps_run_and_wait(tmp_path: Path) -> None:
    trace = record(tmp_path / "sums.ptxtrace")
    found = [(one.warp, one.label, one.line) for one in periods_of(trace)]
    assert found == [
        (0, "runs", 11),
        (1, "runs", 11),
        (0, "waits: bar.sync 0", 29),
        (0, "runs", 29),
    ]


def test_copies_and_products_are_beside_the_warps(tmp_path: Path) -> None:
    entry = kernels.entry("wgmma_gemm")
    (launch,) = entry.launches("wgmma", entry.arrays(Host(7), **entry.small[1]))
    trace = launch.run(device="cpu", detectors=False, record=ptxlab.Record(blocks=[0])).trace
    assert trace is not None
    periods = periods_of(trace)
    assert {one.track for one in periods} == {"warp", "bulk copies", "tensor cores"}
    copies = [one for one in periods if one.track == "bulk copies" and "mbarrier" in one.label]
    awaited = copies + [one for one in periods if one.track == "tensor cores"]
    assert copies
    assert all(one.observed is not None and one.observed[2] >= one.start for one in awaited)
    trace.perfetto(tmp_path / "run.pftrace")
    packets = [dict(fields_of(packet)) for _, packet in fields_of((tmp_path / "run.pftrace").read_bytes())]
    events = [fields_of(packet[11]) for packet in packets if 11 in packet]
    types = Counter(dict(event)[9] for event in events)
    assert types[1] == types[2] == len(periods)
    flows = [dict(event)[field] for event in events for field in (47, 48) if field in dict(event)]
    assert Counter(Counter(flows).values()) == {2: types[3]}
    with pytest.raises(ValueError, match=r"is saved as `.pftrace`"):
        trace.perfetto("run.json")


def test_mmas_of_tensor_memory_overlap_by_stages() -> None:
    products = [one for one in ring().timeline().spans if one.track == "tensor cores"]
    assert [one.count for one in products] == [4, 4, 4, 4]  # of a K tile each
    assert products[1].start < products[0].end < products[2].start  # a ring of two stages
    assert [one.observed is not None for one in products] == [True, True, False, True]
    assert products[3].observed[2] >= products[3].end

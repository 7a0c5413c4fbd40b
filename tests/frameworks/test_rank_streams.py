"""Streams, events and the allocator of torch on the GPUs of a node: an order that is missing is found on both lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.frameworks.ranks.history import History, box_of
from ptxlab.node.streams import Box

pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
LINES = Path(__file__).read_text().split("\n")


def two_kernels(is_right: bool) -> Any:
    import torch

    from tests.frameworks.triton_kernels import copy_elements

    x, y, z = (torch.ones(64, device="cuda") * n for n in (1, 2, 3))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        copy_elements[(1,)](y, x, 64, BLOCK=64)  # expect two_kernels
    if is_right:
        torch.cuda.current_stream().wait_stream(side)
    copy_elements[(1,)](z, y, 64, BLOCK=64)  # expect two_kernels
    torch.cuda.synchronize()
    return z


def operator_then_kernel(is_right: bool) -> Any:
    import torch

    from tests.frameworks.triton_kernels import copy_elements

    y = torch.zeros(64, device="cuda")
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    x = torch.ones(64, device="cuda")  # expect operator_then_kernel
    event.record()
    if is_right:
        side.wait_event(event)
    with torch.cuda.stream(side):
        copy_elements[(1,)](y, x, 64, BLOCK=64)  # expect operator_then_kernel
    side.synchronize()
    return y


def kernel_then_operator(is_right: bool) -> Any:
    import torch

    from tests.frameworks.triton_kernels import copy_elements

    x, y, other = (torch.ones(8, 8, device="cuda") for _ in range(3))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        copy_elements[(1,)](y, x + 2, 64, BLOCK=64)
        y[1:3] = 1.0  # expect kernel_then_operator
        done = side.record_event()
    other += 1  # what was launched has to run for it: that is not an order
    if is_right:
        done.wait()
    z = y[2:3] * 1  # expect kernel_then_operator
    torch.cuda.synchronize()
    return z


def collective(is_right: bool) -> Any:
    import torch
    import torch.distributed as dist

    from tests.frameworks.triton_kernels import copy_elements

    dist.init_process_group("nccl")
    x, y = torch.ones(64, device="cuda") / dist.get_world_size(), torch.zeros(64, device="cuda")
    work = dist.all_reduce(x, async_op=True)  # expect collective
    if is_right:
        work.wait()
    copy_elements[(1,)](y, x, 64, BLOCK=64)  # expect collective
    return y


def allocator(is_right: bool) -> Any:
    import torch

    from tests.frameworks.triton_kernels import copy_elements

    x, y = (torch.ones(64, device="cuda") for _ in range(2))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        copy_elements[(1,)](y, x, 64, BLOCK=64)  # expect allocator
    if is_right:
        x.record_stream(side)
    del x
    z = torch.full((64,), 7.0, device="cuda")  # expect allocator
    torch.cuda.synchronize()
    return z - 6 if y[0] == 1 else y


def parts(is_right: bool) -> Any:
    """Two streams write other parts of a tensor; in the wrong twin they share a column."""
    import torch

    y = torch.zeros(8, 8, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y[:, : 4 if is_right else 5] = 2  # expect parts
    y[:, 4:].fill_(1)  # expect parts
    torch.cuda.synchronize()
    return y[:, 4:]


@pytest.mark.parametrize(
    "program", [two_kernels, operator_then_kernel, kernel_then_operator, collective, allocator, parts]
)
def test_an_order_that_streams_miss_is_found_on_both_lines(program: Any) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    with ptxlab.node(2).emulated() as ranks:
        assert all(set(y.flatten().tolist()) == {1.0} for y in ranks.run(program, True))
    with pytest.raises(ptxlab.KernelError) as caught, ptxlab.node(2).emulated() as ranks:
        ranks.run(program, False)
    expected = {at for at, line in enumerate(LINES, 1) if line.endswith(f"# expect {program.__name__}")}
    for found in caught.value.diagnostics:
        spans = [label.span for label in found.labels]
        lines = {at.source.position(at.start)[0] for at in spans if at.source.name == __file__}
        assert (found.code, lines) == ("data-race", expected)
        first, second = sorted(expected)
        assert re.search(
            rf"a.record_event\(\)` after line {first}, `b.wait_event\(event\)` before line {second},",
            found.helps[0].text,
        )


@pytest.mark.parametrize(
    ("shape", "strides", "extent"),
    [
        ((), (), (4, 1, 1)),
        ((8, 8), (32, 4), (256, 1, 1)),
        ((8, 4), (32, 4), (16, 8, 1)),
        ((8,), (32,), (4, 8, 1)),
        ((2, 3, 4), (96, 32, 8), (4, 24, 1)),
        ((2, 3, 4), (1000, 32, 4), (16, 3, 2)),
        ((5, 8), (0, 4), (32, 1, 1)),
        ((0, 8), (32, 4), None),
        ((2, 2, 2, 2), (1000, 100, 20, 8), None),
    ],
)
def test_memory_of_a_view_is_a_box(shape: Any, strides: Any, extent: Any) -> None:
    box = box_of(64, shape, strides, 4)
    assert (box and box.extent) == extent


@pytest.mark.parametrize("is_ordered", [True, False])
def test_what_ran_apart_is_judged_together(is_ordered: bool) -> None:
    node = ptxlab.node(1)
    x = node[0].array(np.zeros(64, np.float32))
    history, side = History(node), node[0].stream()
    history.is_needed = True
    box = Box(x.address, (256, 1, 1), (0, 0))
    history.add(0, node[0].default, lambda stream: stream.access(box, "`fill_`", np.ones(256, np.uint8)))
    if is_ordered:
        history.wait_on_host(0, history.event(node[0].default))
    history.add(0, side, lambda stream: stream.access(box, "`sum`"))
    found = history.judge(lambda: node.synchronize(on_error="collect")).diagnostics
    assert [one.message for one in found] == [
        "unsynchronized: `sum` reads global memory that `fill_` writes",
    ] * (not is_ordered)
    assert not x.numpy().any()  # memory stays as it is

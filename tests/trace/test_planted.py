"""A wrong constant in kernels of the gallery: a recorded launch leads to its line."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.launch.launches import Launch
from ptxlab.measure import Host

# The kernel, its variant, which of its small sizes, where the constant is (in the first match), and the wrong one.
PLANTED = [
    ("warp_reduction", "shfl", 2, r"and.b32 %column, %thread, (31);", "30"),
    ("transpose", "squares", 0, r"mul.lo.u32 %r\d+, %r\d+, (32);", "33"),
    ("softmax", "read once", 1, r"mul.rn.f32 %f\d+, %f\d+, (0f3FB8AA3B);", "0f400A7FAC"),
    ("rms_norm", "read once", 1, r"add.u32 %r\d+, %r\d+, (32);", "33"),
    ("vector_addition", "one element a thread", 2, r"mul.wide.u32 %offset, %i, (4);", "0"),
    ("mma_tile", "PTX", 0, r"shr.u32 %row, %lane, (1);", "2"),
    ("gemv", "rows by blocks", 0, r"shl.b32 %f\d+, %r\d+, (16);", "17"),
    ("sgemm", "shared memory", 0, r"mov.u32 %done, (0);", "1"),
    ("wgmma_gemm", "wgmma", 1, r"or.b64 %rd\d+, %rd\d+, (0x4[0-9a-f]+);", "0x4000004002000001"),
    ("tcgen05_gemm", "one_tile", 0, r"add.u64 %rd\d+, %rd\d+, (2);", "3"),
]


def launch_of(name: str, variant: str, size: int) -> Launch:
    entry = kernels.entry(name)
    return entry.launches(variant, entry.arrays(Host(7), **entry.small[size]))[-1].changed()


def record(launch: Launch, path: Path) -> ptxlab.Trace:
    launch.run(device="cpu", detectors=False, record=ptxlab.Record(path))
    trace = ptxlab.Trace.open(path)
    left = {array.tobytes() for array in launch.args if isinstance(array, np.ndarray)}
    assert left <= {content.tobytes() for content in trace.memory("global").values()}
    return trace


def first_wrong(right: ptxlab.Trace, wrong: ptxlab.Trace) -> tuple[int, int]:
    """The address and the bytes of the first element that is wrong."""
    theirs = wrong.memory("global")
    for name, content in right.memory("global").items():
        unlike = np.flatnonzero(content.reshape(-1).view(np.uint8) != theirs[name].reshape(-1).view(np.uint8))
        if len(unlike):
            size = content.itemsize
            return wrong.address(name) + int(unlike[0]) // size * size, size
    raise AssertionError("nothing is wrong")


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(("name", "variant", "size", "place", "new"), PLANTED, ids=[one[0] for one in PLANTED])
def test_it_is_found(name: str, variant: str, size: int, place: str, new: str, tmp_path: Path) -> None:
    launch = launch_of(name, variant, size)
    right = record(launch, tmp_path / "right.ptxtrace")
    assert right.path.stat().st_size <= 16 * right.steps + sum(len(one.data) for one in right.accesses.regions)
    source = launch.module.source
    assert source is not None
    constant = re.search(place, source.text)
    assert constant is not None
    start, end = constant.span(1)
    line = source.text[:start].count("\n") + 1
    text = source.text[:start] + new + source.text[end:]
    changed = ptxlab.parse(text, name="kernel.ptx")[launch.function.name]
    wrong = record(replace(launch_of(name, variant, size), kernel=changed), tmp_path / "wrong.ptxtrace")
    found = right.diff(wrong)
    assert found is not None
    assert found.line == line
    address, bytes = first_wrong(right, wrong)
    origin = wrong.origin(address, size=bytes)
    assert origin.blame(right).line == line
    # A wrong index may leave an element unwritten: then it is the right launch that says how it should be.
    assert line in origin.lines | right.origin(address, size=bytes).lines

"""A wrong constant in kernels of the gallery: a recorded launch leads to its line."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.measure import Host
from ptxlab.measure.entry import Launch

# The kernel, its variant, which of its small sizes, and what is replaced by what.
PLANTED = [
    ("warp_reduction", "shfl", 2, "and.b32 %column, %thread, 31;", "and.b32 %column, %thread, 30;"),
    ("transpose", "squares", 0, "mul.lo.u32 %r37, %r36, 32;", "mul.lo.u32 %r37, %r36, 33;"),
    ("softmax", "read once", 1, "%f12, %f11, 0f3FB8AA3B;", "%f12, %f11, 0f400A7FAC;"),
    ("rms_norm", "read once", 1, "add.u32 %r11, %r10, 32;", "add.u32 %r11, %r10, 33;"),
    ("vector_addition", "one element a thread", 2, "mul.wide.u32 %offset, %i, 4;", "mul.wide.u32 %offset, %i, 0;"),
    ("mma_tile", "PTX", 0, "shr.u32 %row, %lane, 1;", "shr.u32 %row, %lane, 2;"),
    ("gemv", "rows by blocks", 0, "shl.b32 %f14, %r11, 16;", "shl.b32 %f14, %r11, 17;"),
    ("sgemm", "shared memory", 0, "mov.u32 %done, 0;", "mov.u32 %done, 1;"),
    ("wgmma_gemm", "wgmma", 1, "%rd26, 0x4000004002000000;", "%rd26, 0x4000004002000001;"),
    ("tcgen05_gemm", "one_tile", 0, "add.u64 %rd15, %rd11, 2;", "add.u64 %rd15, %rd11, 3;"),
]


def launch_of(name: str, variant: str, size: int) -> Launch:
    entry = kernels.entry(name)
    return entry.launches(variant, entry.arrays(Host(7), **entry.small[size]))[-1].changed()


def record(launch: Launch, path: Path) -> ptxlab.Trace:
    launch.run(device="cpu", checks=False, record=ptxlab.Record(path))
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


@pytest.mark.parametrize(("name", "variant", "size", "old", "new"), PLANTED, ids=[one[0] for one in PLANTED])
def test_it_is_found(name: str, variant: str, size: int, old: str, new: str, tmp_path: Path) -> None:
    launch = launch_of(name, variant, size)
    right = record(launch, tmp_path / "right.ptxtrace")
    assert right.path.stat().st_size <= 16 * right.steps + sum(len(one.data) for one in right.accesses.regions)
    source = launch.module.source
    assert source is not None
    line = source.text[: source.text.index(old)].count("\n") + 1
    changed = ptxlab.parse(source.text.replace(old, new, 1), name="kernel.ptx")[launch.function.name]
    wrong = record(replace(launch_of(name, variant, size), kernel=changed), tmp_path / "wrong.ptxtrace")
    found = right.diff(wrong)
    assert found is not None
    assert found.line == line
    address, bytes = first_wrong(right, wrong)
    origin = wrong.origin(address, size=bytes)
    assert origin.blame(right).line == line
    # A wrong index may leave an element unwritten: then it is the right launch that says how it should be.
    assert line in origin.lines | right.origin(address, size=bytes).lines

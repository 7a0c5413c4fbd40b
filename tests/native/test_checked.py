"""Checked mode: an access out of bounds is reported with its line; the emulator's own runtime makes none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")

PLANTED = """
import sys
from ptxlab.native import *
from ptxlab.native.engine import compiled

FEW = (1, 2, 3)


@struct
class Pair:
    first: u32
    several: Array[u32, 4]
    last: u32


@native
def heap(index: u64) -> u32:
    numbers = cast(Pointer[u32], calloc(4, 4))
    numbers[index] = 5  # heap
    found = numbers[index]
    free(cast(Pointer[u8], numbers))
    return found


@native
def stack(index: u64) -> u32:
    numbers = array(u32, 4)
    return numbers[index]  # stack


@native
def inside(index: u64) -> u32:
    pair = cast(Pointer[Pair], calloc(1, size_of(Pair)))
    pair.several[index] += 1  # inside
    return pair.several[index]


@native
def freed(index: u64) -> u32:
    numbers = cast(Pointer[u32], calloc(4, 4))
    if index > 3:
        free(cast(Pointer[u8], numbers))
    return numbers[0]  # freed


@native
def table(index: u64) -> u32:
    return FEW[index - 1]  # table


@native
def counted(index: u64) -> u64:
    numbers = cast(Pointer[u64], calloc(4, 8))
    return atomic_add(numbers + index, 1)  # counted


@native
def copied(index: u64) -> u32:
    numbers = cast(Pointer[u8], calloc(3, 1))
    to = array(u8, 8)
    copy_bytes(to, numbers, index)  # copied
    return u32(to[0])


@native
def grown(index: u64) -> u32:
    numbers = cast(Pointer[u32], realloc(calloc(1, 4), 16))
    return numbers[index]  # grown


@native
def given(numbers: Pointer[u32], index: u64) -> u32:
    return numbers[index]  # given


name, index = sys.argv[1], int(sys.argv[2])
arguments = [[1, 2, 3, 4], index] if name == "given" else [index]
print("done", compiled(globals()[name])(*arguments))
"""
NAMES = ("heap", "stack", "inside", "freed", "table", "counted", "copied", "grown", "given")


def checked(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PTXLAB_NATIVE_CHECKED": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_access_is_reported_with_its_line(name: str, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    line = next(number for number, text in enumerate(PLANTED.splitlines(), 1) if text.endswith(f"# {name}"))
    wrong = checked(str(file), name, "4")
    assert wrong.returncode < 0, "the process is stopped"
    assert "done" not in wrong.stdout
    message = next(
        text for text in wrong.stderr.splitlines() if text.startswith("ptxlab: native code is out of bounds")
    )
    assert f"in `{name}`, {file}:{line}" in message


def test_code_that_is_right_is_not_stopped(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text(PLANTED)
    for name in ("heap", "table", "given"):
        right = checked(str(file), name, "3")
        assert right.stdout.startswith("done"), right.stderr


SELECTION = (
    "tests/cases/copies/source_size.ptx",  # cp.async
    "tests/cases/hangs/ring_right.ptx",  # bulk copies, mbarriers
    "tests/cases/hangs/elected_lane_at_cluster_barrier.ptx",
    "tests/cases/mbarriers/overwritten.ptx",
    "tests/cases/order/missing_barrier.ptx",  # races
    "tests/cases/order/mbarrier_far_arrival.ptx",
    "tests/cases/order/exited_writer.ptx",
    "tests/cases/schedule/once_clusters.ptx",  # seeds
    "tests/cases/tensor/commit_frees_stage.ptx",  # tensor memory
    "tests/cases/tensor/use_after_free.ptx",
    "tests/cases/wgmma/ring.ptx",
    "tests/emulate/test_tensor_copies.py::test_a_view_of_a_wider_array",  # TMA by a tensor map
    "tests/emulate/test_tile_layouts.py::test_a_matrix_of_an_array_of_them_has_rows_like_any",  # runs again
)


@pytest.mark.bulk
def test_the_runtime_stays_in_bounds() -> None:
    """Kernels of every package of the runtime, with all detectors, under checked mode."""
    root = Path(__file__).parents[2]
    found = checked("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:benchmark", *SELECTION, cwd=root)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]
    assert f"{len(SELECTION)} passed" in found.stdout

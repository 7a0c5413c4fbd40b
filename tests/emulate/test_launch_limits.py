"""Launches that no GPU, or not this machine, would take: refused with the limit that they exceed."""

import re
import resource

import numpy as np
import pytest

from tests.emulate.launching import launch, problem


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
        with pytest.raises(ValueError, match=re.escape(f"{name}={extent!r}: expected one to three whole numbers")):
            launch("ret;", **how)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "5"])
def test_a_timeout_is_a_time(timeout: object) -> None:
    with pytest.raises(ValueError, match="expected a number of seconds above 0"):
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

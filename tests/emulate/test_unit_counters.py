"""What the units beside the threads are counted to do: TMA copies, MMAs, tensor memory, waves of blocks."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.cli.profile import profile_lines
from ptxlab.isa import opcode
from ptxlab.kernels import mma_tile
from ptxlab.kernels.tcgen05_gemm import product
from ptxlab.kernels.tcgen05_gemm.parts import Shape
from tests.emulate.test_multicast import EXPECT, HEAD, MULTICAST, OUT, TENSOR, WAIT


def test_tcgen05() -> None:
    """100 rows of A and 40 of B in two K tiles of 64 columns, of which the matrices have 72."""
    a, b = np.zeros((100, 72), np.float16), np.zeros((40, 72), np.float16)
    launch = product(a, b, np.empty((100, 40), np.float16), "specialized", Shape(columns=64, stages=2))
    result = launch.run(device="cpu", profile=True)
    found = result.counters
    boxes = 2 * 64 * 2 * (128 + 64)
    assert found["tma"] == {"loaded": boxes, "stored": 2 * 128 * 64}
    assert found["bytes"]["global"] == {"read": 2 * 72 * (100 + 40), "written": 2 * 100 * 40}  # within the matrices
    done = {"count": 8, "flops": 8 * 2 * 128 * 64 * 16, "operand_bytes": 8 * 32 * (128 + 64)}
    assert found["mmas"] == {"tcgen05": done}
    assert found["tensor_memory"] == {"columns": 64}
    assert found["waves"] == {
        "blocks": 1, "blocks_per_sm": 3, "limiter": "shared", "resident": 3 * 148, "gpu": "B200", "waves": 1 / 444,
    }  # fmt: skip
    shown = [line for line in profile_lines(launch.function, found) if ":" in line]
    assert "TMA: 49,152 bytes to shared memory, 16,384 bytes to global memory" in shown
    assert "tcgen05: 8 MMAs, 2,097,152 FLOPs, 49,152 bytes of shared memory" in shown
    assert "tensor memory: 64 columns of a block allocated at most" in shown
    assert (
        "waves: 0.00, 1 of 444 blocks that fit on a B200 at once, registers not counted; 3 an SM, limited by shared "
        "memory" in shown
    )
    (conflicts,) = [line for line in shown if line.endswith("bank conflicts")]
    assert conflicts.endswith(" wavefronts, 0 of them for bank conflicts")  # how often a wait polls is left to chance


def test_two_blocks_of_tensor_memory_fill_an_sm() -> None:
    """Each block allocates 256 of 512 columns: two fit, though shared memory has space for more."""
    a, b = np.zeros((16, 64), np.float16), np.zeros((16, 64), np.float16)
    launch = product(a, b, np.empty((16, 16), np.float16), "one_tile", Shape(columns=256))
    found = launch.run(device="cpu").counters
    assert found["tensor_memory"] == {"columns": 256}
    assert (found["waves"]["blocks_per_sm"], found["waves"]["limiter"]) == (2, "tensor memory")


@pytest.mark.parametrize("copy", [f"{MULTICAST} [tile], [%x], 128, [full], 3;",
                                  f"{TENSOR} [tile], [%rd2, {{0, 0}}], [full], 3;"])  # fmt: skip
def test_a_multicast_is_read_once_and_written_to_each_block(copy: str) -> None:
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    map = ptxlab.tensor_map(x.reshape(4, 16), box=(2, 16))
    text = HEAD.format(count=2, expect=EXPECT.format(128)) + f"@!%p3 {copy}" + WAIT + OUT
    counters: dict[str, Any] = ptxlab.parse(text)["k"].launch(2, 32, [map, x, y], device="cpu").counters
    assert counters["tma"] == {"loaded": 256, "multicast": 256}
    assert counters["bytes"]["global"]["read"] == 128


def test_mma_sync() -> None:
    a, b, c = np.zeros((16, 32), np.float16), np.zeros((32, 8), np.float16), np.zeros((16, 8), np.float32)
    counters = mma_tile.in_ptx(a, b, c).run(device="cpu").counters
    assert counters["mmas"] == {"mma.sync": {"count": 2, "flops": 2 * 2 * 16 * 8 * 16}}
    assert "tma" not in counters
    assert "tensor_memory" not in counters


@pytest.mark.parametrize(
    ("text", "unit", "threads", "operations"),
    [
        ("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", "wgmma", 128, 2 * 64 * 256 * 16),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "mma.sync", 32, 4 * 2 * 8 * 8 * 4),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "mma.sync", 32, 2 * 16 * 16 * 16),
        ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05", 1, None),
    ],
)
def test_the_table_says_how_much_an_mma_does(text: str, unit: str, threads: int, operations: int | None) -> None:
    size = opcode(text).candidates[0].effects.mma
    assert size is not None
    assert (size.unit, size.threads, size.operations) == (unit, threads, operations)


def test_other_instructions_do_not_multiply_matrices() -> None:
    for text in ("fma.rn.f32", "wgmma.commit_group.sync.aligned", "tcgen05.fence::before_thread_sync"):
        assert opcode(text).candidates[0].effects.mma is None

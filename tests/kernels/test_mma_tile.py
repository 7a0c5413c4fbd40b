"""What README.md of mma_tile says goes wrong, goes wrong."""

from pathlib import Path

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.kernels import mma_tile

SOURCE = (Path(kernels.__file__).parent / "mma_tile" / "mma_tile.ptx").read_text(encoding="utf-8")


def changed(old: str, new: str) -> ptxlab.ir.Function:
    assert old in SOURCE
    return ptxlab.parse(SOURCE.replace(old, new), "mma_tile.ptx")["mma_tile"]


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((16, 32), (32, 8)))
    return a, b, np.zeros((16, 8), np.float32)


def test_both_sources_compute_the_same_bits() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((40, 56), (56, 24)))
    first, second = np.zeros((40, 24), np.float32), np.zeros((40, 24), np.float32)
    mma_tile.in_ptx(a, b, first).run()
    mma_tile.in_cuda(a, b, second).run()
    assert first.tobytes() == second.tobytes()


def test_trans_on_a_multiplies_by_the_transposed_tiles() -> None:
    a, b, c = arrays()
    wrong = changed("m8n8.x4.shared", "m8n8.x4.trans.shared")
    mma_tile.launch(wrong, a, b, c).run()
    # Each 8 by 8 matrix is transposed in place; here, the 16 by 16 tiles of A.
    turned = a.reshape(2, 8, 4, 8).transpose(0, 3, 2, 1).reshape(16, 32).astype(np.float32)
    assert (c == turned @ b.astype(np.float32)).all()
    assert (c != a.astype(np.float32) @ b.astype(np.float32)).any()


@pytest.mark.parametrize(
    "lost",
    [
        "    cp.async.wait_group 0;",
        "    bar.warp.sync   0xffffffff;                     // and so",
    ],
)
def test_a_lost_wait_is_a_race(lost: str) -> None:
    a, b, c = arrays()
    found = mma_tile.launch(changed(lost, "//"), a, b, c).run(on_error="collect").diagnostics
    assert [finding.code for finding in found][:1] == ["data-race"]


def test_ldmatrix_takes_one_turn_because_of_the_exchanged_chunks() -> None:
    a, b, c = arrays()
    right = mma_tile.launch(mma_tile.text(), a, b, c).run(profile=True).counters["requests"]
    plain = changed("    bfe.u32         %turn, %row, 2, 1;\n", "    mov.u32         %turn, 0;\n")
    conflicts = mma_tile.launch(plain, a, b, c).run(profile=True).counters["requests"]
    assert right["wavefronts"] == right["ideal_wavefronts"]
    assert conflicts["wavefronts"] > conflicts["ideal_wavefronts"]

"""What the texts say about tensor memory, tried on the emulator."""

from __future__ import annotations

import numpy as np

from ptxlab.isa.units.instruction_descriptor import InstructionDescriptor
from tests.emulate.blackwell import launch
from tests.emulate.tensor_kernels import FILL, Case, multiply
from tests.emulate.test_tcgen05_copies import scaled
from tests.emulate.test_tensor_scaled import CASES
from tests.emulate.test_tensor_scaled import multiply as multiply_scaled

STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};\ntcgen05.wait::st.sync.aligned;"


def test_a_warp_reaches_its_own_32_lanes() -> None:
    for lanes, codes in ((0, []), (32, ["out-of-bounds"])):
        body = f"add.u32 %r1, %band, {lanes << 16};\n{STORE}"
        assert [found.code for found in launch(body, [np.zeros(1, np.uint32)]).diagnostics] == codes


def test_scale_factors_are_repeated_over_lanes_and_not_over_columns() -> None:
    """Rows of D are scaled by the copy in their own 32 lanes: where one copy is twice as large, so are they."""
    out, expected, found = multiply_scaled(*CASES[0])
    assert found == []
    assert np.array_equal(out, expected)
    out, expected, _ = multiply_scaled(*CASES[0], damaged=2, detectors=False)
    expected[64:96] *= 2
    assert np.array_equal(out, expected)
    *_, (unequal,) = multiply_scaled(*CASES[0], damaged=2)
    assert unequal.code == "unequal-scale-factors"


def test_scale_factors_are_stored_by_st_and_copied_by_cp() -> None:
    assert "tcgen05.st" in FILL
    for out, expected, found in (multiply_scaled(*CASES[2]), scaled()):
        assert found == []
        assert np.array_equal(out, expected)


def test_a_copy_before_an_mma_needs_no_fence_and_a_load_after_it_does() -> None:
    *_, found = scaled()
    assert found == []
    fence = "    tcgen05.fence::after_thread_sync;\n    mul.lo.u32"
    descriptor = InstructionDescriptor("f16", 128, 16, "f16", "f16")
    *_, found = multiply(Case(descriptor, edits=((fence, "    mul.lo.u32"),)))
    assert [(diagnostic.level, diagnostic.code) for diagnostic in found] == [("warning", "missing-tensor-fence")]

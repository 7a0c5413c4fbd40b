"""What the texts say about tensor memory, tried on the emulator."""

from __future__ import annotations

import numpy as np

from ptxlab.isa.instruction_descriptor import InstructionDescriptor
from tests.emulate.blackwell import launch
from tests.emulate.tensor_kernels import Case, multiply
from tests.emulate.test_tcgen05_copies import scaled
from tests.emulate.test_tensor_scaled import in_lanes

STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%t};\ntcgen05.wait::st.sync.aligned;"


def test_a_warp_reaches_its_own_32_lanes() -> None:
    for lanes, codes in ((0, []), (32, ["out-of-bounds"])):
        body = f"add.u32 %r1, %band, {lanes << 16};\n{STORE}"
        assert [found.code for found in launch(body, [np.zeros(1, np.uint32)]).diagnostics] == codes


def test_scale_factors_are_repeated_over_lanes_and_not_over_columns() -> None:
    rows = np.arange(512, dtype=np.uint8).reshape(128, 4)
    lanes = in_lanes(rows)  # what `tcgen05.cp…warpx4` makes, and products with scale factors read
    assert all(np.array_equal(lanes[:32], lanes[first : first + 32]) for first in (32, 64, 96))
    assert np.array_equal(lanes[:32].transpose(1, 0, 2).reshape(128, 4), rows)
    out, expected, found = scaled()
    assert found == []
    assert np.array_equal(out, expected)


def test_a_copy_before_an_mma_needs_no_fence_and_a_load_after_it_does() -> None:
    *_, found = scaled()
    assert found == []
    fence = "    tcgen05.fence::after_thread_sync;\n    mul.lo.u32"
    descriptor = InstructionDescriptor("f16", 128, 16, "f16", "f16")
    *_, found = multiply(Case(descriptor, edits=((fence, "    mul.lo.u32"),)))
    assert [(diagnostic.level, diagnostic.code) for diagnostic in found] == [("warning", "missing-tensor-fence")]

"""Several schedules of one launch: `seeds=`."""

import numpy as np
import pytest

import ptxlab

# Counts its threads in a variable of the module, then adds to a sum, or writes to it without order.
RACY = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 launches;
.entry k (.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    atom.global.add.u32 %r1, [launches], 1;
    ld.param.u64 %rd1, [out];
    mov.u32 %r2, %tid.x;
    STATEMENT
    ret;
}
"""
RIGHT = RACY.replace("STATEMENT", "red.global.add.u32 [%rd1], %r2;")
WRONG = RACY.replace("STATEMENT", "st.global.u32 [%rd1], %r2;")


def test_every_seed_sees_the_same_data_and_the_arrays_are_changed_once() -> None:
    out, module = np.array([100], np.uint32), ptxlab.parse(RIGHT)
    module["k"].launch(1, 32, [out], seeds=5)
    assert out[0] == 100 + sum(range(32))
    assert module.get("launches") == 32


def test_a_finding_of_any_seed_is_told_with_the_seed() -> None:
    with pytest.raises(ptxlab.KernelError, match="data-race"):
        ptxlab.parse(WRONG)["k"].launch(1, 32, [np.zeros(1, np.uint32)], seeds=[3, 4])
    result = ptxlab.parse(WRONG)["k"].launch(1, 32, [np.zeros(1, np.uint32)], seeds=[3, 4], on_error="collect")
    assert "replay with `--seed 3`" in result.diagnostics[0].notes


def test_seeds_are_for_the_emulator_and_not_none_at_all() -> None:
    kernel = ptxlab.parse(RIGHT)["k"]
    with pytest.raises(ValueError, match="empty"):
        kernel.launch(1, 32, [np.zeros(1, np.uint32)], seeds=[])
    with pytest.raises(ValueError, match="emulator alone"):
        kernel.launch(1, 32, [np.zeros(1, np.uint32)], seeds=2, device="cuda")

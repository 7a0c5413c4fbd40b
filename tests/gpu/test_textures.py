"""Textures and surfaces on a GPU: the same objects, the same bits as on the emulator."""

import numpy as np
import pytest

import ptxlab
from tests.emulate.texture_lookups import experiments
from tests.launch.test_chains import LOOK
from tests.tools import header

pytestmark = pytest.mark.gpu

STORE = """.entry k(.param .u64 s, .param .u64 out) {
    .reg .b64 %rd<4>; .reg .b32 %r<6>;
    ld.param.u64 %rd0, [s]; ld.param.u64 %rd1, [out];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; shl.b32 %r2, %r0, 2;
    suld.b.2d.b32.clamp %r3, [%rd0, {%r2, %r1}];
    add.u32 %r3, %r3, 1000;
    sust.b.2d.b32.trap [%rd0, {%r2, %r1}], %r3;
    ret;
}
"""


@pytest.mark.parametrize("name", experiments())
def test_lookups(name: str) -> None:
    experiment = experiments()[name]
    assert np.array_equal(experiment.run("cuda"), experiment.found)


def test_a_surface_comes_back() -> None:
    kernel = ptxlab.parse(header("8.0", "sm_80") + STORE, name="k.ptx")["k"]
    for device in ("cuda", "both"):
        array = np.arange(40, dtype=np.uint32).reshape(5, 8)
        kernel.launch(grid=1, block=(8, 5), args=[ptxlab.Surface(array), np.zeros(1, np.uint32)], device=device)
        assert np.array_equal(array, np.arange(1000, 1040, dtype=np.uint32).reshape(5, 8))


@pytest.mark.parametrize("device", ["cuda", "both"])
@pytest.mark.parametrize("storage", ["array", "linear"])
def test_textures_and_surfaces_in_a_chain(device: str, storage: str) -> None:
    module = ptxlab.parse(LOOK, name="k.ptx")
    x, y, z = (np.arange(32, dtype=np.float32) * factor for factor in (1, 0, 0))
    look = module["look"], 1, 32, [ptxlab.Texture(x, storage=storage), y]
    ptxlab.chain(look, (module["write"], 1, 32, [y, ptxlab.Surface(z)]), device=device)
    assert np.array_equal(y, x)
    assert np.array_equal(z, x)

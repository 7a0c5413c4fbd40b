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


BY_NAME = """.global .texref image;
.global .texref row;
.global .surfref pixels;
.entry k(.param .u64 out) {
    .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .f32 %f<8>;
    ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 8; add.u64 %rd0, %rd0, %rd1;
    cvt.rn.f32.u32 %f4, %r0; mov.f32 %f5, 0f3F800000;
    tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [image, {%f4, %f5}];
    st.global.f32 [%rd0], %f0;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [row, {%r0}];
    st.global.f32 [%rd0+4], %f0;
    shl.b32 %r1, %r0, 2;
    suld.b.1d.b32.trap %r2, [pixels, {%r1}]; add.u32 %r2, %r2, 1; sust.b.1d.b32.trap [pixels, {%r1}], %r2;
    ret;
}
"""


@pytest.mark.parametrize("device", ["cuda", "both"])
def test_variables_refer_to_textures(device: str) -> None:
    module = ptxlab.parse(header("8.0", "sm_80") + BY_NAME, name="k.ptx")
    image, row, pixels = np.random.default_rng(0).random((4, 8), np.float32), np.arange(8.0, dtype="f4"), np.arange(8)
    pixels = pixels.astype(np.uint32)
    module.set("image", ptxlab.Texture(image, filter="linear"))
    module.set("row", ptxlab.Texture(row, storage="linear"))
    module.set("pixels", ptxlab.Surface(pixels))
    expected, out = np.zeros((8, 2), np.float32), np.zeros((8, 2), np.float32)
    module["k"].launch(1, 8, [expected], device="cpu")
    module["k"].launch(1, 8, [out], device=device)
    assert np.array_equal(out, expected)
    assert np.array_equal(out[:, 1], row)
    assert np.array_equal(pixels, np.arange(8) + 2)


@pytest.mark.parametrize("device", ["cuda", "both"])
def test_textures_and_surfaces_in_a_chain(device: str) -> None:
    module = ptxlab.parse(LOOK, name="k.ptx")
    x, y, z = (np.arange(32, dtype=np.float32) * factor for factor in (1, 0, 0))
    look = module["look"], 1, 32, [ptxlab.Texture(x, storage="linear"), y]
    ptxlab.launch_chain(look, (module["write"], 1, 32, [y, ptxlab.Surface(z)]), device=device)
    assert np.array_equal(y, x)
    assert np.array_equal(z, x)

"""Textures: every lookup gives the bits of an H200; handles, variables, queries, and what is refused."""

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate.runtime.textures.levels import LOGARITHMS
from ptxlab.emulate.runtime.textures.srgb import SRGB_VALUES
from tests.emulate.texture_lookups import experiments
from tests.tools import header

RAMP = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.mark.parametrize("name", experiments())
def test_lookups_give_the_bits_of_an_h200(name: str) -> None:
    experiment = experiments()[name]
    assert np.array_equal(experiment.run(), experiment.found)


def kernel(body: str, variables: str = "", options: str = "") -> ptxlab.ir.Module:
    """A kernel that stores four words, %r0 to %r3."""
    return ptxlab.parse(
        header("8.0", f"sm_90{options}")
        + f"""{variables}
.entry k(.param .u64 t, .param .u64 out) {{
    .reg .b64 %rd<6>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .pred %p;
    ld.param.u64 %rd0, [t]; ld.param.u64 %rd1, [out];
    mov.f32 %f0, 0f3FC00000; mov.f32 %f1, 0f40200000; mov.b32 %r4, 1; mov.b32 %r5, 2;
{body}
    st.global.v4.b32 [%rd1], {{%r0, %r1, %r2, %r3}};
    ret;
}}
""",
        name="k.ptx",
    )


def run(module: ptxlab.ir.Module, argument: object) -> list[int]:
    out = np.zeros(4, np.uint32)
    module["k"].launch(grid=1, block=1, args=[argument, out])
    return [int(word) for word in out]


def failure(module: ptxlab.ir.Module, argument: object) -> str:
    with pytest.raises(ptxlab.KernelError) as raised:
        run(module, argument)
    (found,) = raised.value.diagnostics
    return f"{found.code}: {found.message}"


LOOKUP = "    tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%rd0, {%f0, %f1}];"


def test_channels_that_texels_do_not_have_are_zero() -> None:
    texels = np.arange(32, dtype=np.int16).reshape(4, 4, 2)
    assert run(kernel(LOOKUP), ptxlab.Texture(texels, geometry="2d")) == [18, 19, 0, 0]


def test_registers_of_f16x2_have_two_channels_each() -> None:
    texels = np.arange(64, dtype=np.float32).reshape(4, 4, 4)
    body = "    tex.2d.v2.f16x2.f32 {%r0, %r1}, [%rd0, {%f0, %f1}]; mov.b32 %r2, 0; mov.b32 %r3, 0;"
    found = run(kernel(body), ptxlab.Texture(texels, geometry="2d"))
    assert np.array(found[:2], np.uint32).view(np.float16).tolist() == [36, 37, 38, 39]


def test_a_texture_is_what_its_array_held_at_the_launch() -> None:
    texels = RAMP.copy()
    texture = ptxlab.Texture(texels)
    texels[2, 1] = 100.0
    assert run(kernel(LOOKUP), texture)[0] == int(np.float32(100.0).view(np.uint32))


def test_variables_of_a_module_refer_to_textures() -> None:
    body = """    tex.2d.v4.u32.f32 {%r0, _, _, _}, [image, {%f0, %f1}];
    mov.u64 %rd2, images; add.u64 %rd2, %rd2, 8;
    tex.2d.v4.u32.f32 {%r1, _, _, _}, [%rd2, {%f0, %f1}];
    istypep.texref %p, %rd2; selp.b32 %r2, 1, 0, %p; istypep.surfref %p, %rd2; selp.b32 %r3, 1, 0, %p;"""
    module = kernel(body, ".global .texref image;\n.global .texref images[2];\n")
    assert failure(module, 0) == "bad-texture: `image` is not bound to a texture"
    texture, other = ptxlab.Texture(RAMP.astype(np.uint32)), ptxlab.Texture(RAMP.astype(np.uint32) + 100)
    module.set("image", texture)
    module.set("images", [texture, other])
    assert run(module, 0) == [9, 109, 1, 0]
    with pytest.raises(ptxlab.KernelError, match=r"`image` is a `\.texref`, not a Surface"):
        module.set("image", ptxlab.Surface(RAMP.copy()))


def test_samplers_apart_from_textures() -> None:
    body = """    tex.2d.v4.u32.f32 {%r0, _, _, _}, [image, smooth, {%f0, %f1}];
    tex.2d.v4.u32.f32 {%r1, _, _, _}, [image, plain, {%f0, %f1}];
    txq.filter_mode.b32 %r2, [smooth]; txq.addr_mode_0.b32 %r3, [plain];"""
    described = "{ addr_mode_0 = clamp_to_edge, filter_mode = nearest, force_unnormalized_coords = 1 }"
    variables = f".global .texref image;\n.global .samplerref smooth;\n.global .samplerref plain = {described};\n"
    module = kernel(body, variables, ", texmode_independent")
    module.set("image", ptxlab.Texture(RAMP))
    module.set("smooth", ptxlab.Sampler(filter="linear"))
    found = run(module, 0)
    assert np.array(found[:2], np.uint32).view(np.float32).tolist() == [9.0, 9.0]
    assert found[2:] == [1, 3]


def test_queries() -> None:
    body = """    txq.width.b32 %r0, [%rd0]; txq.height.b32 %r1, [%rd0]; txq.depth.b32 %r2, [%rd0];
    txq.level.height.b32 %r3, [%rd0], %r4;"""
    levels = [np.zeros((6, 4), np.float32), np.zeros((3, 2), np.float32)]
    assert run(kernel(body), ptxlab.Texture(levels)) == [4, 6, 0, 3]
    assert run(kernel(body), ptxlab.Texture(np.zeros((3, 5, 7), np.uint8), geometry="a2d")) == [7, 5, 3, 0]
    asked = ("channel_data_type", "channel_order", "num_mipmap_levels", "normalized_coords")
    body = "".join(f"    txq.{name}.b32 %r{number}, [%rd0];\n" for number, name in enumerate(asked))
    texture = ptxlab.Texture(np.zeros((4, 4, 4), np.uint8), geometry="2d", read="normalized", normalized=True)
    assert run(kernel(body), texture) == [0x10D2, 0x10B5, 1, 1]


def test_wrong_handles_are_explained() -> None:
    assert failure(kernel(LOOKUP), 0) == "bad-texture: 0x0 is not the handle of a texture"
    surface = ptxlab.Surface(RAMP.copy())
    assert failure(kernel(LOOKUP), surface) == "bad-texture: the handle of a surface where a texture is needed"
    line = ptxlab.Texture(RAMP[0])
    assert failure(kernel(LOOKUP), line) == "bad-texture: `.2d` coordinates for a `.1d` texture or surface"


def test_linear_memory_is_fetched_and_not_sampled() -> None:
    fetch = "    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%rd0, {%r5}];"
    sample = "    tex.1d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [%rd0, {%f1}];"
    linear, array = (ptxlab.Texture(np.arange(8, dtype=np.uint32), storage=kind) for kind in ("linear", "array"))
    assert run(kernel(fetch), linear) == run(kernel(sample), array) == [2, 0, 0, 0]
    assert failure(kernel(fetch), array).endswith("fetches from linear memory only")
    assert failure(kernel(sample), linear) == "bad-texture: a texture in linear memory is not sampled"


@pytest.mark.parametrize(
    ("shape", "dtype", "settings", "message"),
    [
        ((4, 4), "float64", {}, "texels of type float64"),
        ((4, 4, 3), "uint8", {"geometry": "2d"}, "texels of 3 channels"),
        ((4, 4), "uint8", {"filter": "linear"}, "filter='linear' needs floats"),
        ((4, 4), "float32", {"read": "normalized"}, "read='normalized' is for integers of 8 or 16 bits"),
        ((4, 4), "float32", {"address": "repeat"}, "address='repeat': expected one of 'wrap'"),
        ((5, 4, 4), "float32", {"geometry": "cube"}, "a cube has 6 faces, this array 5"),
        ((4, 4), "float32", {"storage": "linear"}, "storage='linear' is for 1d textures"),
        ((0, 4), "float32", {}, "the array is empty"),
    ],
)
def test_textures_that_do_not_exist(shape: tuple[int, ...], dtype: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message.replace("(", r"\(")):
        ptxlab.Texture(np.zeros(shape, dtype), **settings)  # type: ignore[arg-type]


def look(texture: ptxlab.Texture, *at: float, opcode: str = "tex") -> list[np.float32]:
    """The four results of a lookup."""
    words = [np.float32(one).view(np.uint32) for one in (*at, *at[-1:] * (4 - len(at) if len(at) == 3 else 0))]
    named = ", ".join(f"%f{number}" for number in range(len(words)))
    moves = "".join(f"    mov.b32 %f{number}, {int(word):#x};\n" for number, word in enumerate(words))
    geometry = texture.texels.geometry
    body = f"{moves}    {opcode}.{geometry}.v4.{'f32' if opcode != 'tex' else 'u32'}.f32 {{%r0, %r1, %r2, %r3}}"
    return [*np.array(run(kernel(f"{body}, [%rd0, {{{named}}}];"), texture), np.uint32).view(np.float32)]


@pytest.mark.parametrize("value", [1.0, 3 * 2.0**-24, float("inf")])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_texture_of_one_value_has_it_everywhere(dtype: type, value: float) -> None:
    """At texels, between two, four and eight of them, and where three faces of a cube meet; it may be subnormal."""
    flat = ptxlab.Texture(np.full((4, 4), value, dtype), filter="linear")
    assert [look(flat, 1.25, y)[0] for y in (1.5, 1.75)] == [value] * 2
    solid = ptxlab.Texture(np.full((4, 4, 4), value, dtype), geometry="3d", filter="linear")
    assert [look(solid, 1.25, 1.5, z)[0] for z in (1.5, 1.75)] == [value] * 2
    faces = np.full((6, 4, 4), value, dtype)
    cube = ptxlab.Texture(faces, geometry="cube", filter="linear", normalized=True, seamless=True)
    assert [look(cube, x, 1.0, 0.99)[0] for x in (1.0, -0.98)] == [value] * 2


def test_a_gather_reads_the_level_that_the_sampler_allows() -> None:
    levels = [np.full((4, 4), 1, np.float32), np.full((2, 2), 2, np.float32)]
    for level in range(2):
        texture = ptxlab.Texture(levels, normalized=True, level_clamp=(level, level))
        assert look(texture, 0.5, 0.5, opcode="tld4.r") == [level + 1] * 4


def test_a_wrong_sampler_is_explained() -> None:
    body = "    tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [image, %rd0, {%f0, %f1}];"
    module = kernel(body, ".global .texref image;\n", ", texmode_independent")
    module.set("image", ptxlab.Texture(RAMP))
    assert failure(module, 8) == "bad-texture: 0x8 is not the handle of a sampler"


def test_measured_tables_are_near_the_functions_that_they_round() -> None:
    """sRGB with 8 significant bits; the logarithm in 256ths, most of them rounded up."""
    for number, value in enumerate(SRGB_VALUES[1:], 1):
        part = number / 255
        exact = 65536 * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
        assert abs(value - exact) < 0.006 * exact, number
        assert value // (value & -value) < 1 << 8, number
    above = LOGARITHMS - 256 * np.log2(1 + np.arange(256) / 256)
    assert above.min() > -0.3
    assert np.all(above < np.where(np.arange(256) < 32, 1.2, 1.0))

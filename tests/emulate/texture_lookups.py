"""Lookups of textures that were run on an H200: settings, texels, coordinates and the bits that came out.

`h200_textures.npz` has them, 64 of each experiment; all of them, a million, agree but for what `docs/textures.md` says.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.isa.units.texture_unit import GEOMETRIES
from tests.tools import header

_FILE = Path(__file__).parent / "h200_textures.npz"
_COORDINATES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4}
_OFFSETS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
_PADDED = {1: 1, 2: 2, 3: 4, 4: 4}


@dataclass(frozen=True)
class Experiment:
    """An instruction on a texture: eight words of operands for each thread, and some of the four words it gets."""

    opcode: str
    tail: str
    texture: ptxlab.Texture
    operands: Any
    kept: list[int]
    found: Any

    def run(self, device: str = "cpu") -> Any:
        """The words that the instruction gives here."""
        out = np.zeros((len(self.operands), 4), np.uint32)
        kernel = _module(self.opcode, self.tail)["lookup"]
        kernel.launch(grid=1, block=len(self.operands), args=[self.texture, self.operands, out], device=device)
        return out[:, self.kept]


@cache
def experiments() -> dict[str, Experiment]:
    """All experiments, by name."""
    stored = np.load(_FILE)
    found = {}
    for name, settings in json.loads(str(stored["experiments"])).items():
        levels = [stored[f"{name}.texels{level}"] for level in range(settings["levels"])]
        address = settings["texture"].pop("address", "clamp")
        texture = ptxlab.Texture(levels if len(levels) > 1 else levels[0], address=address, **settings["texture"])
        operands, words = stored[f"{name}.coordinates"], stored[f"{name}.found"]
        found[name] = Experiment(settings["op"], settings["extra"], texture, operands, settings["keep"], words)
    return found


@cache
def _module(opcode: str, tail: str) -> ptxlab.ir.Module:
    words = opcode.split(".")
    at = next(number for number, word in enumerate(words) if word in GEOMETRIES)
    name, geometry, types = ".".join(words[:at]), words[at], words[at + 1 :]
    if types == ["s32"]:
        types = ["f32", "s32"]
    result, coordinate = [*types, *["f32", "f32"][len(types) :]]
    operands = iter(range(8))

    def vector(count: int, kind: str, first: str = "") -> str:
        taken = [f"{(first if number == 0 else '') or kind}{next(operands)}" for number in range(count)]
        return "{" + ", ".join(taken + taken[-1:] * (_PADDED[count] - count)) + "}"

    register = "%r" if coordinate == "s32" else "%f"
    place = vector(_COORDINATES[geometry], register, "%r" if geometry[0] == "a" else "")
    rest = f", {register}{next(operands)}" if name == "tex.level" else ""
    if name == "tex.grad":
        rest += "".join(f", {vector(_OFFSETS[geometry], '%f')}" for _ in range(2))
    if "e" in tail:
        rest += f", {vector(_OFFSETS[geometry], '%r')}"
    width, texel = ("v2", "{%o0, %o1}") if result == "f16x2" else ("v4", "{%o0, %o1, %o2, %o3}")
    loads = "".join(f"ld.global.b32 %r{word}, [%rd1+{4 * word}]; mov.b32 %f{word}, %r{word};\n" for word in range(8))
    return ptxlab.parse(
        header("8.0", "sm_90")
        + f""".entry lookup(.param .u64 texture, .param .u64 in, .param .u64 out) {{
    .reg .b64 %rd<6>; .reg .b32 %r<8>; .reg .b32 %o<4>; .reg .f32 %f<8>; .reg .b32 %t; .reg .pred %p;
    ld.param.u64 %rd0, [texture]; ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
    mov.u32 %t, %tid.x; mul.wide.u32 %rd3, %t, 32; add.u64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd4, %t, 16; add.u64 %rd2, %rd2, %rd4;
    mov.b32 %o2, 0; mov.b32 %o3, 0;
    {loads}
    {name}.{geometry}.{width}.{result}.{coordinate} {texel}|%p, [%rd0, {place}]{rest};
    @%p st.global.v4.b32 [%rd2], {{%o0, %o1, %o2, %o3}};
    ret;
}}
""",
        name="lookup.ptx",
    )

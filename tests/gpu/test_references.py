"""Variables that refer to textures, samplers and multicast addresses: what a GPU refuses, and why."""

import numpy as np
import pytest

import ptxlab
from tests.gpu.driver_of_python import Driver
from tests.tools import header

ENTRY = ".visible .entry k(.param .u64 a) { ret; }\n"
RAMP = np.arange(8, dtype=np.float32)


def refusal(declared: str, mode: str = "", args: tuple[object, ...] = (0,), **bound: object) -> ptxlab.Diagnostic:
    """What a launch on a GPU says of a module with such a variable."""
    head = header("8.0", "sm_80").replace("sm_80", f"sm_80{mode}")
    module = ptxlab.parse(f"{head}{declared}{ENTRY}", name="k.ptx")
    for name, value in bound.items():
        module.set(name, value)
    with pytest.raises(ptxlab.KernelError) as refused:
        module["k"].launch(1, 1, args, device="cuda")
    (found,) = refused.value.diagnostics
    return found


def test_samplers(fake: Driver) -> None:
    found = refusal(".global .samplerref how;\n", ", texmode_independent")
    assert found.message == "`how` is a `.samplerref`: CUDA's driver loads no module that has one"
    assert found.labels[0].span.text == "how"
    found = refusal("", args=(ptxlab.Sampler(),))
    assert "a sampler apart from its texture is for the emulator: CUDA gives textures their own" in found.message


def test_arrays_of_textures(fake: Driver) -> None:
    found = refusal(".global .texref images[2];\n", images=[ptxlab.Texture(RAMP)] * 2)
    assert found.message == "`images` is an array: CUDA's driver has references to single textures and surfaces only"


def test_multicast_addresses(fake: Driver) -> None:
    found = refusal("", args=(ptxlab.Multicast([RAMP.copy(), RAMP.copy()]),))
    assert "a multicast address is of several GPUs at an NVSwitch, and a launch has one" in found.message


def test_variables_in_a_chain(fake: Driver) -> None:
    module = ptxlab.parse(f"{header('8.0', 'sm_80')}.global .texref image;\n{ENTRY}", name="k.ptx")
    module.set("image", ptxlab.Texture(RAMP))
    with pytest.raises(ptxlab.KernelError, match="refers to a texture or surface, which grids of a chain take"):
        ptxlab.launch_chain((module["k"], 1, 1, [0]), (module["k"], 1, 1, [0]), device="cuda")


def test_references_are_bound_before_the_launch(fake: Driver) -> None:
    module = ptxlab.parse(f"{header('8.0', 'sm_80')}.global .texref image;\n{ENTRY}", name="k.ptx")
    module.set("image", ptxlab.Texture(RAMP))
    with pytest.raises(ValueError, match="arrays of this machine's memory"):
        module["k"].launch(1, 1, [0], device="cuda", wait=False)

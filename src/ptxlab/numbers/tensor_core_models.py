"""How each architecture's tensor core adds up: products in a step, fraction bits kept, formats it converts first.

Found by MMA-Sim (arXiv 2511.10909) by experiment, and for sm_90 found again on an H200, where the model agrees with
`mma`, `mma.sp` and `wmma` on all values tried. Sparse products on other architectures are not covered there: they are
taken to be what sm_90 was seen to do, a step over the stored elements as over those of a dense row.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Addition:
    """One addition: how many products it takes, and how many bits below the largest exponent it keeps."""

    products: int
    fraction: int
    as_f16: bool = False
    """The factors are made f16 before they are multiplied: instructions that the hardware does not have itself."""
    short: bool = False
    """A result of f32 is cut to 13 fraction bits."""


@dataclass(frozen=True)
class Model:
    """The steps of an architecture, by what is multiplied."""

    half: Addition  # f16 and bf16
    tf32: Addition
    fp8: Addition  # and fp6, fp4


VOLTA = Model(half=Addition(4, 23), tf32=Addition(4, 23), fp8=Addition(4, 23))
TURING = Model(half=Addition(8, 24), tf32=Addition(4, 24), fp8=Addition(8, 24))
AMPERE = Model(half=Addition(8, 24), tf32=Addition(4, 24), fp8=Addition(8, 24, as_f16=True))
ADA = replace(AMPERE, fp8=Addition(16, 13, short=True))
HOPPER = Model(half=Addition(16, 25), tf32=Addition(8, 25), fp8=Addition(16, 25, as_f16=True))
BLACKWELL_120 = replace(HOPPER, fp8=Addition(32, 25))

# What `wgmma` does on sm_90a, the only target that has it: all products of an element in one step, fp8 with fewer bits.
# Found by MMA-Sim, too, and compared with an H200: evidence/agreement_gpu.json.
WARPGROUP = Model(half=Addition(16, 25), tf32=Addition(8, 25), fp8=Addition(32, 13, short=True))

# From each target on, up to the next.
MODELS = {70: VOLTA, 75: TURING, 80: AMPERE, 89: ADA, 90: HOPPER, 120: BLACKWELL_120}


def model_of(target: int) -> Model:
    """The model of a target: 90 for `sm_90a`."""
    return MODELS[max(number for number in MODELS if number <= max(target, 70))]

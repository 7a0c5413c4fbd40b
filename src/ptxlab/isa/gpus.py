"""GPUs by name: whose arithmetic the emulator computes with, and which modules they can run.

The driver's names have more words (`NVIDIA A100-SXM4-80GB`), users write fewer (`a100`): `gpu_named` takes both, and a
target such as `sm_90` for a GPU that is not listed.
"""

import re
from functools import cache

from ptxlab.values import dataclass

from .targets import TARGETS, Target, target_named

# From CUDA's list of GPUs and their compute capabilities.
GPUS = {
    "V100": "sm_70",
    "T4": "sm_75",
    "A100": "sm_80",
    "A10": "sm_86",
    "A40": "sm_86",
    "RTX 3090": "sm_86",
    "Orin": "sm_87",
    "L4": "sm_89",
    "L40S": "sm_89",
    "RTX 4090": "sm_89",
    "H100": "sm_90",
    "H200": "sm_90",
    "GH200": "sm_90",
    "B200": "sm_100",
    "GB200": "sm_100",
    "B300": "sm_103",
    "GB300": "sm_103",
    "Thor": "sm_110",
    "RTX 5090": "sm_120",
    "RTX PRO 6000": "sm_120",
    "GB10": "sm_121",
}
# SMs of those whose number does not depend on the model: by NVIDIA's data sheets, H100 and B200 as SXM modules.
SMS = {
    "V100": 80, "T4": 40, "A100": 108, "A10": 72, "A40": 84, "RTX 3090": 82, "L4": 58, "L40S": 142, "RTX 4090": 128,
    "H100": 132, "H200": 132, "GH200": 132, "B200": 148, "GB200": 152, "B300": 148, "RTX 5090": 170,
    "RTX PRO 6000": 188, "GB10": 48,
}  # fmt: skip
# The GPU that a target names, where there are several of it.
_TYPICAL = {"sm_86": "A40", "sm_89": "L40S", "sm_90": "H200", "sm_100": "B200", "sm_103": "B300", "sm_120": "RTX 5090"}


@dataclass(frozen=True)
class GpuModel:
    """A GPU: its name, and what it is, such as `sm_90`."""

    name: str
    target: str

    def architecture_for(self, target: str) -> str | None:
        """What to compile a module of this target for, or None where this GPU can't run it."""
        return architecture_for(self.target, target)


def architecture_for(own: str, target: str) -> str | None:
    """What a module of a target becomes on a GPU that is `own`; None where it can't run there.

    >>> [architecture_for("sm_90", target) for target in ("sm_80", "sm_90a", "sm_100a", "sm_120f")]
    ['sm_90', 'sm_90a', None, None]
    """
    wanted = target_named(target)
    here = Target(target_named(own).number, wanted.suffix)
    return str(here) if here.has(wanted) else None


@cache
def gpu_named(name: str) -> GpuModel:
    """The GPU of that name; `ValueError` lists those there are.

    >>> gpu_named("NVIDIA A100-SXM4-80GB"), gpu_named("sm_86").target
    (GpuModel(name='A100', target='sm_80'), 'sm_86')
    """
    words = _words(name)
    found = [known for known in GPUS if _contains(words, _words(known))]
    if found:
        chosen = max(found, key=len)
        return GpuModel(chosen, GPUS[chosen])
    if name in TARGETS:
        number = target_named(name).number
        return GpuModel(name, f"sm_{number}")
    from ptxlab.report.nearest import nearest

    close = nearest(name, GPUS)
    meant = f"did you mean {close!r}? " if close else ""
    raise ValueError(f"gpu={name!r}: {meant}expected one of {', '.join(GPUS)}, or a target such as sm_90")


@cache
def gpu_of_target(target: str) -> GpuModel:
    """The GPU that a module runs on if none is named: that of its own target.

    >>> gpu_of_target("sm_90a").name
    'H200'
    """
    own = f"sm_{target_named(target).number}"
    name = _TYPICAL.get(own) or next((name for name, known in GPUS.items() if known == own), own)
    return GpuModel(name, own)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+[a-z]*", name.lower())


def _contains(words: list[str], wanted: list[str]) -> bool:
    """Whether the words of a name come one after the other."""
    length = len(wanted)
    return any(words[at : at + length] == wanted for at in range(len(words) - length + 1))

"""Directives between the parameters of a function and its body (PTX ISA 11.4 and 11.7)."""

from typing import Literal

from ptxlab.values import dataclass

from .targets import Since, since


@dataclass(frozen=True, slots=True)
class Directive:
    """A performance-tuning or cluster directive: whose it is, how many numbers it takes and since when it is there."""

    name: str
    owner: Literal["entry", "func", "both"]  # the prototype of a call takes what is for device functions alone
    least: int
    most: int
    values: range
    since: Since
    text: str


_POSITIVE = range(1, 1 << 32)
_ANY = range(1 << 32)

DIRECTIVES = {
    directive.name: directive
    for directive in (
        Directive("maxnreg", "entry", 1, 1, _POSITIVE, since("1.3"), "The most registers a thread may have."),
        Directive("maxntid", "entry", 1, 3, _POSITIVE, since("1.3"), "The most threads a block will be launched with."),
        Directive("reqntid", "entry", 1, 3, _POSITIVE, since("2.1"), "The exact number of threads of every block."),
        Directive("minnctapersm", "entry", 1, 1, _POSITIVE, since("2.0"), "The minimum number of blocks on an SM."),
        Directive("maxnctapersm", "entry", 1, 1, _POSITIVE, since("1.3 until 2.1"), "Earlier `.minnctapersm`."),
        Directive(
            "reqnctapercluster", "entry", 1, 3, _ANY, since("7.8 sm_90"), "The exact number of blocks of a cluster."
        ),
        Directive(
            "explicitcluster", "entry", 0, 0, _ANY, since("7.8 sm_90"), "The launch must say the cluster's size."
        ),
        Directive("maxclusterrank", "entry", 1, 1, _ANY, since("7.8 sm_90"), "The most blocks a cluster will have."),
        Directive("blocksareclusters", "entry", 0, 0, _ANY, since("9.0 sm_90"), "The launch counts clusters."),
        Directive("noreturn", "func", 0, 0, _ANY, since("6.4 sm_30"), "The function never returns to its caller."),
        Directive("abi_preserve", "func", 1, 1, range(240), since("9.0 sm_80"), "Data registers the callee preserves."),
        Directive(
            "abi_preserve_control", "func", 1, 1, range(12), since("9.0 sm_80"), "The same for control registers."
        ),
        Directive("minperctamemory", "entry", 1, 1, _ANY, since("9.4 sm_80"), "Bytes of global memory for each block."),
        Directive(
            "language", "both", 1, 64, range(11), since("9.3"), "The languages that the function was written in."
        ),
    )
}

# What `.language` may name, beside numbers; in any case.
LANGUAGES = (
    "unknown", "ptx", "nvvm", "cuda c++", "cuda c++ tile", "tile ir", "python-cutile", "fortran", "optix",
)  # fmt: skip

# Pairs that contradict each other, and what one cannot do without.
CONFLICTS = (("maxntid", "reqntid"), ("maxclusterrank", "reqnctapercluster"))
NEEDS = {"blocksareclusters": ("reqntid", "reqnctapercluster")}

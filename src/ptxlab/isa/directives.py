"""Directives that stand between the parameters of a function and its body (PTX ISA 11.4 and 11.7)."""

from dataclasses import dataclass

from .targets import Since, since


@dataclass(frozen=True, slots=True)
class Directive:
    """A performance-tuning or cluster directive: how many numbers it takes and since when it is there."""

    name: str
    least: int
    most: int
    since: Since
    positive: bool
    text: str


DIRECTIVES = {
    directive.name: directive
    for directive in (
        Directive("maxnreg", 1, 1, since("1.3"), True, "The most registers a thread may have."),
        Directive("maxntid", 1, 3, since("1.3"), True, "The most threads a block will be launched with."),
        Directive("reqntid", 1, 3, since("2.1"), True, "The exact number of threads of every block."),
        Directive("minnctapersm", 1, 1, since("2.0"), True, "The blocks that should fit on a multiprocessor at once."),
        Directive("maxnctapersm", 1, 1, since("1.3 until 2.1"), True, "The older name of `.minnctapersm`."),
        Directive("noreturn", 0, 0, since("6.4 sm_30"), True, "The function never returns to its caller."),
        Directive("reqnctapercluster", 1, 3, since("7.8 sm_90"), True, "The exact number of blocks of a cluster."),
        Directive("explicitcluster", 0, 0, since("7.8 sm_90"), True, "The launch must say the size of the cluster."),
        Directive("maxclusterrank", 1, 1, since("7.8 sm_90"), True, "The most blocks a cluster will have."),
        Directive("blocksareclusters", 0, 0, since("9.0 sm_90"), True, "The grid of the launch counts clusters."),
        Directive("abi_preserve", 1, 1, since("9.0 sm_80"), False, "Data registers that the callee must preserve."),
        Directive("abi_preserve_control", 1, 1, since("9.0 sm_80"), False, "The same for control registers."),
    )
}

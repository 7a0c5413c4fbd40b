"""What a `tcgen05.mma` keeps of A, or with `.ws` of B, in a collector buffer for MMAs after it (PTX ISA 9.7.16.10).

There is one buffer for A and there are four for B. `fill` keeps the matrix, `use` and `lastuse` may take it from there
instead of from memory, `lastuse` and `discard` empty the buffer. Which of the two places a matrix is taken from, the
hardware decides, so an MMA is right only if both hold the same.
"""

USES = ("fill", "use", "lastuse", "discard")
FILL, USE, LAST_USE, DISCARD = range(4)
BUFFERS = ("a", "b0", "b1", "b2", "b3")


def collector_of(modifier: str | None) -> int:
    """`collector::b1::use` as a number: four for each buffer, and the use; without one, A is discarded."""
    _, buffer, use = (modifier or "collector::a::discard").split("::")
    return BUFFERS.index(buffer) * len(USES) + USES.index(use)


def may_be_kept(collector: int) -> bool:
    """Whether the hardware may take the matrix from the buffer instead of from memory."""
    return collector % len(USES) in (USE, LAST_USE)


def is_kept_of_a(collector: int) -> bool:
    """Whether the buffer is that of A."""
    return collector < len(USES)

"""What a solution has to do beside giving the right values, judged by what was counted while it ran.

needs=[executes("shfl", "lanes exchange values by `shfl.sync`")]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Counters = Mapping[str, Any]
"""As `result.counters` of a launch with `profile=True` has them."""


@dataclass(frozen=True)
class Need:
    """Something that must hold of what was counted, and what to say where it does not."""

    holds: Callable[[Counters], bool]
    otherwise: Callable[[Counters], str]


def executes(head: str, why: str) -> Need:
    """An instruction of that name is executed, whatever its modifiers."""
    return Need(lambda counted: head in counted["by_instruction"], lambda _: f"no thread executes `{head}`: {why}")


def avoids(head: str, why: str) -> Need:
    """No instruction of that name is executed."""
    return Need(
        lambda counted: head not in counted["by_instruction"],
        lambda counted: f"`{head}` is executed {counted['by_instruction'][head]:,} times: {why}",
    )


def avoids_space(space: str, why: str) -> Need:
    """No thread reads or writes that state space, such as `shared`."""
    return Need(
        lambda counted: space not in counted["bytes"],
        lambda counted: f"threads access {sum(counted['bytes'][space].values()):,} bytes of `.{space}` memory: {why}",
    )


def reads_at_most(limit: int, why: str, space: str = "global") -> Need:
    """Threads read at most this many bytes."""

    def read(counted: Counters) -> int:
        return int(counted["bytes"].get(space, {}).get("read", 0))

    return Need(
        lambda counted: read(counted) <= limit,
        lambda counted: f"threads read {read(counted):,} bytes of `.{space}` memory where {limit:,} suffice: {why}",
    )


def requests_at_most(limit: int, why: str, space: str = "global") -> Need:
    """Warps request global or shared memory at most this often: one instruction of a warp is one request."""
    name = f"{space}_requests"
    return Need(
        lambda counted: counted["requests"][name] <= limit,
        lambda counted: (
            f"warps request `.{space}` memory {counted['requests'][name]:,} times where {limit:,} suffice: {why}"
        ),
    )


def keeps_at_least(limit: int, why: str) -> Need:
    """MMAs of tcgen05 may take at least this many bytes of A from the collector buffer instead of from memory."""

    def kept(counted: Counters) -> int:
        return sum(int(of_kind.get("collector_bytes", 0)) for of_kind in counted["mmas"].values())

    return Need(
        lambda counted: kept(counted) >= limit,
        lambda counted: f"MMAs may keep {kept(counted):,} bytes of A between them where {limit:,} are possible: {why}",
    )


def has_no_bank_conflicts(why: str) -> Need:
    """Each request to shared memory takes the fewest wavefronts that its bytes allow."""

    def wavefronts(counted: Counters) -> str:
        found = counted["requests"]
        return (
            f"requests to shared memory take {found['wavefronts']:,} wavefronts where {found['ideal_wavefronts']:,} "
            f"suffice: {why}"
        )

    return Need(
        lambda counted: counted["requests"]["wavefronts"] <= counted["requests"]["ideal_wavefronts"], wavefronts
    )


def is_coalesced(why: str) -> Need:
    """Each request to global memory takes the fewest sectors that its bytes allow."""

    def sectors(counted: Counters) -> str:
        found = counted["requests"]
        return (
            f"requests to global memory take {found['sectors']:,} sectors of 32 bytes where {found['ideal_sectors']:,} "
            f"suffice: {why}"
        )

    return Need(lambda counted: counted["requests"]["sectors"] <= counted["requests"]["ideal_sectors"], sectors)

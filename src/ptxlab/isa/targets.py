"""Targets, PTX versions, and when something is available.

A target names hardware: `sm_80` features are on that chip and every later one, `sm_90a` features on exactly that chip,
`sm_100f` features on the family of that chip from that member on. Availability is written as in the manual's notes:
`"8.0 sm_90a | 8.6 sm_100a sm_120a"` means PTX 8.0 with sm_90a, or PTX 8.6 with sm_100a or sm_120a;
`"3.0 sm_30 until 6.4 sm_70"` means that PTX 6.4 removed it from sm_70 and later.
"""

import re
from functools import cache

from ptxlab.values import dataclass

Version = tuple[int, int]

# Every version of PTX there has been (release notes; `ptxas --list-version`).
VERSIONS: tuple[Version, ...] = tuple(
    (major, minor)
    for major, minors in {1: 6, 2: 4, 3: 3, 4: 4, 5: 2, 6: 6, 7: 9, 8: 9, 9: 5}.items()
    for minor in range(minors)
)

# The PTX version that introduced each target (release notes, table of PTX versions; ptxas agrees).
TARGETS: dict[str, Version] = {
    name: version
    for version, names in {
        (1, 0): "sm_10 sm_11",
        (1, 2): "sm_12 sm_13",
        (2, 0): "sm_20 sm_21",
        (3, 0): "sm_30",
        (3, 1): "sm_35",
        (4, 0): "sm_32 sm_50",
        (4, 1): "sm_37 sm_52",
        (4, 2): "sm_53",
        (5, 0): "sm_60 sm_61 sm_62",
        (6, 0): "sm_70",
        (6, 1): "sm_72",
        (6, 3): "sm_75",
        (7, 0): "sm_80",
        (7, 1): "sm_86",
        (7, 4): "sm_87",
        (7, 8): "sm_89 sm_90",
        (8, 0): "sm_90a",
        (8, 6): "sm_100 sm_100a sm_101 sm_101a",
        (8, 7): "sm_120 sm_120a",
        (8, 8): "sm_100f sm_101f sm_103 sm_103f sm_103a sm_120f sm_121 sm_121f sm_121a",
        (9, 0): "sm_88 sm_110 sm_110f sm_110a",
        (9, 4): "sm_107 sm_107f sm_107a",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed target name: `number` 90 and `suffix` "a" for `sm_90a`."""

    number: int
    suffix: str

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"

    @property
    def family(self) -> int:
        """The family that `f` features are shared in: 10 for sm_100 and sm_103, 12 for sm_120 and sm_121."""
        return self.number // 10

    @property
    def shared_memory(self) -> int:
        """The bytes of shared memory that one block can have, static and dynamic together."""
        return 1024 * _SHARED_MEMORY.get(self.number, 227 if self.number > 90 else 48)

    def has(self, needed: "Target") -> bool:
        """Whether this target offers what `needed` names."""
        if needed.suffix == "a":
            return self == needed
        if needed.suffix == "f":
            return bool(self.suffix) and self.family == needed.family and self.number >= needed.number
        return self.number >= needed.number


# Kilobytes that a block can have, from CUDA's table of compute capabilities: 48 before sm_70, 227 from sm_90 on but for
# those named. The table does not have sm_88 and sm_107: they are taken to be like their neighbours.
_SHARED_MEMORY = {70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 88: 99, 89: 99, 90: 227, 120: 99, 121: 99}


@cache
def target_named(name: str) -> Target:
    """The target `sm_90a` names; sm_101 is today's sm_110, renamed in PTX 9.0."""
    found = re.fullmatch(r"sm_(\d+)([af]?)", name)
    assert found, name
    number = int(found[1])
    return Target(110 if number == 101 else number, found[2])


@dataclass(frozen=True, slots=True)
class Since:
    """When something is available: from any of `alternatives` on, each a PTX version with a target, until `removed`."""

    alternatives: tuple[tuple[Version, Target], ...]
    removed: tuple[tuple[Version, Target], ...] = ()

    def holds(self, version: Version, target: Target) -> bool:
        """Whether a module of this version and target may use it."""
        return _reached(self.alternatives, version, target) and not _reached(self.removed, version, target)

    def __str__(self) -> str:
        text = " or ".join(f"PTX {v[0]}.{v[1]} with {chip}" for v, chip in self.alternatives)
        return text + "".join(f", until PTX {v[0]}.{v[1]} with {chip}" for v, chip in self.removed)


def _reached(steps: tuple[tuple[Version, Target], ...], version: Version, target: Target) -> bool:
    return any(version >= needed and target.has(chip) for needed, chip in steps)


@cache
def since(text: str) -> Since:
    """Read `"8.0 sm_90a | 8.6 sm_100a sm_120a"`."""
    available, _, removed = text.partition("until")
    return Since(_steps(available), _steps(removed))


def _steps(text: str) -> tuple[tuple[Version, Target], ...]:
    alternatives: list[tuple[Version, Target]] = []
    for part in filter(str.strip, text.split("|")):
        version, *chips = part.split()
        major, minor = version.split(".")
        alternatives += [((int(major), int(minor)), target_named(chip)) for chip in chips or ["sm_10"]]
    return tuple(alternatives)


ALWAYS = since("1.0 sm_10")

"""Releases of ptxas, and what they judge otherwise than each other.

The table follows the manual. Each row of `TOLERATED` is something that the manual and ptxas 13.4 refuse, and ptxas 13.0
accepts, as does the table; each of `NEWER` is something that ptxas 13.4 accepts, and ptxas 13.0 and the table refuse.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from ptxlab.values import dataclass

from .operand import Expected, Shape
from .targets import Target, Version, since
from .types import TYPES

RELEASES: dict[str, Version] = {"13.0": (9, 0), "13.4": (9, 4)}
"""The releases that are followed, and the newest version of PTX that each reads."""

EARLIER_TARGETS: dict[str, dict[str, Version]] = {"13.0": {"sm_88": (7, 4)}}
"""Targets that a release accepts with an earlier version than the one that introduced them."""


@dataclass(frozen=True, slots=True)
class Use:
    """An instruction as it is written, and where; `expected` is empty where it has no form."""

    spelling: str
    expected: Sequence[Expected]
    shapes: Sequence[Shape]
    version: Version
    target: Target
    reads_kernel_parameter: bool = False
    repeats_result: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseChange:
    """What releases differ about: of which instructions `holds` is true, what is wrong with them, what to write."""

    spelling: str
    holds: Callable[[Use], bool]
    text: str
    help: str = ""


@lru_cache(4096)
def named(rows: tuple[ReleaseChange, ...], spelling: str) -> tuple[ReleaseChange, ...]:
    """The rows that are about instructions of a spelling; `holds` asks for the rest."""
    return tuple(row for row in rows if re.match(row.spelling, spelling))


def _always(use: Use) -> bool:
    return True


def _is_before(available: str) -> Callable[[Use], bool]:
    return lambda use: not since(available).holds(use.version, use.target)


_BRAIN = {TYPES["bf16"]: "b16", TYPES["bf16x2"]: "b32"}


def _is_loose_brain(use: Use) -> bool:
    """Whether an operand of bf16 is something other than untyped registers of its width."""
    return any(
        expected.kind == "value" and expected.type in _BRAIN and _is_other(expected, shape)
        for expected, shape in zip(use.expected, use.shapes, strict=False)
    )


def _is_other(expected: Expected, shape: Shape) -> bool:
    assert expected.type is not None
    parts = shape[1:] if isinstance(shape, tuple) and expected.count else (shape,)
    return any(
        (isinstance(part, tuple) and part[0] == "{") or (part in TYPES and part != _BRAIN[expected.type])
        for part in parts
    )


def _has_typed_result(use: Use) -> bool:
    """Whether the first operand is something other than an untyped register, or a vector of them."""
    shape = use.shapes[0]
    parts = shape[1:] if isinstance(shape, tuple) else (shape,)
    return any(part in TYPES and TYPES[part].kind != "b" for part in parts) or (parts != (shape,) and "_" in parts)


def _has_predicate(use: Use) -> bool:
    """Whether a predicate is an element of a vector."""
    return any(isinstance(shape, tuple) and shape[0] == "{" and "pred" in shape[1:] for shape in use.shapes)


def _has_odd_address(use: Use) -> bool:
    bases = [shape[1] for shape in use.shapes if isinstance(shape, tuple) and shape[0] == "["]
    return any(base in TYPES and (TYPES[base].kind not in "bus" or TYPES[base].width != 32) for base in bases)


TOLERATED = (
    ReleaseChange(
        r"fence\.(acquire|release)\.\w+$", _is_before("8.6 sm_90"),
        "`fence.acquire` and `fence.release` need PTX 8.6 with sm_90", "write `fence.acq_rel`",
    ),
    ReleaseChange(
        r"cvt\..*\.e2m1x2\.f16x2$", _is_before("9.1 sm_100f sm_110f sm_120f"),
        "this conversion from `.f16x2` needs PTX 9.1 with sm_100f, sm_110f or sm_120f", "raise the version to `9.1`",
    ),
    ReleaseChange(r"(st|red)\.async\.mmio\..*\.gpu\b", _always, "with `.mmio` the scope is `.sys`", "write `.sys`"),
    ReleaseChange(
        r"tcgen05\.(ld|st)\.(?!.*\baligned\b)", _always,
        "all threads of the warp must execute it together, and `.aligned` must say so", "write `.sync.aligned`",
    ),
    ReleaseChange(
        r"tcgen05\.(ld|st)\b", _has_odd_address, "an address of tensor memory is an untyped or integer register",
    ),
    ReleaseChange(
        r"tcgen05\.ld\b", lambda use: use.repeats_result, "a register is the result twice", "name another register",
    ),
    ReleaseChange(
        r"ld\..*\bparam::func\b", lambda use: use.reads_kernel_parameter,
        "`.param::func` is of device functions, and this is a parameter of a kernel", "write `.param`",
    ),
    ReleaseChange(r"ldmatrix\..*\.b2\b", _always, "`ldmatrix` of this shape has no type beside `.b16`", "remove `.b2`"),
    ReleaseChange(r"multimem\.", _has_predicate, "a predicate is not a value of memory"),
    ReleaseChange(
        r"set\..*\.bf16(x2)?\.\w+$|multimem\.ld_reduce\..*\.bf16(x2)?$", _has_typed_result,
        "a result of `.bf16` is a `.b16` register, and one of `.bf16x2` a `.b32` register", "declare it as such",
    ),
    ReleaseChange(
        r"(add|sub|fma)\.(.*\.)?f32\.bf16\b", lambda use: not {"u16", "s16", "#int"}.isdisjoint(use.shapes),
        "an operand of `.bf16` is a `.b16` register", "declare it as such",
    ),
    ReleaseChange(
        "", _is_loose_brain,
        "an operand of `.bf16` is a `.b16` register, and one of `.bf16x2` a `.b32` register", "declare it as such",
    ),
)  # fmt: skip

NEWER = (
    ReleaseChange(r"atom\..*\.v\d\.", lambda use: "_" in use.shapes, "a vector that is not wanted can be `_`"),
    ReleaseChange(
        r"st\.bulk\b",
        lambda use: not _is_before("9.0 sm_100")(use) and use.shapes[1] in ("b32", "s32"),
        "the size can be any register of 32 bits",
    ),
    ReleaseChange(
        r"tcgen05\.mma\.sp\.cta_group::\d\.kind::mxf4\.block_scale$",
        lambda use: not _is_before("8.7 sm_100a")(use),
        "the size of scale vectors can be left out",
    ),
)

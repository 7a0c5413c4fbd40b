"""Copies from global to shared memory that go on while the thread does: cp.async (PTX ISA 9.7.9.25).

The bulk copies, whose opcode begins with `cp.async.bulk`, are in bulk_copy.py.
"""

from typing import Any

from .form import form
from .vocabulary import SHARED

COPY: dict[str, Any] = {
    "dst": "shared shared::cta",  # the manual asks for PTX 7.8 for `::cta`, ptxas does not
    "hint": (("L2::cache_hint", "7.4 sm_80"),),
    "prefetch": (("L2::64B L2::128B L2::256B", "7.4 sm_80"),),
    "name": "cp.async",
    "present": {"policy": "hint"},
}
OPERANDS = {"d": "shared", "a": "global", "size": "imm(4|8|16)", "policy": "u64"}
READ = OPERANDS | {"read": "u32 within(0..16)"}
IGNORE = OPERANDS | {"ignore": "pred reg"}
LINE = {"size": "imm(16)"}


@form(
    "cp.async.ca.dst.global{.hint}{.prefetch} [d], [a], size{, read}{, policy}", types=READ, since="7.0 sm_80", **COPY
)
@form(
    "cp.async.cg.dst.global{.hint}{.prefetch} [d], [a], size{, read}{, policy}",
    types=READ | LINE,
    since="7.0 sm_80",
    **COPY,
)
@form(
    "cp.async.ca.dst.global{.hint}{.prefetch} [d], [a], size, {!}ignore{, policy}",
    types=IGNORE,
    since="7.5 sm_80",
    **COPY,
)
@form(
    "cp.async.cg.dst.global{.hint}{.prefetch} [d], [a], size, {!}ignore{, policy}",
    types=IGNORE | LINE,
    since="7.5 sm_80",
    **COPY,
)
@form("cp.async.commit_group", since="7.0 sm_80")
@form("cp.async.wait_group n", types={"n": "imm"}, since="7.0 sm_80")
@form("cp.async.wait_all", since="7.0 sm_80")
@form("cp.async.mbarrier.arrive{.noinc}{.space}.b64 [a]", space=SHARED, since="7.0 sm_80")
def cp() -> None:
    """Copy 4, 8 or 16 bytes from global to shared memory in the background; groups or barriers tell when it is done."""

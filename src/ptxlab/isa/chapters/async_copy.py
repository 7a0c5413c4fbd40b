"""Copies from global to shared memory that run while the thread continues: cp.async (PTX ISA 9.7.9.25).

The bulk copies, whose opcode starts with `cp.async.bulk`, are in bulk_copy.py.
"""

from ..extent import addresses
from ..form import Modifiers, Slots, form
from ..machine import AddressValue, Machine, Value
from ..vocabulary import SHARED

COPY: Slots = {
    "dst": "shared shared::cta",  # the manual asks for PTX 7.8 for `::cta`, ptxas does not
    "hint": (("L2::cache_hint", "7.4 sm_80"),),
    "prefetch": (("L2::64B L2::128B L2::256B", "7.4 sm_80"),),
    "name": "cp.async",
    "present": {"policy": "hint"},
}
OPERANDS = {"d": "shared", "a": "global", "size": "imm(4|8|16)", "policy": "u64"}
READ = OPERANDS | {"read": "u32 within(0..16) most(size)"}
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
@addresses(d="size", a="read/size")
def cp_async(
    k: Machine,
    m: Modifiers,
    d: AddressValue,
    a: AddressValue,
    size: int,
    read: Value | None,
    ignore: Value | None,
    policy: Value | None,
) -> None:
    """Copy 4, 8 or 16 bytes from global to shared memory in the background; zeros beyond the first `read` bytes.

    With `ignore`, nothing is read and zeros are written where the predicate holds.
    """
    wanted = k.constant("u32", size) if read is None else read
    if ignore is not None:
        wanted = k.select(ignore, k.constant("u32", 0), wanted)
    k.async_copy.start(d, a, size, wanted)


@form("cp.async.commit_group", since="7.0 sm_80")
def cp_async_commit_group(k: Machine, m: Modifiers) -> None:
    """Make the copies that this thread has started since the last one a group."""
    k.async_copy.commit()


@form("cp.async.wait_group n", types={"n": "imm"}, since="7.0 sm_80")
def cp_async_wait_group(k: Machine, m: Modifiers, n: int) -> None:
    """Wait until at most the `n` latest groups of copies are under way."""
    k.async_copy.wait(n)


@form("cp.async.wait_all", since="7.0 sm_80")
def cp_async_wait_all(k: Machine, m: Modifiers) -> None:
    """Wait until all copies of this thread are done."""
    k.async_copy.commit()
    k.async_copy.wait(0)


@form("cp.async.mbarrier.arrive{.noinc}{.space}.b64 [a]", space=SHARED, types={"a": lambda m: m.space or "full"},
      since="7.0 sm_80")  # fmt: skip
def cp_async_mbarrier_arrive(k: Machine, m: Modifiers, a: AddressValue) -> None:
    """Arrive at an mbarrier once all copies so far are done; without `.noinc` it expects one arrival more for that."""
    k.async_copy.arrive(a, bool(m.noinc))

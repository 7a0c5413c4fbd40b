"""Barriers that live in shared memory and count arrivals and bytes: mbarrier (PTX ISA 9.7.13.15).

An address without a state space is generic, yet where it names a variable, ptxas wants one in shared memory.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..extent import addresses
from ..form import F, Modifiers, Slots, Specification, Values, form, unknown
from ..machine import AddressValue, Machine, Value
from ..vocabulary import SHARED, together

SHARED_OR_CLUSTER = (*SHARED, ("shared::cluster", "8.0 sm_90"))
SCOPES = (("cta", "8.0 sm_80"), ("cluster", "8.0 sm_90"))
LAYOUTS = (("layout::v0 layout::v1", "9.3 sm_90"),)
PRIMARY = (("phase_type::primary", "9.3 sm_90"),)
PHASES = (("phase_type::primary phase_type::conditional", "9.3 sm_90"),)
BYTES = "8.0 sm_90"
MULTICAST = "9.4 sm_107f"
REPORT = "9.3 sm_90"


def remote_state(m: Modifiers) -> str:
    """A barrier in another block returns no state."""
    cluster = getattr(m, "space", None) == "shared::cluster" or getattr(m, "shared_cluster", False)
    return "sink" if cluster else "u64 sink"


def address(m: Modifiers) -> str:
    """A generic address has 64 bits."""
    return "shared" if getattr(m, "space", None) or getattr(m, "shared_cluster", False) else "shared b64"


OPERANDS: dict[str, Specification] = {
    "d": remote_state,
    "a": address,
    "count": "u32 within(1..4294967295)",
    "bytes": "u32",
    "mask": "u32 within(0..4294967295)",
    "state": "u64",
    "parity": "u32 within(0|1)",
    "hint": "u32",
    "report": "pred sink",
    "value": "b8",
}


def on_barrier(
    syntax: str, since: str, *, types: Mapping[str, Specification] | None = None, space: Values = SHARED, **how: Any
) -> Callable[[F], F]:
    """Declare a form with the operands of `OPERANDS`; `types` says what is different in it."""
    names = re.findall("[a-z]+", syntax.partition(" ")[2])
    spaces: Slots = {"space": space} if "{.space}" in syntax else {}
    return form(
        syntax, since=since, types={name: OPERANDS[name] for name in names} | dict(types or {}), **spaces, **how
    )


ORDER: Slots = {"scope": SCOPES, "where": together}
RELEASE = ORDER | {"sem": (("release", "8.0 sm_80"), ("relaxed", "8.6 sm_90"))}
ACQUIRE = ORDER | {"sem": (("acquire", "8.0 sm_80"), ("relaxed", "8.6 sm_90")), "types": {"d": "pred"}}
RELAXED = ORDER | {"sem": "relaxed"}
FAR: Slots = {"space": SHARED_OR_CLUSTER}
SEVERAL = "{.sem}{.scope}{.shared::cluster}.multicast::cluster::32b.b64"
RELEASE_CTA = ORDER | {"sem": (("release", "8.0 sm_80"),), "scope": (("cta", "8.0 sm_80"),)}

# A barrier as the emulator keeps it, which is also the state that `mbarrier.arrive` returns: in its lowest bits the
# arrivals that are still expected, in the bit PARITY the parity of its phase.
ARRIVALS = (1 << 20) - 1
PARITY = 61


# How far an operation orders memory, or a fence before or after one that is `.relaxed`.
IN_BLOCK = 1
IN_CLUSTER = 2
RELAXED_ORDER = 4
INCOMPLETE = 8  # of an arrival: it must not complete the phase


def order(m: Modifiers) -> int:
    """How far an operation on a barrier orders memory, and whether only a fence makes it do so.

    Without a scope it is `.cta` to the manual, but common code arrives in other blocks with it, and that works.
    """
    scope = IN_BLOCK if m.scope == "cta" else IN_CLUSTER
    return scope | (RELAXED_ORDER if m.sem == "relaxed" else 0) | (INCOMPLETE if m.nocomplete else 0)


@on_barrier(
    "mbarrier.init{.layout}{.space}.b64 [a], count",
    "7.0 sm_80",
    types={"count": "u32 within(1..1048575)"},
    layout=LAYOUTS,
)
def mbarrier_init(k: Machine, m: Modifiers, a: AddressValue, count: Value) -> None:
    """Set a barrier up: each phase expects `count` arrivals."""
    k.mbarrier.initialize(a, count, int(m.layout == "layout::v1"))


@on_barrier("mbarrier.inval{.space}.b64 [a]", "7.0 sm_80")
def mbarrier_inval(k: Machine, m: Modifiers, a: AddressValue) -> None:
    """Give the memory of a barrier back for other use."""
    k.mbarrier.invalidate(a)


@form(
    "mbarrier.check_layout.layout{.space}.b64 d, [a]",
    layout="layout::v0 layout::v1",
    space=SHARED,
    types={"d": "pred"},
    since="9.3 sm_90",
)
def mbarrier_check_layout(k: Machine, m: Modifiers, a: AddressValue) -> Value:
    """Return whether a barrier has that layout."""
    return k.mbarrier.layout(a) == int(m.layout == "layout::v1")


@form(
    "mbarrier.pending_count{.layout}.b64 d, state",
    layout=(("layout::v0", "9.3 sm_90"),),
    types={"d": "u32", "state": "u64"},
    since="7.0 sm_80",
)
def mbarrier_pending_count(k: Machine, m: Modifiers, state: Value) -> Value:
    """Give the arrivals that were still expected in a state that `mbarrier.arrive` returned."""
    return k.cast(state & ARRIVALS, "u32")


@on_barrier("mbarrier.expect_tx{.sem}{.scope}{.space}.b64 [a], bytes", BYTES, **FAR, **RELAXED)
def mbarrier_expect_tx(k: Machine, m: Modifiers, a: AddressValue, bytes: Value) -> None:
    """Have the phase wait for that many bytes more."""
    k.mbarrier.expect(a, bytes, order(m) | RELAXED_ORDER)


@on_barrier(f"mbarrier.expect_tx{SEVERAL} [a], bytes, mask", MULTICAST, **RELAXED)
@on_barrier(f"mbarrier.complete_tx{SEVERAL} [a], bytes, mask", MULTICAST, **RELAXED)
@on_barrier(f"mbarrier.arrive{SEVERAL} d, [a]{{, count}}, mask", MULTICAST, **RELEASE)
@on_barrier(f"mbarrier.arrive.expect_tx{SEVERAL} d, [a], bytes, mask", MULTICAST, **RELEASE)
@on_barrier(f"mbarrier.arrive_drop{SEVERAL} d, [a]{{, count}}, mask", MULTICAST, **RELEASE)
@on_barrier(f"mbarrier.arrive_drop.expect_tx{SEVERAL} d, [a], bytes, mask", MULTICAST, **RELEASE)
@unknown("it reaches several barriers at a time", effects="mbarrier.multicast")
@addresses(a="8")
def mbarrier_multicast() -> None:
    """Do the same to the barriers at one offset in several blocks of the cluster."""


@on_barrier("mbarrier.complete_tx{.sem}{.scope}{.space}.b64 [a], bytes", BYTES, **FAR, **RELAXED)
def mbarrier_complete_tx(k: Machine, m: Modifiers, a: AddressValue, bytes: Value) -> None:
    """Complete that many bytes of the phase."""
    k.mbarrier.complete(a, bytes, order(m) | RELAXED_ORDER)


@on_barrier("mbarrier.arrive{.sem}{.scope}{.space}.b64 d, [a]", "7.0 sm_80", types={"d": "u64"}, **RELEASE)
@on_barrier("mbarrier.arrive{.sem}{.scope}{.space}.b64 d, [a]", "7.1 sm_80", types={"d": "sink"}, **FAR, **RELEASE)
@on_barrier(
    "mbarrier.arrive.noComplete{.sem}{.scope}{.space}.b64 d, [a], count",
    "7.0 sm_80",
    types={"d": "u64"},
    name="mbarrier.arrive",
    **RELEASE_CTA,
)
@on_barrier(
    "mbarrier.arrive.noComplete{.sem}{.scope}{.space}.b64 d, [a], count",
    "7.1 sm_80",
    types={"d": "sink"},
    name="mbarrier.arrive",
    **RELEASE_CTA,
)
@on_barrier("mbarrier.arrive{.sem}{.scope}{.space}.b64 d, [a], count", "7.8 sm_90", **FAR, **RELEASE)
def mbarrier_arrive(k: Machine, m: Modifiers, a: AddressValue, count: Value | None) -> Value:
    """Arrive at a barrier, once or `count` times; `d` is the state before that."""
    return k.mbarrier.arrive(a, 1 if count is None else count, order(m))


@on_barrier("mbarrier.arrive.expect_tx{.sem}{.scope}{.space}.b64 d, [a], bytes", BYTES, **FAR, **RELEASE)
def mbarrier_arrive_expect_tx(k: Machine, m: Modifiers, a: AddressValue, bytes: Value) -> Value:
    """Have the phase wait for that many bytes more, then arrive; `d` is the state before that."""
    k.mbarrier.expect(a, bytes)
    return k.mbarrier.arrive(a, 1, order(m))


@on_barrier("mbarrier.arrive_drop{.sem}{.scope}{.space}.b64 d, [a]", "7.0 sm_80", **FAR, **RELEASE)
@on_barrier(
    "mbarrier.arrive_drop.noComplete{.sem}{.scope}{.space}.b64 d, [a], count",
    "7.0 sm_80",
    name="mbarrier.arrive_drop",
    **RELEASE_CTA,
)
@on_barrier("mbarrier.arrive_drop{.sem}{.scope}{.space}.b64 d, [a], count", "7.8 sm_90", **FAR, **RELEASE)
def mbarrier_arrive_drop(k: Machine, m: Modifiers, a: AddressValue, count: Value | None) -> Value:
    """Arrive for the last time: later phases expect that many arrivals fewer."""
    return k.mbarrier.drop(a, 1 if count is None else count, order(m))


@on_barrier("mbarrier.arrive_drop.expect_tx{.sem}{.scope}{.space}.b64 d, [a], bytes", BYTES, **FAR, **RELEASE)
def mbarrier_arrive_drop_expect_tx(k: Machine, m: Modifiers, a: AddressValue, bytes: Value) -> Value:
    """Have the phase wait for that many bytes more, then arrive for the last time."""
    k.mbarrier.expect(a, bytes)
    return k.mbarrier.drop(a, 1, order(m))

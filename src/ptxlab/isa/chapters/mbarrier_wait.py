"""Waiting for a phase of an mbarrier, and asking whether it is over (PTX ISA 9.7.13.15.16)."""

from ..form import Modifiers, Slots
from ..machine import AddressValue, Machine, Value
from .mbarrier import ACQUIRE, PARITY, PHASES, PRIMARY, REPORT, on_barrier, order

# What the forms that return a report have in common, and those that return its value.
REPORTED: Slots = {"phase": "phase_type::primary", "writes": "d report", **ACQUIRE}
REPORTED_VALUE: Slots = {**REPORTED, "writes": "d report value"}


@on_barrier("mbarrier.test_wait{.phase}{.sem}{.scope}{.space}.b64 d, [a], state", "7.0 sm_80", phase=PRIMARY, **ACQUIRE)
def mbarrier_test_wait(k: Machine, m: Modifiers, a: AddressValue, state: Value) -> Value:
    """Ask whether the phase in which `state` was returned is over."""
    return k.mbarrier.test(a, state >> PARITY, order(m))


@on_barrier("mbarrier.test_wait.phase{.sem}{.scope}{.space}.b64 d|report, [a], state", REPORT, **REPORTED)
@on_barrier("mbarrier.test_wait.parity.phase{.sem}{.scope}{.space}.b64 d|report, [a], parity", REPORT, **REPORTED)
@on_barrier("mbarrier.try_wait.phase{.sem}{.scope}{.space}.b64 d|report, [a], state{, hint}", REPORT, **REPORTED)
@on_barrier(
    "mbarrier.try_wait.parity.phase{.sem}{.scope}{.space}.b64 d|report, [a], parity{, hint}", REPORT, **REPORTED
)
def mbarrier_report(
    k: Machine, m: Modifiers, a: AddressValue, state: Value | None, parity: Value | None, hint: Value | None
) -> tuple[Value, Value]:
    """Ask whether a phase is over, and whether its barrier has anything to report: only bulk copies and fabrics do."""
    return _asked(k, m, a, state, parity), k.constant("pred", 0)


@on_barrier(
    "mbarrier.test_wait.phase{.sem}{.scope}{.space}.b64 d{|report}, value, [a], state", REPORT, **REPORTED_VALUE
)
@on_barrier(
    "mbarrier.test_wait.parity.phase{.sem}{.scope}{.space}.b64 d{|report}, value, [a], parity", REPORT, **REPORTED_VALUE
)
@on_barrier(
    "mbarrier.try_wait.phase{.sem}{.scope}{.space}.b64 d{|report}, value, [a], state{, hint}", REPORT, **REPORTED_VALUE
)
@on_barrier(
    "mbarrier.try_wait.parity.phase{.sem}{.scope}{.space}.b64 d{|report}, value, [a], parity{, hint}",
    REPORT,
    **REPORTED_VALUE,
)
def mbarrier_report_value(
    k: Machine, m: Modifiers, a: AddressValue, state: Value | None, parity: Value | None, hint: Value | None
) -> tuple[Value, Value, Value]:
    """Ask whether a phase is over, and what its barrier has to report: 0 for nothing."""
    return _asked(k, m, a, state, parity), k.constant("pred", 0), k.constant("b8", 0)


def _asked(k: Machine, m: Modifiers, a: AddressValue, state: Value | None, parity: Value | None) -> Value:
    """Whether a phase is over that is known by a state or by its parity."""
    if state is not None:
        return k.mbarrier.test(a, state >> PARITY, order(m))
    assert parity is not None
    return k.mbarrier.test(a, k.cast(parity, "u64"), order(m))


@on_barrier(
    "mbarrier.test_wait.parity{.phase}{.sem}{.scope}{.space}.b64 d, [a], parity", "7.1 sm_80", phase=PHASES, **ACQUIRE
)
def mbarrier_test_wait_parity(k: Machine, m: Modifiers, a: AddressValue, parity: Value) -> Value:
    """Ask whether the phase of that parity, the current one or the one before, is over."""
    return k.mbarrier.test(a, k.cast(parity, "u64"), order(m))


@on_barrier(
    "mbarrier.try_wait{.phase}{.sem}{.scope}{.space}.b64 d, [a], state{, hint}", "7.8 sm_90", phase=PRIMARY, **ACQUIRE
)
def mbarrier_try_wait(k: Machine, m: Modifiers, a: AddressValue, state: Value, hint: Value | None) -> Value:
    """Wait, for a limited time, until the phase in which `state` was returned is over; return whether it is."""
    return k.mbarrier.wait(a, state >> PARITY, order(m))


@on_barrier(
    "mbarrier.try_wait.parity{.phase}{.sem}{.scope}{.space}.b64 d, [a], parity{, hint}",
    "7.8 sm_90",
    phase=PHASES,
    **ACQUIRE,
)
def mbarrier_try_wait_parity(k: Machine, m: Modifiers, a: AddressValue, parity: Value, hint: Value | None) -> Value:
    """Wait, for a limited time, until the phase of that parity is over; return whether it is."""
    return k.mbarrier.wait(a, k.cast(parity, "u64"), order(m))

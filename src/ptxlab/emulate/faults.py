"""What went wrong, in words: on the line of the instruction, with the thread, the address and the memory near it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate import access, state
from ptxlab.report import Diagnostic, error

if TYPE_CHECKING:
    from ptxlab.emulate.launch import Launch, Worker

_ACCESS = {state.LOAD: "read", state.STORE: "write", state.ATOMIC: "atomic operation"}
_SPACES = {access.SHARED: "shared", access.LOCAL: "local", access.PARAMETER: "parameter"}


def explain(launch: Launch, outcome: str | None, timeout: float | None) -> list[Diagnostic]:
    """Everything that a launch found wrong."""
    found = [_explain_fault(launch, worker) for worker in launch.workers if worker.fault.get("kind")]
    if outcome == "timeout":
        found.append(_explain_timeout(launch, timeout or 0))
    return found


def thread_name(launch: Launch, block: int, thread: int) -> str:
    """`thread (1,0,0) of block (2,0,0)`"""
    bx, by = launch.block[0], launch.block[1]
    gx, gy = launch.grid[0], launch.grid[1]
    t = (thread % bx, thread // bx % by, thread // bx // by)
    b = (block % gx, block // gx % gy, block // gx // gy)
    return f"thread ({t[0]},{t[1]},{t[2]}) of block ({b[0]},{b[1]},{b[2]})"


def _explain_fault(launch: Launch, worker: Worker) -> Diagnostic:
    fault = worker.fault
    kind, address, size, extra = (fault.get(name) for name in ("kind", "address", "size", "extra"))
    _, instruction = launch.compiled.places[fault.get("instruction")]
    module = launch.compiled.module
    span = module.span(instruction)
    who = thread_name(launch, fault.get("block"), fault.get("thread"))
    action = _ACCESS[fault.get("access")]

    def told(
        code: str, message: str, label: str, notes: list[str] | None = None, helps: list[str] | None = None
    ) -> Diagnostic:
        return error(code, message, span, label, notes=[*(notes or []), *_source_line(launch, fault.get("instruction"))],
                     helps=helps or [])  # fmt: skip

    match kind:
        case state.OUT_OF_BOUNDS:
            where, notes = _neighbourhood(launch, address, size, extra)
            return told("out-of-bounds", f"{action} of {size} bytes outside of {where}",
                        f"{who}, address {address:#x}", notes)  # fmt: skip
        case state.MISALIGNED:
            return told("misaligned", f"{action} of {size} bytes at address {address:#x}, which is no multiple of {size}",
                        who, helps=[f"align the address to {size} bytes, or access smaller parts"])  # fmt: skip
        case state.READ_ONLY:
            region = launch.region_at(address)
            return told(
                "read-only-write",
                f"{action} to {region.name if region else 'constant memory'}, which is read-only",
                who,
            )
        case state.STACK_OVERFLOW:
            return told("stack-overflow", f"the stack of a thread is full after {extra} calls", who,
                        helps=["bound the recursion, or turn it into a loop"])  # fmt: skip
        case state.TRAP:
            return told("trap", "the kernel stops itself with `trap`", who)
        case state.BAD_CALL:
            return told("bad-call", f"a call of {address:#x}, which is no function", who)
        case state.BAD_BRANCH:
            return told("bad-branch", f"`brx.idx` with index {extra}, beyond its list of targets", who)
        case state.BARRIER_COUNT:
            return told("bad-barrier", _barrier_count(extra), who)
        case state.BAD_BARRIER:
            return told("bad-barrier", _bad_barrier(extra), who)
        case state.BARRIER_DIVERGENCE:
            return told("barrier-divergence", "lanes of one warp wait at different `.aligned` instructions", who)
        case state.HANG:
            return told("hang", _hang(launch, extra), f"{who} waits here")
        case state.NO_MEMORY:
            return told("out-of-memory", "this machine has no memory left for the kernel", who)
        case state.ASSERTION:
            assertion = launch.services.assertion
            assert assertion is not None
            message, file, line, function = assertion
            return told("assertion-failed", f"assertion `{message}` failed", who, [f"in `{function}`, {file}:{line}"])
    raise AssertionError(f"fault {kind}")


def _hang(launch: Launch, status: int) -> str:
    waits = {
        state.AT_BARRIER: "a barrier that not all threads reach",
        state.MEETING: "lanes of its warp that never come",
        state.AT_PHASE: "a phase that never completes",
    }
    return f"a thread waits for {waits.get(status, 'something that never happens')}"


def _barrier_count(extra: int) -> str:
    given, expected = extra & 0xFFFFFFFF, extra >> 32
    if given % 32:
        return f"a barrier for {given} threads, which is no multiple of the warp size"
    return f"a barrier that {given or 'all'} threads shall come to, after others came who expect {expected or 'all'}"


def _bad_barrier(extra: int) -> str:
    if extra == 1 << 32:
        return "an mbarrier that nobody has initialised"
    if extra == 2 << 32:
        return "more arrivals than the mbarrier expects in this phase"
    return f"barrier {extra}, there are only 0 to 15" if extra else "an mbarrier that expects no arrivals"


def _neighbourhood(launch: Launch, address: int, size: int, space: int) -> tuple[str, list[str]]:
    """Which memory was missed, and by how far."""
    if space in _SPACES:
        limit = {access.SHARED: launch.shared_size}.get(space)
        note = [f"the block has {limit} bytes of shared memory"] if limit is not None else []
        return f"{_SPACES[space]} memory", note
    region = launch.region_at(address)
    if region is None or address - region.base > 1 << 32:
        return "all memory the kernel has", ["the address is 0: a null pointer"] if address < 4096 else []
    past = address - region.base
    place = (
        f"begins {past - region.size} bytes behind its end" if past >= region.size else f"begins at byte {past} of it"
    )
    return region.name, [f"{region.name} has {region.size} bytes; the access {place}"]


def _source_line(launch: Launch, number: int) -> list[str]:
    return []


def _explain_timeout(launch: Launch, timeout: float) -> Diagnostic:
    fault = launch.workers[0].fault
    _, instruction = launch.compiled.places[fault.get("instruction")]
    who = thread_name(launch, fault.get("block"), fault.get("thread"))
    return error(
        "timeout",
        f"the kernel was stopped after {timeout:g} seconds",
        launch.compiled.module.span(instruction),
        f"{who} was here",
        notes=[f"{launch.finished.value} of {launch.total} blocks had ended"],
    )

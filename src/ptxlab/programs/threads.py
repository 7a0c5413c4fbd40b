"""Which threads of a process are asleep until a time that they have set, as Linux shows it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

# System calls that end at a time, by their numbers, and which argument says so if it is not 0; None: they always do.
_TIMED: dict[str, dict[int, int | None]] = {
    "x86_64": {
        35: None, 230: None,  # nanosleep, clock_nanosleep
        202: 3, 128: 2, 7: 2, 271: 2, 23: 4, 270: 4, 232: 3, 281: 3,  # futex, sigtimedwait, poll, select, epoll_wait
    },
    "aarch64": {115: None, 101: None, 98: 3, 137: 2, 73: 2, 72: 4, 22: 3},
}  # fmt: skip
_FOREVER = "ffffffff"  # how a number of milliseconds ends that is -1, in 32 bits or 64


def asleep(process: int) -> dict[int, int]:
    """The threads that are asleep until a time, and how often each of them has gone to sleep until now."""
    return {int(thread.name): _sleeps(thread) for thread in _threads(process) if _is_timed(thread)}


def _threads(process: int) -> Iterator[Path]:
    try:
        yield from Path(f"/proc/{process}/task").iterdir()
    except FileNotFoundError:
        return  # it has ended


def _is_timed(thread: Path) -> bool:
    """Whether a thread is in a system call that ends at a time; not if that can't be known."""
    try:
        number, *arguments = (thread / "syscall").read_text().split()
    except (OSError, ValueError):
        return False  # it has ended, or belongs to another user
    timed = _TIMED.get(platform.machine(), {})
    if number == "running" or int(number) not in timed:
        return False
    at = timed[int(number)]
    return at is None or (int(arguments[at], 16) != 0 and not arguments[at].endswith(_FOREVER))


def _sleeps(thread: Path) -> int:
    """How often a thread has given up its processor by itself."""
    try:
        lines = (thread / "status").read_text().splitlines()
    except OSError:
        return -1  # it has ended
    return next((int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches")), -1)

"""What each function of an object needs of the GPU, as `ptxas -v` prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ptxlab.toolchain.messages import Message

_PROPERTIES = re.compile(r"Function properties for (\S+)")
_COMPILING = re.compile(r"Compiling entry function '([^']+)' for '(\w+)'")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_BYTES = re.compile(r"(\d+) bytes ([a-z]+(?: [a-z]+)*)(?:\[(\d+)\])?")


@dataclass(frozen=True, slots=True)
class Resources:
    """Registers a thread, bytes a thread (stack, spills, local), bytes a block (shared), barriers a block."""

    function: str
    entry: bool
    registers: int | None = None
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    local: int = 0
    barriers: int = 0
    constant: Mapping[int, int] = field(default_factory=dict)


def read_resources(messages: Iterable[Message]) -> list[Resources]:
    """The resources of each function, in the order ptxas compiled them."""
    found: dict[str, Resources] = {}
    entries: set[str] = set()
    current = ""
    for message in messages:
        compiling = _COMPILING.match(message.text)
        properties = _PROPERTIES.match(message.text)
        if compiling:
            entries.add(compiling[1])
        if properties:
            # An entry comes first, then what it calls, once for each entry that calls it.
            current = properties[1]
            known = found.get(current, Resources(current, current in entries))
            found[current] = _with_sizes(known, message.text)
        elif _USED.match(message.text) and current:
            found[current] = _with_use(found[current], message.text)
    return list(found.values())


def is_statistics(message: Message) -> bool:
    """Whether a message only belongs to `-v`."""
    return message.level == "info" and bool(
        _PROPERTIES.match(message.text)
        or _COMPILING.match(message.text)
        or _USED.match(message.text)
        or re.match(r"\d+ bytes gmem|Compile time =", message.text)
    )


def _with_use(resources: Resources, text: str) -> Resources:
    used, barriers = _USED.search(text), _BARRIERS.search(text)
    return replace(
        _with_sizes(resources, text),
        registers=int(used[1]) if used else None,
        barriers=int(barriers[1]) if barriers else 0,
    )


def _with_sizes(resources: Resources, text: str) -> Resources:
    """`resources` with every `N bytes KIND` of a message taken in."""
    sizes = {kind: int(size) for size, kind, bank in _BYTES.findall(text) if not bank}
    constant = {int(bank): int(size) for size, _, bank in _BYTES.findall(text) if bank}
    return replace(
        resources,
        stack=max(sizes.get("stack frame", resources.stack), sizes.get("cumulative stack size", 0)),
        spill_stores=sizes.get("spill stores", resources.spill_stores),
        spill_loads=sizes.get("spill loads", resources.spill_loads),
        shared=sizes.get("smem", resources.shared),
        local=sizes.get("lmem", resources.local),
        constant={**resources.constant, **constant},
    )

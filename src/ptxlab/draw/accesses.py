"""What the lanes of a warp ask of memory at one line: banks of shared memory, sectors of global memory."""

from __future__ import annotations

from typing import Any

from ptxlab.draw.numbers import listed
from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.isa.memory_system import BANKS, SECTOR

ACROSS = 8  # sectors side by side


def accesses(result: Any, line: int) -> Picture:
    """The costliest request that a warp made at a line; `result` is of `launch(profile=True)`."""
    patterns = result.counters.get("patterns")
    if patterns is None:
        raise ValueError("nothing is known of requests: launch with `profile=True`")
    if line not in patterns:
        known = ", ".join(str(number) for number in patterns) or "none"
        raise ValueError(f"no warp accessed memory at line {line}; those that did: {known}")
    found = patterns[line]
    panels = _shared(found) if found["space"] == "shared" else [_global(found)]
    return Picture(f"line {line}: {found['size']} bytes a lane, {found['space']} memory", panels)


def _shared(found: dict[str, Any]) -> list[Panel]:
    """For each part of the warp that is served at a time, a row a wavefront."""
    size, addresses = found["size"], found["addresses"]
    together = BANKS
    while together * size > 4 * BANKS and together > 1:
        together //= 2
    panels = []
    for first in range(0, BANKS, together):
        words: dict[int, list[int]] = {}
        for lane in range(first, first + together):
            if addresses[lane] is not None:
                for word in range(addresses[lane] // 4, (addresses[lane] + size - 1) // 4 + 1):
                    words.setdefault(word, []).append(lane)
        if words:
            panels.append(_wavefronts(words, f"lanes {first} to {first + together - 1}"))
    return panels


def _wavefronts(words: dict[int, list[int]], title: str) -> Panel:
    banks: list[list[int]] = [[] for _ in range(BANKS)]
    for word in sorted(words):
        banks[word % BANKS].append(word)
    rows = max(map(len, banks))
    cells: list[list[Cell | None]] = [[None] * BANKS for _ in range(rows)]
    for bank, own in enumerate(banks):
        for row, word in enumerate(own):
            lanes = words[word]
            cells[row][bank] = Cell(listed(lanes), lanes[0])
    goes = "one wavefront" if rows == 1 else f"{rows}-way bank conflict: {rows} words of one bank, {rows} wavefronts"
    return Panel(
        f"{title}: those served by each bank, in each wavefront",
        cells,
        _names(rows),
        [str(bank) for bank in range(BANKS)],
        note=goes,
    )


def _names(count: int) -> list[str]:
    return [f"wavefront {number}" for number in range(count)]


def _global(found: dict[str, Any]) -> Panel:
    """The sectors that are touched, in the order of their addresses."""
    size = found["size"]
    sectors: dict[int, list[int]] = {}
    for lane, address in enumerate(found["addresses"]):
        if address is not None:
            for sector in range(address // SECTOR, (address + size - 1) // SECTOR + 1):
                sectors.setdefault(sector, []).append(lane)
    touched = sorted(sectors)
    cells: list[list[Cell | None]] = []
    for start in range(0, len(touched), ACROSS):
        row = [Cell(listed(sectors[sector]), sectors[sector][0]) for sector in touched[start : start + ACROSS]]
        cells.append([*row, *[None] * (ACROSS - len(row))])
    lanes = sum(address is not None for address in found["addresses"])
    ideal = min(-(-lanes * size // SECTOR), len(touched))
    note = f"{len(touched)} sectors of {SECTOR} bytes; {lanes} lanes with {size} bytes each could do with {ideal}"
    names = [f"0x{touched[start] * SECTOR:x}" for start in range(0, len(touched), ACROSS)]
    return Panel("the sectors that are touched, and the lanes that want them", cells, names, [""] * ACROSS, note=note)

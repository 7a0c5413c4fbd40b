"""The answers of the page's views as a reader of them has them: registers and memory at a position."""

import base64
from typing import Any

import numpy as np

from ptxlab.lab import Views
from ptxlab.lab.windows import WINDOW


def registers_at(views: Views, warp: int, position: int, lane: int) -> dict[str, bytes]:
    """The registers of a lane, as `run.js` has them: those at the start of the window, then what is written in it."""
    given = views.get(f"registers/{warp}/{min(position, views.steps.count - 1) // WINDOW}")
    found: dict[str, bytes] = {}
    for part in ("values", "writes"):
        columns = given[part]
        data, at = base64.b64decode(columns["data"]), 0
        for name, lanes, after, size in zip(
            *(columns[one] for one in ("names", "lanes", "after", "sizes")), strict=True
        ):
            if lanes >> lane & 1 and (part == "values" or after < position):
                index = (lanes & ((1 << lane) - 1)).bit_count()
                found[name] = data[at + index * size :][:size]
            at += size * lanes.bit_count()
    return found


def memory_at(views: Views, space: str, owner: int, page: int, position: int) -> np.ndarray[Any, Any]:
    """A page of memory, as `run.js` has it."""
    given = views.get(f"memory/{space}/{owner}/{page}/{min(position, views.steps.count - 1) // WINDOW}")
    content = np.frombuffer(base64.b64decode(given["data"]), np.uint8).copy()
    writes = given["writes"]
    addresses = iter(np.frombuffer(base64.b64decode(writes["addresses"]), np.int32).tolist())
    data, at = np.frombuffer(base64.b64decode(writes["data"]), np.uint8), 0
    for after, size, count in zip(writes["after"], writes["size"], writes["count"], strict=True):
        for _ in range(count):
            address = next(addresses)
            low, high = max(address, 0), min(address + size, len(content))
            if after < position:
                content[low:high] = data[at + low - address : at + high - address]
            at += size
    return content

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
    for one in [*given["values"], *(one for one in given["writes"] if one["after"] < position)]:
        if one["lanes"] >> lane & 1:
            index = (one["lanes"] & ((1 << lane) - 1)).bit_count()
            data = base64.b64decode(one["data"])
            size = len(data) // one["lanes"].bit_count()
            found[one["name"]] = data[index * size :][:size]
    return found


def memory_at(views: Views, space: str, owner: int, page: int, position: int) -> np.ndarray[Any, Any]:
    """A page of memory, as `run.js` has it."""
    given = views.get(f"memory/{space}/{owner}/{page}/{min(position, views.steps.count - 1) // WINDOW}")
    content = np.frombuffer(base64.b64decode(given["data"]), np.uint8).copy()
    for write in given["writes"]:
        if write["after"] < position:
            data = np.frombuffer(base64.b64decode(write["data"]), np.uint8)
            for index, address in enumerate(write["addresses"]):
                low, high = max(address, 0), min(address + write["size"], len(content))
                start = index * write["size"] + low - address
                content[low:high] = data[start : start + high - low]
    return content

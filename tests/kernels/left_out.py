"""A kernel of the gallery with one line left out."""

import re
from dataclasses import replace

import ptxlab
from ptxlab.measure import Launch


def without(launch: Launch, lost: str, number: int = 0) -> Launch:
    """The same launch of a kernel without the line that has `lost` in it, the first of them or another."""
    text = ptxlab.format(launch.module)
    places = [*re.finditer(rf"\n[^\n]*{re.escape(lost)}[^\n]*;", text)]
    text = text[: places[number].start()] + text[places[number].end() :]
    return replace(launch, kernel=ptxlab.parse(text)[launch.function.name])


def codes(launch: Launch, seed: int = 0) -> list[str]:
    """What a run of it finds."""
    found = launch.run(device="cpu", seed=seed, on_error="collect").diagnostics
    return sorted({one.code for one in found})

"""A kernel of the gallery with one line left out."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

import ptxlab
from ptxlab.measure import Launch
from ptxlab.report import Diagnostic, Span

# What orders threads and asynchronous operations, or says that something is done. A wait is left out by a
# predicate that is true.
SYNCHRONIZES = re.compile(
    r"(bar|barrier)\.|fence\.|mbarrier\.|wgmma\.(commit|wait)|tcgen05\.(commit|wait|fence|dealloc)"
    r"|cp\.async\.bulk\.(commit|wait)_group|tensormap\.cp_fenceproxy"
)
WAIT = re.compile(r"\S+try_wait\S+ +(%\w+),[^;]*;")


@dataclass(frozen=True)
class LeftOut:
    """A kernel without one of its lines; of several that read the same, `name` counts them."""

    name: str
    launch: Launch
    text: str

    @cached_property
    def changed(self) -> Launch:
        """The launch of it."""
        return replace(self.launch, kernel=ptxlab.parse(self.text)[self.launch.function.name])

    @cached_property
    def checked(self) -> list[Diagnostic]:
        """What is found without a run."""
        return list(ptxlab.check(self.changed.module))

    def run(self, seed: int = 0) -> list[str]:
        """What `check` and a run find: each code, with each line that the finding marks."""
        for arg in self.launch.args:
            if isinstance(arg, np.ndarray) and arg.dtype == np.uint8:
                arg[:] = 0  # an earlier run left its tensor maps there
        found = [*self.checked, *self.changed.run(device="cpu", seed=seed, on_error="collect").diagnostics]
        marked = [f"{one.code}: {shorten(line_of(label.span))}" for one in found for label in one.labels]
        return list(dict.fromkeys(marked))


def line_of(span: Span) -> str:
    """The line that a span starts in."""
    return span.source.line(span.source.position(span.start)[0])


def shorten(line: str) -> str:
    """An instruction, with as many of its registers as fit."""
    text = " ".join(line.split())
    return text if len(text) <= 100 else text[:97] + "..."


def lines_left_out(launch: Launch) -> Iterator[LeftOut]:
    """The kernel without each of the lines that synchronize."""
    lines = ptxlab.format(launch.module).splitlines()
    seen: Counter[str] = Counter()
    for number, line in enumerate(lines):
        instruction = shorten(line)
        if not SYNCHRONIZES.match(re.sub(r"^@!?%\w+ +", "", instruction)):
            continue
        seen[instruction] += 1
        waits = WAIT.search(line)
        instead = [f"setp.eq.u32 {waits[1]}, 0, 0;"] if waits else []
        text = "\n".join([*lines[:number], *instead, *lines[number + 1 :]])
        again = f" ({seen[instruction]})" if seen[instruction] > 1 else ""
        yield LeftOut(instruction + again, launch, text)


def without(launch: Launch, lost: str, number: int = 0) -> Launch:
    """The same launch of a kernel without the line that has `lost` in it, the first of them or another."""
    text = ptxlab.format(launch.module)
    place = [*re.finditer(rf"\n[^\n]*{re.escape(lost)}[^\n]*;", text)][number]
    waits = WAIT.search(place[0])
    instead = f"\nsetp.eq.u32 {waits[1]}, 0, 0;" if waits else ""
    text = text[: place.start()] + instead + text[place.end() :]
    return replace(launch, kernel=ptxlab.parse(text)[launch.function.name])


def codes(launch: Launch, seed: int = 0) -> list[str]:
    """What a run of it finds."""
    found = launch.run(device="cpu", seed=seed, on_error="collect").diagnostics
    return sorted({one.code for one in found})

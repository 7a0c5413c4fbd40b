"""A kernel of the gallery with one line left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import ptxlab
from ptxlab.measure import Launch

# What orders threads and asynchronous operations, or says that something is done. A wait is left out by going on at
# once: its predicate is true.
SYNCHRONIZES = re.compile(
    r"(bar|barrier)\.|fence\.|mbarrier\.|tcgen05\.(commit|wait|fence|dealloc)"
    r"|cp\.async\.bulk\.(commit|wait)_group|tensormap\.cp_fenceproxy"
)
WAIT = re.compile(r"\S+try_wait\S+ +(%\w+),[^;]*;")


@dataclass(frozen=True)
class LeftOut:
    """A line of a kernel, and how the kernel is written without it."""

    launch: Launch
    line: int
    instruction: str
    without: str

    @property
    def name(self) -> str:
        """The instruction and which of its kind it is, without registers, which change with every edit of a kernel."""
        return re.sub(r"@?!?%\w+|\d+, *|[\[\];,]", "", self.instruction).split()[0]

    def run(self, seed: int = 0) -> list[str]:
        """What a run without the line finds: the code, the instruction that it is about."""
        launch = replace(self.launch, kernel=ptxlab.parse(self.without)[self.launch.function.name])
        for arg in launch.args:
            if isinstance(arg, np.ndarray) and arg.dtype == np.uint8:
                arg[:] = 0  # space in which an earlier run left tensor maps
        found = launch.run(device="cpu", seed=seed, on_error="collect").diagnostics
        lines = self.without.splitlines()
        return [f"{one.code}: {lines[one.line - 1].strip()}" for one in found]


def lines_left_out(launch: Launch) -> Iterator[LeftOut]:
    """The kernel without each of the lines that synchronize."""
    lines = ptxlab.format(launch.module).splitlines()
    for number, line in enumerate(lines):
        instruction = line.strip()
        if not SYNCHRONIZES.match(re.sub(r"^@!?%\w+ +", "", instruction)):
            continue
        waits = WAIT.search(line)
        instead = [f"setp.eq.u32 {waits[1]}, 0, 0;"] if waits else []
        without = "\n".join([*lines[:number], *instead, *lines[number + 1 :]])
        yield LeftOut(launch, number + 1, instruction, without)


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

"""Random programs as data: kernels whose threads take each step from an array, compiled once for all programs.

`python -m tests.emulate.random_programs show threads 17` prints a launch and what it reports, `choose` chooses those
that `test_random_programs.py` runs: together they reach what many reach, each of it several times where they can.
"""

from collections.abc import Callable
from pathlib import Path

import ptxlab
from ptxlab.report import render
from tests.emulate.random_programs import tensor_memory, threads, tiles
from tests.emulate.random_programs.machine import Launch

MAKERS: dict[str, Callable[[int], Launch]] = {
    "threads": threads.make,
    "tiles": tiles.make,
    "tensor_memory": tensor_memory.make,
}
CHOSEN = Path(__file__).with_name("chosen.txt")


def chosen(name: str) -> list[int]:
    """The numbers of the launches of a machine that a test runs."""
    lines = dict(line.split(": ") for line in CHOSEN.read_text().splitlines())
    return [int(number) for number in lines[name].split()]


def shown(launch: Launch) -> str:
    """All that a launch reports, counts and leaves in memory."""
    try:
        result, arrays = launch.run()
    except ptxlab.KernelError as problem:  # refused before it ran
        return render(problem.diagnostics)
    facts = [str(one.facts) for one in result.diagnostics]  # for programs
    memory = [str(array.tolist()) for array in arrays]
    return "\n".join([render(result.diagnostics), str(result.counters), *facts, *memory])

"""How an option is called in messages: as the tool has it that the reader uses.

Python has `seed=2` where the command line has `--seed 2`, and host code says how large shared memory is in `<<<...>>>`.
Messages are made where a kernel runs, which does not know who started it; who did says so here, for as long as it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_on_command_line = False
_of_program = False


def spell_option(option: str, keyword: str, call: str = "") -> str:
    """An option in backticks, as the reader's tool has it; `call` is how the host code of a whole program says it.

    >>> spell_option("--seed 2", "seed=2")
    '`seed=2`'
    """
    if _of_program and call:
        return f"`{call}`"
    return f"`{option if _on_command_line else keyword}`"


@contextmanager
def command_line() -> Iterator[None]:
    """Spell options as the command line does."""
    global _on_command_line
    before, _on_command_line = _on_command_line, True
    try:
        yield
    finally:
        _on_command_line = before


@contextmanager
def whole_program() -> Iterator[None]:
    """Spell what a launch is given as host code does."""
    global _of_program
    before, _of_program = _of_program, True
    try:
        yield
    finally:
        _of_program = before

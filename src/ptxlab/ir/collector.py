"""A pause of Python's garbage collector.

A program is many small objects and no garbage: while it is read or checked, the collector would only go through all
of them again and again.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Let the collector rest for the time of a `with` statement."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()

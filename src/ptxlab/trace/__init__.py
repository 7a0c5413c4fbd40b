"""Recorded launches: `Trace.open`, its steps, what was where, and where a value came from.

`columns.py` has the file as arrays, `program.py` the kernel as it was; on these are `registers.py`, `accesses.py` and
`barriers.py`; `trace.py` is what users call.
"""

from ptxlab.trace.trace import Trace

__all__ = ["Trace"]

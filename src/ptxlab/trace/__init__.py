"""Recorded launches: `Trace.open`, its steps, what was where, and where a value came from.

`columns.py` has the file as arrays, `program.py` the kernel as it was; on these are `registers.py`, `accesses.py` and
`barriers.py`; `trace.py` is what users call. Launches that ran at the same time are `traces.py`, with `flags.py`.
"""

from ptxlab.trace.trace import Trace
from ptxlab.trace.traces import Traces

__all__ = ["Trace", "Traces"]

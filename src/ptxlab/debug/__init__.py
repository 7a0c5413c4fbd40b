"""A debugger that steps backwards: `Debugger` walks through a recorded launch; front ends show where it is.

`lines.py` has lines of source, `values.py` what can be asked for, `stops.py` breakpoints and watchpoints, `debugger.py`
the position; `terminal.py` and `adapter.py` are front ends: commands, and the Debug Adapter Protocol.
"""

from ptxlab.debug.debugger import Debugger, Frame, Stop
from ptxlab.debug.objects import UnknownError
from ptxlab.debug.values import Scope

__all__ = ["Debugger", "Frame", "Scope", "Stop", "UnknownError"]

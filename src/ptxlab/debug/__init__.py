"""A debugger that steps backwards: `Debugger` walks through a recorded launch; front ends show where it is.

`lines.py` has lines of source, `declarations.py` and `types.py` what C++ declares, `values.py` what a thread sees,
`expressions.py` what can be asked for, `stops.py` breakpoints and watchpoints, `position.py` what is where,
`debugger.py` how it moves; `terminal.py` and `adapter.py` are front ends: commands, and the Debug Adapter Protocol.
"""

from ptxlab.debug.debugger import Debugger, Stop
from ptxlab.debug.objects import UnknownError
from ptxlab.debug.position import Frame
from ptxlab.debug.values import Scope

__all__ = ["Debugger", "Frame", "Scope", "Stop", "UnknownError"]

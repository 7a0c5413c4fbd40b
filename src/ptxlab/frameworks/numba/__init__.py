"""Kernels of Numba's `@cuda.jit`, compiled by the installed Numba for a GPU that need not be there, on the emulator.

    result = ptxlab.numba.run(saxpy, 4, 256, x, y, 2.0, target="sm_90")

    with ptxlab.numba.emulated(target="sm_90"):
        out = model(x)  # unchanged: it calls `cuda.to_device`, and starts kernels by `kernel[grid, block](...)`

`session.py` has what happens in between, `host.py` what Numba sees instead of a GPU, `values.py` arguments as
parameters, `linking.py` the PTX of a kernel with what is linked to it.
"""

from ptxlab.frameworks.numba.session import Launched, Session, emulated, run

__all__ = ["Launched", "Session", "emulated", "run"]

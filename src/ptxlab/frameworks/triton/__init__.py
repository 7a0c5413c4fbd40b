"""Kernels of Triton and Gluon, compiled by the installed Triton for a GPU that need not be there, on the emulator.

    result = ptxlab.triton.run(add_kernel, (4,), x, y, out, n, BLOCK=256, target="sm_90a")

    with ptxlab.triton.emulated(target="sm_100a") as session:
        out = model(x)  # unchanged: it allocates tensors and starts kernels by `kernel[grid](...)`

`session.py` has what happens in between, `driver.py` what Triton sees instead of a GPU's driver, `launcher.py` one
launch, `copies.py` races that are of no consequence.
"""

from ptxlab.frameworks.triton.session import Launched, Session, emulated, run

__all__ = ["Launched", "Session", "emulated", "run"]

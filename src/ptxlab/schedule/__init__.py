"""From an algorithm to a fast kernel by steps, each of which keeps what is computed.

- `statements`, `read`: a Python function as an algorithm; `from_ptx`, `executing`, `symbolic`, `recognized`: a naive
  kernel as one; `reference`: what it means, by NumPy.
- `state`, `steps`: what is decided, and how; a step is a file.
- `tree`, `plan`, `staging`: the tree of loops and copies that follows; `walk`: how threads share copies; `synchronize`:
  barriers, derived.
- `emit`, `loops`, `copies`, `operands`, `computing`, `online`, `exchange`, `pieces`: the tree as a kernel of
  `ptxlab.author`; `writing` is what these share, with `address`, `elements` and `expressions`.
- `tensor`, `results`, `tensor_memory`, `scaled`, `asynchronous`: tensor cores, what becomes of their results, scale
  factors, copies by TMA and what waits.
- `scheduling`: what a user holds; `launching`: a kernel for arrays; `checking`: whether it is right; `search`: numbers
  that are left open; `waves`: which of several schedules a product gets.
"""

from ptxlab.schedule.from_ptx import from_cuda, from_ptx
from ptxlab.schedule.read import algorithm, bf16, e4m3, e5m2, f16, f32, mxf4, mxf8, nvfp4, s8, s32, u8
from ptxlab.schedule.scheduling import Schedule, Step, schedule
from ptxlab.schedule.search import Search, free
from ptxlab.schedule.statements import Algorithm
from ptxlab.schedule.waves import choose, waves

__all__ = [
    "Algorithm",
    "Schedule",
    "Search",
    "Step",
    "algorithm",
    "bf16",
    "choose",
    "e4m3",
    "e5m2",
    "f16",
    "f32",
    "free",
    "from_cuda",
    "from_ptx",
    "mxf4",
    "mxf8",
    "nvfp4",
    "s8",
    "s32",
    "schedule",
    "u8",
    "waves",
]

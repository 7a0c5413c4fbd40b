"""Is a kernel right for all inputs and all grids? `prove` shows it, refutes it by a run, or says what is in the way.

- `terms`, `execution`: what registers hold, for every thread, block and turn of a loop; the accesses between barriers.
- `intervals`: which accesses of two threads no barrier orders, and what the two threads have in common.
- `solver`, `integers`: terms as bit-vectors and as integers, for Z3.
- `proof`: bounds, alignment, barriers and races as questions to the solver.
- `contracts`: what may be assumed of arguments and the grid.
- `replay`: counterexamples on the emulator. `proving`, `verdict`: the answer.

What has to be right for a "proved" to be true: docs/prove.md.
"""

from ptxlab.prove.contracts import ContractError
from ptxlab.prove.proving import prove
from ptxlab.prove.solver import MissingSolverError
from ptxlab.prove.verdict import Counterexample, Gap, Verdict

__all__ = ["ContractError", "Counterexample", "Gap", "MissingSolverError", "Verdict", "prove"]

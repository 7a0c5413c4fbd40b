"""Is a kernel right for all inputs and all grids? `prove` shows it, refutes it by a run, or says what is in the way.

- `terms`: what registers hold, for every thread, block and turn of a loop.
- `theories`: terms as bit-vectors and as integers, for Z3.
- `execution`: a kernel run on terms: its accesses between barriers, and what orders them.
- `questions`: which pairs of accesses are asked about, and what is assumed.
- `rings`: what mbarriers order; `obligations`: all that is to be shown.
- `answers`: assumptions, the obligations in order, counterexamples on the emulator, words.

What has to be right for a "proved" to be true: docs/prove.md.
"""

from ptxlab.prove.answers.contracts import ContractError
from ptxlab.prove.answers.launched import LaunchedKernel, prove_launched
from ptxlab.prove.answers.proving import prove
from ptxlab.prove.answers.verdict import Counterexample, Gap, Verdict
from ptxlab.prove.theories.solver import MissingSolverError, require_solver

__all__ = [
    "ContractError",
    "Counterexample",
    "Gap",
    "LaunchedKernel",
    "MissingSolverError",
    "Verdict",
    "prove",
    "prove_launched",
    "require_solver",
]

"""Are two kernels the same function? `equal` says how equal they are, for which values, and where they part.

- `sides`: what is compared: launches, or a function of NumPy or torch (`reference`, `torch_functions`).
- `replay` runs a recorded launch once more, on expressions in place of numbers: `plans` says which instructions matter,
  `batches` in which order threads are taken, `codes` and `memory` what registers and memory hold, `turns`, `compute`,
  `collectives`, `warpgroups`, `tensor_memory`, `multiplicands`, `copies`, `calls` and `updates` what instructions make
  of it.
- `nodes`: the expressions, with hashes: the same hash, the same bits.
- `rules`, `field`, `values`, `sums`, `functions`, `conditions`, `primes`, `constants`: the same function up to
  rounding, by finite fields.
- `reals`, `numeric`: the same numbers, nearly.
- `comparison`, `witness`, `verdict`: the answer.
"""

from ptxlab.equal.comparison import equal
from ptxlab.equal.reference import unpack
from ptxlab.equal.verdict import Verdict, Witness
from ptxlab.measure import Launch

__all__ = ["Launch", "Verdict", "Witness", "equal", "unpack"]

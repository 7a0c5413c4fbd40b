"""Values that flow through the registers of a function: one engine, and a domain for each kind of question.

- `steps`: what an instruction computes, as steps that any domain runs: the semantics of the table, not a second list.
- `engine`: follows values from where they are written to where they are read, until nothing changes.
- `numbers`: a domain: constants, ranges, a number for each thread of the block, addresses relative to a variable.
- `symbolic`, `expressions`: a domain: sums over the thread, parameters and turns of loops, exact.
- `presence`: which threads of a block can reach an instruction.
- `chains`, `control`: def-use chains, and control dependence.
- `facts`: all of it for one function. `facts.value(at, operand)` answers what is known of one operand, and
  `facts.symbolic(at, operand)` what it is.
"""

from .facts import Facts
from .value import Value

__all__ = ["Facts", "Value"]

"""What instructions on integers, bits and predicates must give, said once more and in another way: on Python's numbers.

An oracle takes a case and returns the bits of its results; `ORACLES` finds it by the form's chapter and name.
"""

from . import bits, comparison, extended_precision, integer, move, video
from .table import ORACLES, expected_results

__all__ = ["ORACLES", "bits", "comparison", "expected_results", "extended_precision", "integer", "move", "video"]

"""Litmus tests of the PTX memory consistency model: read, judged by the axioms, run."""

from ptxlab.litmus.program import Litmus
from ptxlab.litmus.reader import load, read

__all__ = ["Litmus", "load", "read"]

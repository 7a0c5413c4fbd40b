"""Cycles of a launch from its SASS, control codes and an emulated run; what limits it, by name."""

from ptxlab.estimate.hardware import H200, SOURCES, Hardware
from ptxlab.estimate.prediction import Estimate, HotLine, Unit, estimate

__all__ = ["H200", "SOURCES", "Estimate", "Hardware", "HotLine", "Unit", "estimate"]

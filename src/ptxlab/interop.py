"""The name that `ptxlab.frameworks.operators` had before."""

from ptxlab.frameworks.operators import start, torch_operator

__all__ = ["start", "torch_operator"]

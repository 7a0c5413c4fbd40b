"""Kernels that people write, with their references in NumPy: `CASES` lists them, `execute` runs one.

`cuda/` and `triton/` hold the sources, `ptx/` what compilers made of them (see `make.py`), `hand/` PTX written by hand.
The modules beside this file hold the cases by subject; `case.py` says what a case is.
"""

from importlib import import_module

from tests.emulate.kernels.case import CASES, Case, Launch, Run, execute, load

__all__ = ["CASES", "Case", "Launch", "Run", "execute", "load"]

SUBJECTS = """
    arithmetic atomics blackwell calls clusters elementwise hand library matrices memory neighbours numeric pipelines
    reductions rows scans sorts tables talk tensors warps
""".split()

for subject in SUBJECTS:
    import_module(f"{__name__}.{subject}")  # each adds its cases

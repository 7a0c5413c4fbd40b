"""Functions to call: each chooses among the variants of a kernel for the arrays that it is given.

`calls.py` is what all of them are: a first call is checked and prepared, later ones only give addresses. `callees.py`
declares such a function by its arguments. `matrices.py` has arrays of any framework, `checks.py` what is asked of them,
`ready.py` launches that lack nothing but addresses, `operators.py` what torch knows; the other modules have the
functions.
"""

# `ptxlab.kernels` has folders and functions of the same names, and imports the functions last: whichever is asked for
# first, it is complete before.
import ptxlab.kernels  # noqa: F401

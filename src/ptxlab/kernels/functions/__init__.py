"""Functions to call: each chooses among the variants of a kernel for the arrays that it is given.

`matrices.py` has arrays of any framework, `ready.py` launches that lack nothing but addresses, `calls.py` and
`callees.py` what is checked at the first call; the other modules have the functions.
"""

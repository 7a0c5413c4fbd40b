"""Kernels of other frameworks on the emulator, and ptxlab's kernels as operators of theirs.

`triton`, `cute` and `numba` run kernels of Triton, Gluon, the CuTe DSL and Numba, `from_framework` makes modules of
what other libraries compile, `operators` are for torch, `jax_operators` for JAX. None of these libraries is imported
before it is used.
"""

"""Kernels of other frameworks on the emulator, and ptxlab's kernels as operators of theirs.

`triton` and `cute` run kernels of Triton, Gluon and the CuTe DSL, `adopt` makes modules of what other libraries
compile, `operators` are for torch, `jax_operators` for JAX. None of these libraries is imported before it is used.
"""

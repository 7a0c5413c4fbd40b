"""Symbolic execution of a kernel: what registers hold, and what threads do to memory and in which order."""

"""Tensor memory and the MMAs, copies and commits of `tcgen05` on it."""

"""Kernels written in Python, each in a file that a reader understands alone."""

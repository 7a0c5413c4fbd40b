"""Random programs as data: kernels whose threads take each step from an array, compiled once for all programs."""

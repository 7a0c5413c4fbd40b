"""A small compiler: typed Python functions on numbers and pointers, as machine code."""

"""How memory is divided on every GPU of NVIDIA: banks of shared memory, sectors and lines of the caches."""

BANKS = 32
"""Of shared memory, each four bytes wide."""
SECTOR = 32
"""Bytes that caches read at a time."""
LINE = 128
"""Bytes of a line of a cache: four sectors."""

"""The part of the emulator that runs beside the code of a kernel, native like it: memory, scheduling, barriers.

`table.py` lists what is called from where.
"""

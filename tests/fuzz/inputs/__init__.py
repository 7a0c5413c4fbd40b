"""Damaged inputs that are not programs: `python -m tests.fuzz.inputs --minutes 30 --jobs 4 --keep FOLDER`.

A kind is a module beside this one. Its `make` gives the bytes of one input, always the same for a seed: something right
with a few changes (`mutation.py`). Its `examine` does with them what ptxlab does; errors that ptxlab declares are
right, and any other exception, an abort or a hang is a finding. `missing` says what a kind needs and a machine lacks.
"""

KINDS = ("traces", "cubins", "tensor_maps", "editor", "debugger", "run_lines", "projects")

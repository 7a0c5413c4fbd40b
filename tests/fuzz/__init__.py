"""Random programs through the whole of ptxlab: `python -m tests.fuzz --minutes 30 --seed 1 --keep FOLDER`.

Each program (`programs.py`) is read, checked, judged by ptxas too, printed and read again, and run with random
arguments (`examine.py`); what must come out is known of some. All of it happens in a process of its own (`workers.py`),
so that an abort or an endless loop is a finding as a traceback is, or a disagreement. What is found is made smaller
(`minimize.py`) and written to `--keep`.
"""

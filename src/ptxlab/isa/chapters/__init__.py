"""The chapters of the manual, a module each: declarations, semantics and one sentence of documentation.

`CHAPTERS` in `isa/table.py` has their order.
"""

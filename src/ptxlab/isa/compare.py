"""Comparison and selection instructions (PTX ISA 9.7.6 and 9.7.7)."""

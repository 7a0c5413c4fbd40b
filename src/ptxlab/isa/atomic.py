"""Atomic operations and reductions on memory (PTX ISA 9.7.13)."""

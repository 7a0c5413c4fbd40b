"""Bulk and tensor copies, reductions and prefetches by the copy engine (PTX ISA 9.7.9.25 to 9.7.9.27)."""

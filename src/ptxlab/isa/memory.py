"""Loads, stores, prefetches and cache policies (PTX ISA 9.7.9)."""

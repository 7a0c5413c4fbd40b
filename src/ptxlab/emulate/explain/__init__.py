"""Faults and findings of a launch as diagnostics."""

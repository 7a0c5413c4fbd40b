"""Whole programs: host code and all, with the emulator as their GPU."""

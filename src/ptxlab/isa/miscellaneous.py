"""Miscellaneous instructions: brkpt, nanosleep, pmevent, trap, setmaxnreg (PTX ISA 9.7.19)."""

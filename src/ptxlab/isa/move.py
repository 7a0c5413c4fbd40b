"""Moves within the register file and between addresses of state spaces: mov, prmt, cvta and their kin (PTX ISA 9.7.9)."""

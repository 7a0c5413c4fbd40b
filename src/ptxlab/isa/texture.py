"""Texture instructions (PTX ISA 9.7.10)."""

"""Textures and surfaces: what handles refer to, where texels are, and the arithmetic of lookups."""

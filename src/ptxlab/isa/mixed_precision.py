"""Mixed-precision floating-point instructions (PTX ISA 9.7.5)."""

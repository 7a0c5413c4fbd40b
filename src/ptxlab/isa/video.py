"""Video instructions, scalar and packed (PTX ISA 9.7.18)."""

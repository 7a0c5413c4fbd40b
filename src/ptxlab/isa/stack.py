"""Stack manipulation instructions (PTX ISA 9.7.17)."""

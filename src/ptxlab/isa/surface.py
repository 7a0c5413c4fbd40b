"""Surface instructions (PTX ISA 9.7.11)."""

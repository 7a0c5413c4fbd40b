"""Logic and shift instructions (PTX ISA 9.7.8)."""

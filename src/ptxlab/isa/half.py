"""Half-precision floating-point instructions on f16 and bf16 (PTX ISA 9.7.4)."""

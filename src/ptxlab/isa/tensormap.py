"""Instructions that change a tensor map (PTX ISA 9.7.9.28 and 9.7.13)."""

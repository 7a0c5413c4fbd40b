"""Control flow: branches, calls, returns (PTX ISA 9.7.12)."""

"""Extended-precision integer arithmetic instructions, which carry in and out (PTX ISA 9.7.2)."""

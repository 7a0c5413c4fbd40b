"""Tensor core of the fifth generation: tensor memory, copies and matrix multiply (PTX ISA 9.7.16)."""

"""Matrix multiply-accumulate by a warp: wmma and mma (PTX ISA 9.7.14)."""

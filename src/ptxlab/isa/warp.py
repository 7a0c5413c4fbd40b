"""Instructions that the lanes of a warp execute together: shfl, vote, match, redux, elect (PTX ISA 9.7.9 and 9.7.13)."""

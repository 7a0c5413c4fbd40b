"""Terms as bit-vectors and as integers, for the solver."""

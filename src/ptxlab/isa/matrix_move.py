"""Moves of matrices between shared memory and registers: ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5)."""

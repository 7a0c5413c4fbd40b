"""Asynchronous matrix multiply-accumulate by a warpgroup, sm_90a (PTX ISA 9.7.15)."""

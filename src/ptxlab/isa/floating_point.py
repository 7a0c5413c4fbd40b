"""Floating-point instructions on f32 and f64 (PTX ISA 9.7.3)."""

"""Conversions between types: cvt and cvt.pack (PTX ISA 9.7.9)."""

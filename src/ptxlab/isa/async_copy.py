"""Asynchronous copies of the cp.async family without the bulk engine (PTX ISA 9.7.9.25)."""

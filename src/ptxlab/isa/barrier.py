"""Barriers, fences and memory ordering between threads (PTX ISA 9.7.13)."""

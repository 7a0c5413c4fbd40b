"""The mbarrier object in shared memory (PTX ISA 9.7.13.15)."""

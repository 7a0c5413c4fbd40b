"""Mutants of the source of ptxlab: small random changes that a test has to notice; `python -m tests.mutants`."""

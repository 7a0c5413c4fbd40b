# The tasks of dev.py, for people who type `make`.
PYTHON ?= python3

.PHONY: help demo test check bulk bench docs site

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' Makefile

demo: ## a tour of what works
test: ## the tests that matter most, on all cores: under 2 minutes on two
check: ## format, lint, words, types, layers, all tests, docs: what must pass
bulk: ## all tests with optimized kernels, and ptxas asked about every form: what `check` has no time for
bench: ## how fast PTX is read and checked, beside ptxas, and how fast kernels run
docs: ## the reference in build/docs, and the examples in docstrings
site: ## the documentation as a site in build/site, by Sphinx

demo test check bulk bench docs site:
	@$(PYTHON) dev.py $@

# The tasks of dev.py, for those who type `make`.
PYTHON ?= python3

.PHONY: help demo test check bench docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' Makefile

demo: ## a tour of what works
test: ## the tests, on all cores
check: ## format, lint, types, layers, tests, docs: all that must pass
bench: ## how fast PTX is read and checked, beside ptxas, and how fast kernels run
docs: ## the reference in build/docs, and the examples in docstrings

demo test check bench docs:
	@$(PYTHON) dev.py $@

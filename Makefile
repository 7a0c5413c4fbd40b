# Every target makes its own virtual environment in .venv; a bare Python 3.11 or later is all it needs.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: help demo test check bench docs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' Makefile

demo: $(INSTALLED) ## a tour of what works
	@$(BIN)/ptxlab tour

test: $(INSTALLED) ## the tests, on all cores
	@$(BIN)/pytest -q -n auto

check: $(INSTALLED) ## format, lint, types, layers, tests, docs: all that must pass
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q -n auto
	@$(MAKE) --no-print-directory docs

bench: $(INSTALLED) ## how fast PTX is read and checked, beside ptxas
	@$(BIN)/python benchmarks/front_end.py

docs: $(INSTALLED) ## the reference in build/docs, and the examples in docstrings
	@$(BIN)/pytest -q --doctest-modules src
	@$(BIN)/python docs/build.py

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("ptxlab needs Python 3.11 or later; say make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo "installing ptxlab and its tools into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,toolchain]'
	@touch $@

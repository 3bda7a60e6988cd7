# Everything from a bare clone with python3 and make; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP_INSTALL := $(PY) -m pip install --quiet --quiet --constraint constraints.txt
# One process a core, up to four: each imports torch. A process that is done takes tests from the other's heap.
PYTEST := $(PY) -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal
SOURCES := $(wildcard statewise tests benchmarks examples conftest.py)

# Stamps: an environment is made once, and filled again only when what it is made from has changed.
CORE := $(VENV)/.installed-core
TOOLS := $(VENV)/.installed-tools

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes, which share what the first has compiled.
unexport PYTHONDONTWRITEBYTECODE
# Types are checked while the documentation is built.
MAKEFLAGS += --jobs=2

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all check lint types rooms docs bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(CORE)  ## install, then learn, read, prove, measure and compare, and write report.html
	@$(PY) -m statewise demo

test: check docs  ## install the tools, then run every check and every quick test
	$(PYTEST) -m "not slow"

test-all: check docs  ## the same with the slow tests, and more examples for each property
	$(PYTEST) --hypothesis-profile=slow

check: lint types rooms  ## style, types and the order of the rooms

lint: $(TOOLS)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(TOOLS)
	$(PY) -m mypy $(SOURCES)

rooms: $(TOOLS)
	$(VENV)/bin/lint-imports --no-logo

docs: $(TOOLS)  ## build the documentation into docs/_build/html; a warning is an error
	$(PY) -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

bench: $(CORE)  ## run the benchmarks, each of which prints the ratio it measured
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(PY) "$$script"; done

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find statewise tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	    "statewise needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] \
	    + ": name another one, e.g. make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(CORE): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "Installing statewise into $(VENV) (a minute or two the first time)"
	@$(PIP_INSTALL) --editable .
	@touch $@

$(TOOLS): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "Installing statewise and its test tools into $(VENV) (a minute or two the first time)"
	@$(PIP_INSTALL) --editable ".[test,docs]"
	@touch $(CORE) $@

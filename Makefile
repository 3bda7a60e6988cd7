# Everything from a bare clone with python3 and make; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# Python compiles what is imported when it is; compiling all that is installed takes longer than the download.
PIP_INSTALL := $(PY) -m pip install --quiet --quiet --no-compile --constraint constraints.txt
# TORCH=cpu takes torch's CPU build from its own index, for machines without a GPU: megabytes instead of gigabytes.
TORCH ?=
TORCH_INDEX := https://download.pytorch.org/whl/$(TORCH)
INSTALL_TORCH = $(if $(TORCH),$(PIP_INSTALL) --no-deps --retries 1 --index-url $(TORCH_INDEX) torch \
    || echo "$(TORCH_INDEX) cannot be reached: torch comes from the public index with CUDA")
# One process a core, up to four: each imports torch. A process that is done takes tests from the other's heap.
PYTEST := $(PY) -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal
SOURCES := $(wildcard statewise tests benchmarks examples conftest.py hatch_build.py)
# The CPU kernel is compiled when the package is installed.
KERNEL := $(wildcard statewise/native/*.cpp statewise/native/*.h statewise/native/build.py hatch_build.py)

# Stamps: an environment is made once, and filled again only when what it is made from has changed.
CORE := $(VENV)/.installed-core
TOOLS := $(VENV)/.installed-tools

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes, which share what the first has compiled.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all quick-tests all-tests check lint types rooms docs bench constraints check-install \
    check-lowest fresh clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(CORE)  ## install, then learn, read, prove, measure and compare, and write report.html
	@$(PY) -m statewise demo

# Types are checked and the documentation is built while the tests run; both are installed before.
test: $(TOOLS)  ## install the tools, then run every check and every quick test
	@$(MAKE) --no-print-directory --jobs=2 check quick-tests docs

test-all: $(TOOLS)  ## the same with the slow tests, more and new examples for each property
	@$(MAKE) --no-print-directory --jobs=2 check all-tests docs

quick-tests: $(TOOLS)
	$(PYTEST) -m "not slow"

all-tests: $(TOOLS)
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

# As a stranger has it: none of this machine's settings, so that a package of its own or another index cannot help. Only the
# certificates and proxies of a network that has its own are kept, without which nothing can be reached.
NETWORK = SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY \
    http_proxy https_proxy all_proxy no_proxy
ALONE = env -i HOME="$$home" PATH="$$PATH" PIP_CONFIG_FILE=/dev/null \
    $(foreach name,$(NETWORK),$(if $($(name)),$(name)="$($(name))"))
RESOLVE = "$(CURDIR)/$(VENV)/bin/uv" pip compile pyproject.toml --no-config --no-python-downloads --system-certs --all-extras \
    --quiet
CONSTRAINTS ?= constraints.txt
# The torch that the tests run with; what it pins itself (Triton, CUDA) is left to it.
TORCH_VERSION := 2.13.0

constraints: $(TOOLS)  ## make constraints.txt anew; versions stay where they still fit (remove the file for the newest)
	@home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && grep -v '^#' constraints.txt > "$$home/found.txt" \
	    && echo "torch==$(TORCH_VERSION)" > "$$home/torch.txt" \
	    && $(ALONE) $(RESOLVE) --universal --python-version 3.11 --no-annotate --no-header --constraint "$$home/torch.txt" \
	        --output-file "$$home/found.txt" \
	    && { echo "# Made by \`make constraints\`: what the tests ran with. pip install -c constraints.txt takes the same versions."; \
	        grep -vE '^(triton|setuptools|cuda-|nvidia-)' "$$home/found.txt"; } > "$$home/constraints.txt" \
	    && cp "$$home/constraints.txt" constraints.txt

check-install: $(TOOLS)  ## resolve all extras from the plain index, for each Python and platform, without this machine's settings
	@home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && for target in $(TARGETS); do \
	    $(ALONE) MACOSX_DEPLOYMENT_TARGET=14.0 $(RESOLVE) --constraint "$(CONSTRAINTS)" \
	        --python-version $${target%%:*} --python-platform $${target##*:} --output-file "$$home/found.txt" \
	        || { echo "check-install: nothing fits $(CONSTRAINTS) for Python $$target." \
	        "Run make constraints, or see above what the index said."; exit 1; }; \
	done && echo "All extras resolve with $(CONSTRAINTS) for Python 3.11 to 3.14 on Linux, and on ARM, macOS and Windows."
TARGETS := $(addsuffix :linux,3.11 3.12 3.13 3.14) $(addprefix 3.14:,aarch64-unknown-linux-gnu macos windows)

check-lowest: $(TOOLS)  ## install the lowest versions that pyproject.toml allows, from the plain index, and try them
	@home=$$(mktemp -d) && trap 'rm -rf "$$home"' EXIT && uv="$(CURDIR)/$(VENV)/bin/uv" && lowest="$$home/venv/bin/python" \
	    && $(ALONE) $(RESOLVE) $(BACKEND) --resolution lowest-direct --python-version 3.11 --output-file "$$home/lowest.txt" \
	    && $(ALONE) "$$uv" venv --quiet --python $(PYTHON) "$$home/venv" \
	    && $(ALONE) "$$uv" pip install $(BACKEND) --quiet --system-certs --python "$$lowest" --requirements "$$home/lowest.txt" . \
	    && $(ALONE) "$$lowest" tests/smoke.py && $(ALONE) "$$lowest" -m pytest --quiet $(WARNINGS) -m "not slow" $(LOWEST_TESTS)
WARNINGS := $(addprefix -W default::,DeprecationWarning FutureWarning ResourceWarning)
BACKEND = $(if $(TORCH),--torch-backend $(TORCH))
# What the extras are for; the rest of the tests is tied to the newest versions of tools, not of what users need. What old
# versions warn of in each other is no fault of ours.
LOWEST_TESTS := tests/automata tests/memory tests/sharing tests/sweep tests/explorer tests/report

fresh:  ## clone, install as a stranger would, from the plain index, and run the demonstration and a smoke test
	@home=$$(mktemp -d) && git clone --quiet . "$$home/clone" && cd "$$home/clone" && start=$$(date +%s) \
	    && $(ALONE) "$(MAKE)" --no-print-directory demo TORCH=$(TORCH) PYTHON="$(PYTHON)" \
	    && echo "make demo took $$(($$(date +%s) - start)) seconds, installing included." \
	    && $(ALONE) .venv/bin/python tests/smoke.py && du -sh .venv && echo "A fresh clone works: $$home/clone"

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist docs/_build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find statewise tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	    "statewise needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] \
	    + ": name another one, e.g. make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(CORE): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt $(KERNEL)
	@echo "Installing statewise into $(VENV) (a minute or two the first time)"
	@$(INSTALL_TORCH)
	@$(PIP_INSTALL) --editable .
	@touch $@

$(TOOLS): $(VENV)/pyvenv.cfg pyproject.toml constraints.txt $(KERNEL)
	@echo "Installing statewise and its test tools into $(VENV) (a minute or two the first time)"
	@$(INSTALL_TORCH)
	@$(PIP_INSTALL) --editable ".[test,docs]"
	@touch $(CORE) $@

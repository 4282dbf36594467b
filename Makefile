# Every target sets up what it needs: a clean clone, python3 (3.11 or newer) and a package index are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed so far: the package alone, which is all that the demo needs; then everything for development.
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
# Modules are compiled when they are first imported: most never are.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Two workers. One of them runs all that needs Spark, which it starts once; see tests/conftest.py.
SHARED := -n 2 --dist loadgroup --no-loadscope-reorder

.PHONY: help demo test sweep check bench bench-peers audit clean
help:
	@echo "make demo    a tour of Incrowd on the bundled census table"
	@echo "make test    the whole test-suite"
	@echo "make sweep   the same with every example of every property; hours"
	@echo "make check   lint, types, import contract, doctests"
	@echo "make bench   the benchmarks (not tests; they print ratios)"
	@echo "make audit   every broken mechanism must be caught, no real one accused; no row may tell more than numbers"
	@echo "make bench-peers   the bench against peers, each installed under .peers/ the first time"

$(CORE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Incrowd needs Python 3.11 or newer: run make PYTHON=python3.12, say."; exit 2; }
	@echo "Setting up $(VENV) (once)..."
	@$(PYTHON) -m venv --clear $(VENV) 2>/dev/null \
	  || { rm -rf $(VENV); $(PYTHON) -m pip install --quiet --user virtualenv && $(PYTHON) -m virtualenv --quiet $(VENV); }
	@$(INSTALL) -e .
	@touch $@

$(DEV): $(CORE)
	@echo "Adding the engines and the tools of development to $(VENV) (once)..."
	@$(INSTALL) -e '.[dev]'
	@touch $@

demo: $(CORE)
	@$(BIN)/incrowd demo

test: $(DEV)
	$(BIN)/python -m pytest $(SHARED)

sweep: $(DEV)
	INCROWD_SWEEP=1 $(BIN)/python -m pytest $(SHARED)

check: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest --doctest-modules -p no:cacheprovider src

bench: $(DEV)
	@for file in $(filter-out bench/peers.py,$(wildcard bench/*.py)); do $(BIN)/python $$file || exit 1; done

bench-peers: $(DEV)
	$(BIN)/python bench/peers.py

audit: $(DEV)
	@$(BIN)/python -m incrowd.adversary.audit
	@INCROWD_HOSTILE=full $(BIN)/python -m pytest $(SHARED) tests/hostile

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

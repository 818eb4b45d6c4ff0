# Everything a developer does, by name. `make` alone lists it.
# Python 3.11 or newer is looked for as python3.11, python3; PYTHON=... names another.

PYTHON ?= $(shell command -v python3.11 || echo python3)
VENV   := .venv
STAMP  := $(VENV)/.installed
BIN    := $(VENV)/bin
# Spark prefers JAVA_HOME to PATH: give it the one that is new enough.
WITH_JAVA := JAVA_HOME="$$(scripts/ensure-java.sh)" && export JAVA_HOME &&

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(STAMP) ## Create .venv with everything in it, and see to Java
	@scripts/ensure-java.sh >/dev/null

demo: setup ## Run a skewed stream through Trimtab and through Spark's own operators
	@$(WITH_JAVA) $(BIN)/trimtab demo

test: setup ## Run the tests; ARGS="-k name" is passed on
	@$(WITH_JAVA) $(BIN)/python -m pytest $(ARGS)

check: setup ## Lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup ## Run the benchmarks; ARGS="NAME --json" picks one
	@$(WITH_JAVA) $(BIN)/trimtab bench $(ARGS)

clean: ## Remove .venv and what the tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Brought up to date whenever the pins or the project's settings change; `make clean` first starts from nothing.
$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; say which: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "Python's venv module is needed (Debian, Ubuntu: apt-get install python3-venv)."; exit 1; }
	$(BIN)/pip install --quiet --requirement requirements.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

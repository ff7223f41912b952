# make demo: environment, training, translation, the page.   make test: the tests.   Python 3.11 or newer is all they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: env demo test lint clean

env: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("qkv needs Python 3.11 or newer; run make with PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@

demo: env
	$(BIN)/qkv demo --out demo

test: env
	$(BIN)/python -m pytest

lint: env
	$(BIN)/ruff check src tests benchmarks

clean:
	rm -rf demo build .pytest_cache .hypothesis .ruff_cache

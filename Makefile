# Both targets work alone on a fresh clone: each makes .venv, installs what it needs and runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test clean

demo: $(VENV)/.installed-train
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The stamp is renewed when the dependencies change.
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) demo-output
